/** A server of Nova on our machines, beside a real Keystone, Neutron, Glance, Placement and Nova: every operation of its life. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FleetMachine } from '../../simulator/fleet/fleet';
import { openstackClient } from '../lab/support/venv';
import { newImage } from './services/cloud';
import {
  allocationsOf,
  enroll,
  makeFlavor,
  noAllocationsLeft,
  noServersLeft,
  redfishNode,
  serverReaches,
  show,
  startComputeCloud,
  stateOf,
  waitFor,
  type ComputeCloud,
} from './services/compute';
import type { RealNova } from './services/nova';
import { tryGlanceOfSnapshots } from './services/snapshots';
import { PASSWORD, REGION, type Body } from './services/service';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-nova-'));
let compute: ComputeCloud;
let nova: RealNova;
let image: Awaited<ReturnType<typeof newImage>>;
let otherImage: typeof image;

interface Node {
  readonly uuid: string;
  readonly macs: readonly string[];
  /** Undefined: the hardware is fake. */
  readonly machine: FleetMachine | undefined;
}
const FAKE = {
  driver: 'fake-hardware',
  boot_interface: 'fake',
  deploy_interface: 'fake',
  inspect_interface: 'no-inspect',
  rescue_interface: 'fake',
};
/** Flavor → its network interface, and whether the machine is simulated. */
const FLAVORS: Readonly<Record<string, { readonly networkInterface: string; readonly isSimulated: boolean }>> = {
  neutron: { networkInterface: 'neutron', isSimulated: true },
  flat: { networkInterface: 'flat', isSimulated: true },
  fake: { networkInterface: 'neutron', isSimulated: false },
};
const nodes = new Map<string, Node>();

