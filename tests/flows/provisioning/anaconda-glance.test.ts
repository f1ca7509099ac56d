/**
 * Images of Glance that only their owners and administrators may use, in deployments by an administrator: the installer anaconda, an
 * instance in memory, and the agent. A step waits before each of them, so that the request of the administrator has ended.
 * The server starts again in the meantime.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { useDatabase } from '../../support/database';
import { startFakeGlance, type FakeGlance } from '../../support/fakes/fake-glance';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
let fake: FakeGlance;
let files: Server;
/** The firmware is sent once it is resolved. */
let mayCome = Promise.resolve();
let made = 0;
/** Adds an image that belongs to a project of others. @returns its id */
function image(data: string, properties: Readonly<Record<string, string>> = {}): string {
  const id = `3a1f0b5c-2d4e-4f60-8a7b-${String(++made).padStart(12, '0')}`;
  const bytes = Buffer.from(data);
  const fields = { id, status: 'active', visibility: 'private', owner: 'others', size: bytes.length, disk_format: 'raw', ...properties };
  fake.images.set(id, { fields: { container_format: 'bare', checksum: 'c'.repeat(32), ...fields }, data: bytes });
  return id;
}
beforeAll(async () => {
  files = createServer((_, response) => void mayCome.then(() => response.end('firmware bmc 3.1\n'))).listen(0, '127.0.0.1');
  fake = await startFakeGlance();
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    options: {
      'DEFAULT.enabled_deploy_interfaces': ['direct', 'anaconda', 'ramdisk'],
      'glance.auth_type': 'none',
      'glance.endpoint_override': fake.url,
      'DEFAULT.enabled_firmware_interfaces': ['redfish', 'no-firmware'],
      'redfish.firmware_update_status_interval': 1,
      'redfish.firmware_update_validation_interval': 1,
      'redfish.firmware_update_required_successes': 2,
      'redfish.firmware_update_wait_unresponsive_bmc': 1,
      'redfish.firmware_update_bmc_version_check_interval': 1,
      'conductor.check_provision_state_interval': 1,
    },
  });
});
afterAll(async () => {
  await whole.close();
  await fake.close();
  files.close();
  files.closeAllConnections();
}, 30_000);

