/** The conductor over the drivers that there are: it starts on the default options, and fake hardware goes all the way. */
import { randomBytes, randomUUID } from 'node:crypto';
import { OPTIONS } from '../../config/options';
import { startConductor, type ConductorOptions, type RunningConductor } from '../../conductor/index';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import { silentLog } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { testClock } from '../support/clock';
import { useDatabase } from '../support/database';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  await conductor?.stop();
  await database.clear();
});
const defaults = Object.fromEntries(OPTIONS.map((row) => [`${row.section}.${row.name}`, row.default]));
async function start(changes: Partial<ConductorOptions> = {}): Promise<RunningConductor> {
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  return (conductor = await startConductor({
    metrics: silentMetrics,
    store: database.store(),
    clock,
    options: {
      ...defaults,
      'DEFAULT.host': 'here',
      'DEFAULT.my_ip': '192.0.2.1',
      'service_catalog.endpoint_override': 'http://192.0.2.1:6385',
      'deploy.http_url': 'http://192.0.2.1:8080',
      ...changes,
    } as unknown as ConductorOptions,
    log: silentLog,
    random: randomBytes,
    connections: { ipmi: nowhere, redfish: nowhere },
    interfaces: INTERFACES,
    hardwareTypes: HARDWARE_TYPES,
  }));
}
const FAKE: Partial<ConductorOptions> = {
  'DEFAULT.enabled_hardware_types': ['fake-hardware'],
  ...Object.fromEntries(
    ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'].map(
      (kind) => [`DEFAULT.enabled_${kind}_interfaces`, ['fake']],
    ),
  ),
};

it('starts on the default options', async () => {
  await start();
  expect(Object.keys((await database.store().conductors.list())[0]!.drivers).sort()).toEqual(['ipmi', 'redfish']);
});

it('takes fake hardware from enroll to active and back', async () => {
  const fake = await start(FAKE);
  const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware' });
  expect(Object.values(await fake.validate(uuid)).every(({ result }) => result)).toBe(true);
  expect(Object.keys(await fake.driverProperties('fake-hardware')).length).toBeGreaterThan(0);
  const after = async (verb: string, args = {}): Promise<string> => {
    await fake.provision(uuid, verb, args);
    await fake.idle();
    return (await database.store().nodes.find(uuid)).provision_state;
  };
  expect(await after('manage')).toBe('manageable');
  expect(await after('inspect')).toBe('manageable');
  expect(await after('clean', { clean_steps: [{ interface: 'vendor', step: 'log_passthrough' }] })).toBe('manageable');
  expect(await after('provide')).toBe('available');
  expect(await after('active')).toBe('active');
  expect(await after('rebuild')).toBe('active');
  await fake.setPower(uuid, 'power on');
  await fake.idle();
  expect(await after('deleted')).toBe('available');
  expect(await database.store().nodes.find(uuid)).toMatchObject({ power_state: 'power on', last_error: null, reservation: null });
});
