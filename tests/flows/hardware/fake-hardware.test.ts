/** The conductor with the real table of drivers: it starts with the default options, and fake hardware goes through a whole life. */
import { randomUUID } from 'node:crypto';
import type { Options } from '../../../config/options';
import type { RunningConductor } from '../../../conductor/index';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';
import { FAKE, startFake } from '../../support/fakes/fake-hardware';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  await conductor?.stop();
  await database.clear();
});
const start = async (changes: Partial<Options> = {}): Promise<RunningConductor> =>
  (conductor = await startFake(database.store(), clock, changes));

it('the conductor starts with the default options', async () => {
  await start();
  expect(Object.keys((await database.store().conductors.list(60))[0]!.drivers).sort()).toEqual(['ipmi', 'redfish']);
});

it('a node with fake hardware goes from enroll to active and back', async () => {
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