async function available(deploy_interface: string, instance: object, driverInfo: object = {}) {
  const machine = whole.fleet.machines[enrolled++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, deploy_interface, firmware_interface: 'redfish' });
  await set(uuid, '/instance_info', instance);
  for (const [name, value] of Object.entries(driverInfo)) await set(uuid, `/driver_info/${name}`, value);
  await whole.provide(uuid);
  const script = async () => (await fetch(`${whole.server.bootUrl!}/ipxe/${machine.macs[0]!.replaceAll(':', '-')}`)).text();
  return { uuid, script };
}
let enrolled = 0;
const set = async (uuid: string, path: string, value: unknown): Promise<void> => {
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }])).toMatchObject({ status: 200 });
};
const nodeOf = async (uuid: string) => (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
const refuseFailure = async (uuid: string): Promise<string> => {
  const { provision_state: state, last_error: error } = await nodeOf(uuid);
  if (error !== null) throw new Error(JSON.stringify(error));
  return String(state);
};
/** Starts the server again while the first step waits: the machine gets the firmware, which the conductor polls, later. */
async function orderWaiting(uuid: string, target: string, waiting: string, steps: (first: object) => object): Promise<void> {
  let send = (): void => {};
  mayCome = new Promise((resolve) => (send = resolve));
  const settings = [{ component: 'bmc', url: `http://127.0.0.1:${(files.address() as AddressInfo).port}/bmc-3.1` }];
  await whole.order(uuid, target, { ...steps({ interface: 'firmware', step: 'update', args: { settings } }) });
  await until('the step waits', async () => (await refuseFailure(uuid)) === waiting);
  expect((await nodeOf(uuid))['driver_internal_info']).toMatchObject({ flow_requester: { admin: true, service: false, project: null } });
  await whole.restart();
  send();
}
const deployAfterWait = (uuid: string): Promise<void> =>
  orderWaiting(uuid, 'active', 'wait call-back', (first) => ({ deploy_steps: [{ ...first, priority: 150 }] }));
const textAt = async (url: string) => (await fetch(url)).text();
const argumentsOf = (script: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...script.matchAll(/inst\.(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]));

it('anaconda: all parts come from the properties of the image', async () => {
  const template =
    '# own\nliveimg --url {{ ks_options.liveimg_url }}\n# {{ ks_options.agent_token }} {{ ks_options.heartbeat_url }}\n{{ ks_options.config_drive }}\n';
  const ids = { kernel_id: image('the kernel'), ramdisk_id: image('the ramdisk'), stage2_id: image('the second stage') };
  const properties = { ...ids, ks_template: image(template), os_type: 'linux', disk_file_extension: '.tar.gz' };
  const source = image('a root file system', properties);
  const { uuid, script } = await available('anaconda', { image_source: source });
  expect((await whole.call('GET', `/v1/nodes/${uuid}/validate`)).body).toMatchObject({ deploy: { result: true }, boot: { result: true } });
  await deployAfterWait(uuid);
  await until('the installer can boot', async () => {
    await refuseFailure(uuid);
    return (await script()).includes('inst.ks=');
  });
  const { ks, stage2 } = argumentsOf(await script());
  expect(await textAt(`${stage2!}/LiveOS/squashfs.img`)).toBe('the second stage');
  expect([await textAt(`${stage2!}/kernel`), await textAt(`${stage2!}/ramdisk`)]).toEqual(['the kernel', 'the ramdisk']);
  const kickstart = await textAt(ks!);
  expect(kickstart).toMatch(/^# own\nliveimg --url http:\S+\/image\.tar\.gz\n/);
  expect(await textAt(/liveimg --url (\S+)/.exec(kickstart)![1]!)).toBe('a root file system');
  expect(await nodeOf(uuid)).toMatchObject({
    instance_info: { image_source: source, kernel: ids.kernel_id, ramdisk: ids.ramdisk_id },
    driver_internal_info: { stage2: ids.stage2_id, ks_template: properties.ks_template },
  });
  const [, token, url] = /# (\S+) (http\S+)/.exec(kickstart)!;
  const answer = await fetch(url!, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.72' },
    body: JSON.stringify({ callback_url: '', agent_token: token, agent_status: 'end' }),
  });
  expect(answer.status).toBe(202);
  const node = await whole.reach(uuid, 'active');
  expect(Object.keys(node['driver_internal_info'] as object)).not.toContain('flow_requester');
});

it('anaconda: a property that is missing is named', async () => {
  const source = image('x', { kernel_id: image('k'), ramdisk_id: image('r') });
  const uuid = await whole.enrol(whole.fleet.machines[3]!, { name: 'lacking', deploy_interface: 'anaconda' });
  await set(uuid, '/instance_info', { image_source: source });
  expect((await whole.call('GET', `/v1/nodes/${uuid}/validate`)).body['deploy']).toEqual({
    result: false,
    reason: `Image ${source} is missing the following properties: stage2_id`,
  });
  await whole.call('DELETE', `/v1/nodes/${uuid}`);
});

it('ramdisk: kernel and ramdisk come from the properties of the image', async () => {
  const source = image('nothing', { kernel_id: image('kernel of the instance'), ramdisk_id: image('its ramdisk') });
  const { uuid, script } = await available('ramdisk', { image_source: source });
  await deployAfterWait(uuid);
  await whole.reach(uuid, 'active');
  const kernel = /^kernel (?:--timeout \d+ )?(\S+)/m.exec(await script())![1]!;
  expect(await textAt(kernel)).toBe('kernel of the instance');
});

it('cleaning: the kernel and ramdisk of the agent, which boots after the step', async () => {
  const agent = { deploy_kernel: image('kernel of the agent'), deploy_ramdisk: image('ramdisk of the agent') };
  const { uuid, script } = await available('direct', { image_source: image('a disk') }, agent);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await orderWaiting(uuid, 'clean', 'clean wait', (first) => ({
    clean_steps: [first, { interface: 'deploy', step: 'erase_devices_metadata' }],
  }));
  await until('the agent can boot', async () => {
    await refuseFailure(uuid);
    return /^kernel /m.test(await script());
  });
  const kernel = /^kernel (?:--timeout \d+ )?(\S+)/m.exec(await script())![1]!;
  expect(await textAt(kernel)).toBe('kernel of the agent');
  await whole.reach(uuid, 'manageable');
});
