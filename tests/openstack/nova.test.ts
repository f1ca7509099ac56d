/** A server of Nova on our machines, beside a real Keystone, Neutron, Glance, Placement and Nova: every operation of its life. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet/fleet';
import { startServerProcess, type RunningServer } from '../lab/support/server';
import { openstackClient } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { newImage, startCloud, type Cloud } from './cloud';
import { SWITCH } from './neutron';
import { startNova, type RealNova } from './nova';
import { callerOf, PASSWORD, REGION, type Body } from './service';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-nova-'));
let cloud: Cloud;
let nova: RealNova;
let server: RunningServer;
let fleet: Fleet;
/** Our API, as administrator of the system. */
let api: ReturnType<typeof callerOf>;
let image: Awaited<ReturnType<typeof newImage>>;
let otherImage: typeof image;

interface Node {
  readonly uuid: string;
  readonly machine: FleetMachine;
  readonly networkInterface: string;
}
const nodes: Node[] = [];
const INTERFACES = ['neutron', 'flat'];

beforeAll(async () => {
  cloud = await startCloud(folder);
  image = await newImage(cloud.glance, 'first');
  otherImage = await newImage(cloud.glance, 'second');
  const http = join(folder, 'server/state/httpboot');
  mkdirSync(http, { recursive: true });
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(http, name), randomBytes(1000));
  const [port, boot] = [await freePort(), await freePort()];
  server = await startServerProcess(join(folder, 'server'), {
    ...cloud.sections,
    DEFAULT: {
      ...{ my_ip: '127.0.0.1', auth_strategy: 'keystone', enabled_hardware_types: 'redfish', enabled_boot_interfaces: 'ipxe' },
      ...{ enabled_deploy_interfaces: 'direct', enabled_inspect_interfaces: 'agent', enabled_rescue_interfaces: 'agent,no-rescue' },
      enabled_network_interfaces: 'noop,flat,neutron',
    },
    api: { host_ip: '127.0.0.1', port },
    boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
    conductor: {
      ...{ deploy_kernel: `file://${http}/kernel`, deploy_ramdisk: `file://${http}/ramdisk`, file_url_allowed_paths: folder },
      ...{ rescue_kernel: `file://${http}/kernel`, rescue_ramdisk: `file://${http}/ramdisk` },
    },
  });
  const token = await cloud.systemToken();
  api = callerOf(`http://127.0.0.1:${port}`, () => token, { 'x-openstack-ironic-api-version': 'latest' });
  fleet = await startFleet({
    ...{ count: INTERFACES.length, bootUrl: `http://127.0.0.1:${boot}`, host: '127.0.0.1' },
    ...{ log: silentLog, clock: systemClock, random: randomBytes },
  });
  for (const [index, name] of INTERFACES.entries()) nodes.push(await enroll(fleet.machines[index]!, name));
  nova = await startNova(join(folder, 'nova'), cloud.keystone, `http://127.0.0.1:${port}`);
  for (const name of INTERFACES) await makeFlavor(name);
}, 900_000);
afterAll(async () => {
  await nova?.close();
  await server?.stop();
  await fleet?.close();
  await cloud?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const traitOf = (networkInterface: string): string => `CUSTOM_${networkInterface.toUpperCase()}`;
async function enroll(machine: FleetMachine, networkInterface: string): Promise<Node> {
  const uuid = randomUUID();
  const { macs, redfish } = machine;
  await api('POST', '/v1/nodes', {
    ...{ uuid, driver: 'redfish', network_interface: networkInterface, rescue_interface: 'agent', resource_class: 'baremetal' },
    driver_info: {
      ...{ redfish_address: redfish.address, redfish_system_id: redfish.systemId },
      ...{ redfish_username: redfish.username, redfish_password: redfish.password },
    },
  });
  await api('PUT', `/v1/nodes/${uuid}/traits`, { traits: [traitOf(networkInterface)] });
  for (const [index, address] of macs.slice(0, 2).entries())
    await api('POST', '/v1/ports', {
      ...{ node_uuid: uuid, address, pxe_enabled: index === 0, physical_network: 'physnet1' },
      local_link_connection: { ...SWITCH, port_id: `${networkInterface}-${index}` },
    });
  const node = { uuid, machine, networkInterface };
  for (const [target, ends] of [
    ['manage', 'manageable'],
    ['provide', 'available'],
  ]) {
    await api('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
    await until(`${networkInterface} is ${ends}`, async () => (await stateOf(node)) === ends, 100);
  }
  return node;
}
interface NodeView {
  readonly provision_state: string;
  readonly last_error: string | null;
  readonly instance_uuid: string | null;
  readonly instance_info: Body;
}
const show = async ({ uuid }: Node): Promise<NodeView> => (await api('GET', `/v1/nodes/${uuid}`)) as unknown as NodeView;
async function stateOf(node: Node): Promise<string> {
  const { provision_state: state, last_error: error } = await show(node);
  if (/(?:failed|error)$/.test(state)) throw new Error(`${state}: ${error}`);
  return state;
}

/** A flavor that only the node with this network interface can have. */
async function makeFlavor(networkInterface: string): Promise<void> {
  const flavor = { id: networkInterface, name: networkInterface, ram: 512, vcpus: 1, disk: 1 };
  await nova.call('POST', '/flavors', { flavor });
  await nova.call('POST', `/flavors/${networkInterface}/os-extra_specs`, {
    extra_specs: {
      ...{ 'resources:CUSTOM_BAREMETAL': '1', 'resources:VCPU': '0', 'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0' },
      [`trait:${traitOf(networkInterface)}`]: 'required',
    },
  });
}
interface ServerView {
  readonly id: string;
  readonly status: string;
  readonly 'OS-EXT-STS:task_state': string | null;
  readonly fault?: { readonly message: string };
}
async function serverReaches(id: string, status: string): Promise<void> {
  await until(
    `the server is ${status}`,
    async () => {
      const { server: view } = (await nova.call('GET', `/servers/${id}`)) as unknown as { server: ServerView };
      if (view.status === 'ERROR') throw new Error(`ERROR: ${view.fault?.message}`);
      return view.status === status && view['OS-EXT-STS:task_state'] === null;
    },
    200,
  );
}
async function act(id: string, action: string, parameters: object | null, status: string): Promise<void> {
  await nova.call('POST', `/servers/${id}/action`, { [action]: parameters });
  await serverReaches(id, status);
}
/** The command of users, as administrator of the project `service`. */
async function openstack(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(join(await openstackClient(), 'openstack'), words, {
    timeout: 120_000,
    env: {
      ...{ PATH: process.env['PATH'], HOME: folder, OS_AUTH_URL: cloud.keystone.url, OS_USERNAME: 'nova', OS_PASSWORD: PASSWORD },
      ...{ OS_USER_DOMAIN_ID: 'default', OS_PROJECT_NAME: 'service', OS_PROJECT_DOMAIN_ID: 'default' },
      ...{ OS_REGION_NAME: REGION, OS_IDENTITY_API_VERSION: '3' },
    },
  });
  return stdout.trim();
}
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const contentOf = ({ machine }: Node) => machine.control.content('/dev/sda');
const allocationsOf = async ({ uuid }: Node): Promise<unknown> =>
  (await nova.placement('GET', `/resource_providers/${uuid}/allocations`))['allocations'];

it.each(INTERFACES)(
  'a server lives on a node with the network interface %s, and leaves nothing behind',
  async (networkInterface) => {
    const node = nodes.find((one) => one.networkInterface === networkInterface)!;
    const { machine } = node;
    await until('Placement has the node', async () => {
      const answer = await nova.placement('GET', `/resource_providers?uuid=${node.uuid}`);
      return (answer['resource_providers'] as unknown[]).length === 1;
    });

    const id = await openstack(
      ...['server', 'create', '--image', image.id, '--flavor', networkInterface, '--network', 'private', '--config-drive', 'True'],
      ...['-f', 'value', '-c', 'id', `a server on ${networkInterface}`],
    );
    await serverReaches(id, 'ACTIVE');
    expect(await show(node)).toMatchObject({ provision_state: 'active', instance_uuid: id, instance_info: { image_source: image.id } });
    expect(contentOf(node)).toMatchObject({ sha256: sha256(image.bytes) });
    const configDrive = contentOf(node)!.configDrive!;
    expect(configDrive.includes(id)).toBe(true);
    const [tenant] = await cloud.neutron.ports(`?device_id=${id}`);
    expect(tenant).toMatchObject({
      ...{ network_id: cloud.networks.private, mac_address: machine.macs[0], 'binding:host_id': node.uuid },
      'binding:vnic_type': 'baremetal',
    });
    expect(configDrive.includes(machine.macs[0]!)).toBe(true);
    expect(Object.values((await allocationsOf(node)) as object)).toMatchObject([{ resources: { CUSTOM_BAREMETAL: 1 } }]);

    await act(id, 'os-stop', null, 'SHUTOFF');
    expect(machine.control.phase()).toBe('off');
    await act(id, 'os-start', null, 'ACTIVE');
    await until('the system runs', () => machine.control.phase() === 'system');
    // Nova does not poll the power here: it learns the change from our event.
    await api('PUT', `/v1/nodes/${node.uuid}/states/power`, { target: 'power off' });
    await serverReaches(id, 'SHUTOFF');
    await api('PUT', `/v1/nodes/${node.uuid}/states/power`, { target: 'power on' });
    await serverReaches(id, 'ACTIVE');

    const second = await cloud.neutron.port({ network_id: cloud.networks.private, name: 'second' });
    await nova.call('POST', `/servers/${id}/os-interface`, { interfaceAttachment: { port_id: second.id } });
    const bound = { id: second.id, mac_address: machine.macs[1], 'binding:host_id': node.uuid, device_id: id };
    expect(await cloud.neutron.ports(`?id=${second.id}`)).toMatchObject([bound]);
    await nova.call('DELETE', `/servers/${id}/os-interface/${second.id}`);
    await until('the port is free', async () => (await cloud.neutron.ports(`?id=${second.id}`))[0]!.device_id === '', 100);
    expect(await cloud.neutron.ports(`?id=${second.id}`)).toMatchObject([{ 'binding:host_id': '' }]);
    await cloud.neutron.call('DELETE', `/ports/${second.id}`);

    await act(id, 'rebuild', { imageRef: otherImage.id }, 'ACTIVE');
    expect(contentOf(node)).toMatchObject({ sha256: sha256(otherImage.bytes) });

    await act(id, 'rescue', { adminPass: 'a password' }, 'RESCUE');
    expect((await show(node)).provision_state).toBe('rescue');
    await act(id, 'unrescue', null, 'ACTIVE');
    expect((await show(node)).provision_state).toBe('active');

    await nova.call('DELETE', `/servers/${id}`);
    await until(
      'the server is gone',
      async () => {
        const { servers } = (await nova.call('GET', '/servers')) as { servers: readonly unknown[] };
        return servers.length === 0;
      },
      200,
    );
    await until('the node is available', async () => (await stateOf(node)) === 'available', 100);
    expect(await show(node)).toMatchObject({ instance_uuid: null, instance_info: {} });
    expect(contentOf(node)).toBeUndefined();
    expect(await cloud.neutron.ports()).toEqual([]);
    await until('Placement has no allocation', async () => Object.keys((await allocationsOf(node)) as object).length === 0, 100);
    const { ports } = (await api('GET', '/v1/ports/detail')) as { ports: readonly { readonly internal_info: Body }[] };
    expect(ports.map(({ internal_info: info }) => info)).toEqual([{}, {}, {}, {}]);
  },
  600_000,
);
