/** The end of a deployment by kexec, and flows that follow each other in one ramdisk, through the whole server with simulated machines. */
import { useDatabase } from '../../support/database';
import { nodeEvents } from '../../support/node-events';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    options: { 'conductor.check_provision_state_interval': 1, 'deploy.fast_track': true },
  });
});
afterAll(() => whole.close(), 30_000);

const { eventsOf, powerOns, entriesOf } = nodeEvents(database, () => whole);
const boots = (uuid: string): Promise<readonly string[]> => entriesOf(uuid, 'deployment_boot');

async function available(at: number, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const uuid = await whole.enrol(whole.fleet.machines[at]!, more);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  return uuid;
}
const set = (uuid: string, path: string, value: unknown) => whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);

it('one ramdisk cleans and deploys, and its agent starts the image by kexec: the machine is powered on once', async () => {
  const uuid = await available(0);
  await set(uuid, '/instance_info', whole.deployable({ deploy_kexec: true }));
  await whole.order(uuid, 'active');
  const node = await whole.reach(uuid, 'active');
  expect(node).toMatchObject({ power_state: 'power on', last_error: null });
  expect(node['driver_internal_info']).not.toHaveProperty('kexec');
  expect(node['driver_internal_info']).not.toHaveProperty('agent_url');
  expect(whole.fleet.machines[0]!.control.phase()).toBe('system');
  expect(await powerOns(uuid)).toBe(1);
  expect(await boots(uuid)).toEqual(['The agent started the kernel of the instance by kexec: /boot/vmlinuz']);
  expect((await eventsOf(uuid, 'progress')).filter(({ result }) => result !== undefined)).toEqual([
    { flow: 'deploy', done: 5, of: 6, step: 'deploy.boot_instance', result: 'booted by kexec' },
  ]);
});

it('what prevents a kexec is said, and the machine reboots', async () => {
  const uuid = await available(1);
  await set(uuid, '/instance_info', whole.deployable({ deploy_kexec: true }));
  await set(uuid, '/driver_info/deploy_forces_oob_reboot', true);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  const reason = 'driver_info/deploy_forces_oob_reboot asks for a reboot by the BMC';
  expect(await boots(uuid)).toEqual([`The machine reboots into the instance, without kexec: ${reason}`]);
  expect((await eventsOf(uuid, 'progress')).find(({ result }) => result !== undefined)).toMatchObject({ result: 'rebooted', reason });
  expect(await powerOns(uuid)).toBe(2);
});

it('another value than a boolean is refused when it is set, with the name of its field', async () => {
  const uuid = await whole.enrol(whole.fleet.machines[2]!);
  const message = (field: string): object => ({
    status: 400,
    body: { error_message: expect.stringContaining(`Invalid value of ${field}/deploy_kexec: Unrecognized value 'soon'`) as unknown },
  });
  expect(await set(uuid, '/instance_info/deploy_kexec', 'soon')).toMatchObject(message('instance_info'));
  expect(await set(uuid, '/driver_info/deploy_kexec', 'soon')).toMatchObject(message('driver_info'));
  const made = { driver: 'redfish', driver_info: { deploy_kexec: 'soon' } };
  expect(await whole.call('POST', '/v1/nodes', made)).toMatchObject(message('driver_info'));
});

it('a server that stops after it has told the agent to start the kernel ends the deployment when it is back, and says how', async () => {
  const uuid = await available(3);
  await set(uuid, '/instance_info', whole.deployable({ deploy_kexec: true }));
  await whole.order(uuid, 'active');
  await until('the agent to be told', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    const { kexec } = body['driver_internal_info'] as { readonly kexec?: { readonly told?: true } };
    return kexec?.told === true || body['provision_state'] === 'active';
  });
  await whole.restart();
  await whole.reach(uuid, 'active');
  const said = await boots(uuid);
  expect(said).toHaveLength(1);
  expect(said[0]).toMatch(/by kexec: \/boot\/vmlinuz$|the conductor was restarted after it had told the agent to start the kernel/);
  await until('the machine to run the image', () => whole.fleet.machines[3]!.control.phase() === 'system');
});
