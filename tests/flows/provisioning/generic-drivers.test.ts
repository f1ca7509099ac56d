/** The whole server with simulated machines: deployment by a custom agent and into memory, and rescue by the agent. */
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 5,
    options: {
      'DEFAULT.enabled_hardware_types': ['redfish', 'manual-management'],
      'DEFAULT.enabled_management_interfaces': ['redfish', 'noop'],
      'DEFAULT.enabled_power_interfaces': ['redfish', 'agent'],
      'DEFAULT.enabled_deploy_interfaces': ['direct', 'custom-agent', 'ramdisk'],
      'DEFAULT.enabled_rescue_interfaces': ['no-rescue', 'agent'],
      'redfish.connection_attempts': 1,
      'redfish.connection_retry_interval': 0,
    },
  });
});
afterAll(() => whole.close(), 30_000);

let next = 0;
async function available(more: Readonly<Record<string, unknown>>) {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, ...more });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  return { uuid, machine };
}
const files = () => ({ kernel: whole.image.url.replace('image.raw', 'kernel'), ramdisk: whole.image.url.replace('image.raw', 'ramdisk') });

it('the deploy interface custom-agent runs only the requested steps', async () => {
  const { uuid, machine } = await available({ deploy_interface: 'custom-agent' });
  await whole.order(uuid, 'active', { deploy_steps: [{ interface: 'deploy', step: 'erase_devices_metadata', args: {}, priority: 70 }] });
  expect(await whole.reach(uuid, 'active')).toMatchObject({ power_state: 'power on', last_error: null });
  expect(machine.control.content('/dev/sda')).toBeUndefined();
  const history = await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`);
  expect(JSON.stringify(history.body)).toContain('erase_devices_metadata');
  expect(JSON.stringify(history.body)).not.toContain('write_image');
});

it('the deploy interface ramdisk boots the instance over the network each time, and writes no disk', async () => {
  const { uuid, machine } = await available({ deploy_interface: 'ramdisk', instance_info: files() });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  const script = async () => (await fetch(`${whole.server.bootUrl!}/ipxe/${machine.macs[0]!.replaceAll(':', '-')}`)).text();
  const kernel = /kernel (\S+) root=\/dev\/ram0 text nofb vga=normal initrd=ramdisk/.exec(await script())![1]!;
  const statuses = [kernel, kernel.replace(/[^/]+(?=\/kernel$)/, uuid)].map(async (url) => (await fetch(url)).status);
  expect(await Promise.all(statuses)).toEqual([200, 404]);
  expect(machine.control.isOn()).toBe(true);
  expect(machine.control.content('/dev/sda')).toBeUndefined();
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await script()).toContain('Nothing to boot');
});

it('rescues through the agent, removes the password from the node, and boots the instance again at unrescue', async () => {
  const { uuid, machine } = await available({ rescue_interface: 'agent' });
  const patch = (path: string, value: unknown) => ({ op: 'add', path, value });
  const { kernel, ramdisk } = files();
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, [
    patch('/driver_info/rescue_kernel', kernel),
    patch('/driver_info/rescue_ramdisk', ramdisk),
    patch('/instance_info', whole.deployable()),
  ]);
  expect(answer.status).toBe(200);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(machine.control.phase()).toBe('system');
  await whole.order(uuid, 'rescue', { rescue_password: 's3cret' });
  const rescued = await whole.reach(uuid, 'rescue');
  expect(rescued).toMatchObject({ last_error: null, power_state: 'power on' });
  expect(rescued['instance_info']).not.toHaveProperty('hashed_rescue_password');
  expect(machine.control.phase()).toBe('agent');
  await whole.order(uuid, 'unrescue');
  await whole.reach(uuid, 'active');
  expect(machine.control.isOn()).toBe(true);
  expect(machine.control.content('/dev/sda')).toMatchObject({ sha256: whole.image.sha256 });
});

it('deploys a machine without a BMC through an agent that an operator has started', async () => {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { driver: 'manual-management', driver_info: { fast_track: true }, automated_clean: false });
  expect(await whole.call('GET', `/v1/nodes/${uuid}/validate`)).toMatchObject({
    body: { power: { result: false, reason: `Agent seems offline for node ${uuid}, the agent power interface cannot be used` } },
  });
  // An operator starts the machine, with the agent.
  const { options, apiUrl } = whole.server;
  await database.store().boots.put({
    node_uuid: uuid,
    macs: machine.macs,
    method: 'ipxe',
    purpose: 'ramdisk',
    kernel_args: `ipa-api-url=${apiUrl!}`,
    files: { kernel: options['conductor.deploy_kernel']!, ramdisk: options['conductor.deploy_ramdisk']! },
  });
  // The machine tries the network first, as the noop management interface assumes.
  machine.control.setBoot({ device: 'pxe', persistent: true, mode: null });
  await machine.control.act('on');
  const seen = async () => (await whole.call('GET', `/v1/nodes/${uuid}/validate`)).body['power'];
  await until('its agent', async () => ((await seen()) as { result: boolean }).result);
  expect(await seen()).toEqual({ result: true });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: whole.deployable() }]);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(machine.control.content('/dev/sda')).toMatchObject({ sha256: whole.image.sha256 });
  expect(machine.control.isOn()).toBe(true);
});
