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

it('a graphical console has an address with a token, until it is turned off', async () => {
  const fake = await start({
    ...FAKE,
    'DEFAULT.enabled_console_interfaces': ['fake-graphical', 'vnc', 'no-console'],
    'vnc.public_url': 'http://screens.example/vnc_auto.html',
    'vnc.token_timeout': 100,
  });
  const { uuid } = await fake.createNode({ uuid: randomUUID(), driver: 'fake-hardware', console_interface: 'fake-graphical' });
  const node = () => database.store().nodes.find(uuid);
  const turn = async (on: boolean): Promise<void> => {
    await fake.setConsole(uuid, on);
    await fake.idle();
  };
  await expect(fake.openScreen(uuid, new AbortController().signal)).rejects.toThrow('The console is off.');
  await turn(true);
  const { novnc_secret_token: token } = (await node()).driver_internal_info;
  expect(await fake.consoleInfo(uuid)).toEqual({
    type: 'vnc',
    url: `http://screens.example/vnc_auto.html?path=websockify%3Fnode%3D${uuid}%26token%3D${token}`,
  });
  const screen = await fake.openScreen(uuid, new AbortController().signal);
  expect(screen.kind).toBe('rfb');
  if (screen.kind === 'rfb') screen.stream.destroy();
  await turn(false);
  expect(await fake.consoleInfo(uuid)).toBeNull();
  expect((await node()).driver_internal_info).toEqual({});
  await turn(true);
  expect((await node()).driver_internal_info.novnc_secret_token).not.toBe(token);
});
