/** Fast track with each way to boot a ramdisk: one ramdisk inspects, cleans and deploys. */
import { useDatabase } from '../../support/database';
import { nodeEvents } from '../../support/node-events';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 2,
    options: { 'deploy.fast_track': true, 'DEFAULT.enabled_boot_interfaces': ['ipxe', 'redfish-virtual-media'] },
  });
});
afterAll(() => whole.close(), 30_000);

it.each([
  ['ipxe', 0],
  ['redfish-virtual-media', 1],
])('by %s: the machine is powered on for the ramdisk, and for the instance', async (boot, at) => {
  const uuid = await whole.enrol(whole.fleet.machines[at]!, { boot_interface: boot });
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/properties/capabilities', value: 'boot_mode:bios' }]);
  for (const [verb, state] of [
    ['manage', 'manageable'],
    ['inspect', 'manageable'],
    ['provide', 'available'],
  ] as const) {
    await whole.order(uuid, verb);
    await whole.reach(uuid, state);
  }
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }]);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  const states = await nodeEvents(database, () => whole).eventsOf(uuid, 'power');
  expect(states.filter(({ power_state: now, previous_power_state: before }) => now === 'power on' && before === 'power off')).toHaveLength(
    2,
  );
});