beforeAll(async () => {
  compute = await startComputeCloud(folder, 2);
  const { api, cloud, fleet } = compute;
  image = await newImage(cloud.glance, 'first');
  otherImage = await newImage(cloud.glance, 'second');
  const free = [...fleet.machines];
  for (const [flavor, { networkInterface, isSimulated }] of Object.entries(FLAVORS)) {
    const machine = isSimulated ? free.shift()! : undefined;
    const macs = machine?.macs ?? ['52:54:00:fa:00:01', '52:54:00:fa:00:02'];
    const fields = { network_interface: networkInterface, ...(machine ? redfishNode(machine) : FAKE) };
    const uuid = await enroll(api, fields, macs, [traitOf(flavor)]);
    // Fake hardware has no power state before its first change, and Nova uses no node without one.
    if (!machine) await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power off' });
    await waitFor('the node has a power state', async () => (await show(api, uuid)).power_state === 'power off', 500);
    nodes.set(flavor, { uuid, macs, machine });
  }
  nova = await compute.startNova();
  for (const flavor of Object.keys(FLAVORS)) await makeFlavor(nova, flavor, traitOf(flavor));
}, 1_800_000);
afterAll(async () => {
  await compute?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const traitOf = (flavor: string): string => `CUSTOM_${flavor.toUpperCase()}`;
async function act(id: string, action: string, parameters: object | null, status: string): Promise<void> {
  await nova.call('POST', `/servers/${id}/action`, { [action]: parameters });
  await serverReaches(nova, id, status);
}
/** The command of users, as administrator of the project `service`. */
async function openstack(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(join(await openstackClient(), 'openstack'), words, {
    timeout: 900_000,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      OS_AUTH_URL: compute.cloud.keystone.url,
      OS_USERNAME: 'nova',
      OS_PASSWORD: PASSWORD,
      OS_USER_DOMAIN_ID: 'default',
      OS_PROJECT_NAME: 'service',
      OS_PROJECT_DOMAIN_ID: 'default',
      OS_REGION_NAME: REGION,
      OS_IDENTITY_API_VERSION: '3',
    },
  });
  return stdout.trim();
}
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const contentOf = ({ machine }: Node) => machine?.control.content('/dev/sda');

it.each(Object.keys(FLAVORS))(
  'Nova runs each operation of a server with the flavor %s on our node, and leaves nothing behind',
  async (flavor) => {
    const { api, cloud } = compute;
    const node = nodes.get(flavor)!;
    const { uuid, macs, machine } = node;
    await waitFor('Placement has the node', async () => {
      const answer = await nova.placement('GET', `/resource_providers?uuid=${uuid}`);
      return (answer['resource_providers'] as unknown[]).length === 1;
    });

    const id = await openstack(
      'server',
      'create',
      '--image',
      image.id,
      '--flavor',
      flavor,
      '--network',
      'private',
      '--config-drive',
      'True',
      '-f',
      'value',
      '-c',
      'id',
      `a server on ${flavor}`,
    );
    await serverReaches(nova, id, 'ACTIVE');
    expect(await show(api, uuid)).toMatchObject({
      provision_state: 'active',
      instance_uuid: id,
      instance_info: { image_source: image.id },
    });
    const [tenant] = await cloud.neutron.ports(`?device_id=${id}`);
    expect(tenant).toMatchObject({
      network_id: cloud.networks.private,
      mac_address: macs[0],
      'binding:host_id': uuid,
      'binding:vnic_type': 'baremetal',
    });
    if (machine) {
      expect(contentOf(node)).toMatchObject({ sha256: sha256(image.bytes) });
      const configDrive = contentOf(node)!.configDrive!;
      expect(configDrive.includes(id)).toBe(true);
      expect(configDrive.includes(macs[0]!)).toBe(true);
    }
    expect(Object.values(await allocationsOf(nova, uuid))).toMatchObject([{ resources: { CUSTOM_BAREMETAL: 1 } }]);

    await act(id, 'os-stop', null, 'SHUTOFF');
    if (machine) expect(machine.control.phase()).toBe('off');
    await act(id, 'os-start', null, 'ACTIVE');
    if (machine) await waitFor('the system runs', () => machine.control.phase() === 'system');
    // Nova does not poll the power here: it learns the change from our event.
    await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power off' });
    await serverReaches(nova, id, 'SHUTOFF');
    await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
    await serverReaches(nova, id, 'ACTIVE');

    const second = await cloud.neutron.port({ network_id: cloud.networks.private, name: 'second' });
    await nova.call('POST', `/servers/${id}/os-interface`, { interfaceAttachment: { port_id: second.id } });
    const bound = { id: second.id, mac_address: macs[1], 'binding:host_id': uuid, device_id: id };
    expect(await cloud.neutron.ports(`?id=${second.id}`)).toMatchObject([bound]);
    await nova.call('DELETE', `/servers/${id}/os-interface/${second.id}`);
    await waitFor('the port is free', async () => (await cloud.neutron.ports(`?id=${second.id}`))[0]!.device_id === '', 100);
    expect(await cloud.neutron.ports(`?id=${second.id}`)).toMatchObject([{ 'binding:host_id': '' }]);
    await cloud.neutron.call('DELETE', `/ports/${second.id}`);

    await act(id, 'rebuild', { imageRef: otherImage.id }, 'ACTIVE');
    if (machine) expect(contentOf(node)).toMatchObject({ sha256: sha256(otherImage.bytes) });

    await act(id, 'rescue', { adminPass: 'a password' }, 'RESCUE');
    expect((await show(api, uuid)).provision_state).toBe('rescue');
    await act(id, 'unrescue', null, 'ACTIVE');
    expect((await show(api, uuid)).provision_state).toBe('active');

    await nova.call('DELETE', `/servers/${id}`);
    await noServersLeft(nova);
    await waitFor('the node is available', async () => (await stateOf(api, uuid)) === 'available', 100);
    expect(await show(api, uuid)).toMatchObject({ instance_uuid: null, instance_info: {} });
    expect(contentOf(node)).toBeUndefined();
    expect(await cloud.neutron.ports()).toEqual([]);
    await noAllocationsLeft(nova, uuid);
    const { ports } = (await api('GET', '/v1/ports/detail')) as { ports: readonly { readonly internal_info: Body }[] };
    expect(ports.map(({ internal_info: info }) => info)).toEqual(Array.from({ length: 6 }, () => ({})));
  },
  3_600_000,
);

interface Inventory {
  readonly total: number;
  readonly reserved: number;
}
it('a node out of service keeps its server, gets no other one, and no server goes to an error', async () => {
  const { api } = compute;
  const { uuid } = nodes.get('flat')!;
  const path = `/v1/nodes/${uuid}/out_of_service`;
  const outage = { reason: 'a fan is replaced', until: new Date(Date.now() + 86_400_000).toISOString() };
  const isReserved = async (): Promise<boolean> => {
    const found = await nova.placement('GET', `/resource_providers/${uuid}/inventories`);
    const inventory = (found['inventories'] as Readonly<Record<string, Inventory>>)['CUSTOM_BAREMETAL'];
    return inventory === undefined || inventory.reserved === inventory.total;
  };
  const statusOf = async (id: string): Promise<unknown> =>
    ((await nova.call('GET', `/servers/${id}`)) as { server: Body }).server['status'];

  const words = ['--image', image.id, '--flavor', 'flat', '--network', 'private', '-f', 'value', '-c', 'id', 'a server'];
  await waitFor('Placement offers the node', async () => !(await isReserved()));
  const id = await openstack('server', 'create', ...words);
  await serverReaches(nova, id, 'ACTIVE');
  await api('PUT', path, outage);
  expect(await show(api, uuid)).toMatchObject({ provision_state: 'active', instance_uuid: id, maintenance: true });
  // A technician switches the machine off and on; our event tells Nova.
  await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power off' });
  await serverReaches(nova, id, 'SHUTOFF');
  await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
  await serverReaches(nova, id, 'ACTIVE');
  await api('DELETE', path);
  expect(await show(api, uuid)).toMatchObject({ provision_state: 'active', instance_uuid: id, maintenance: false });
  expect(await statusOf(id)).toBe('ACTIVE');

  // A user deletes the server meanwhile.
  await api('PUT', path, outage);
  await nova.call('DELETE', `/servers/${id}`);
  await waitFor('the server is gone', async () => {
    const { servers } = (await nova.call('GET', '/servers/detail')) as { servers: readonly { readonly status: string }[] };
    expect(servers.map(({ status }) => status)).not.toContain('ERROR');
    return servers.length === 0;
  });
  await waitFor('its cleaning waits', async () => (await stateOf(api, uuid)) === 'clean wait', 500);
  expect(await show(api, uuid)).toMatchObject({ instance_uuid: null, last_error: null });
  await waitFor('Placement reserves the node', isReserved);
  await api('DELETE', path);
  await waitFor('the node is available', async () => (await stateOf(api, uuid)) === 'available', 500);

  // Nova offers no node that is available and out of service.
  await api('PUT', path, outage);
  await waitFor('Placement reserves the node', isReserved);
  await api('DELETE', path);
  await waitFor('Placement offers the node', async () => !(await isReserved()));
  await noAllocationsLeft(nova, uuid);
}, 3_600_000);

it('a snapshot becomes an image of Glance', () => tryGlanceOfSnapshots(folder, compute.cloud.keystone, compute.cloud.glance), 600_000);
