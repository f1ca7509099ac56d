/**
 * Two compute services of Nova on one server of ours, each with a shard: each has only the nodes of its shard, and builds servers on them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newImage } from './services/cloud';
import {
  enroll,
  makeFlavor,
  noServersLeft,
  serverReaches,
  show,
  startComputeCloud,
  stateOf,
  waitFor,
  type ComputeCloud,
} from './services/compute';
import type { RealNova } from './services/nova';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-computes-'));
const GROUP = 'rack1';
const FAKE = {
  driver: 'fake-hardware',
  boot_interface: 'fake',
  deploy_interface: 'fake',
  inspect_interface: 'no-inspect',
  rescue_interface: 'fake',
  network_interface: 'neutron',
  conductor_group: GROUP,
};
let compute: ComputeCloud;
let nova: RealNova;
/** Shard, or none → its node. */
const nodes: Record<string, string> = {};
/** Shard → the API that builds on its nodes. */
const apis: Record<string, Pick<RealNova, 'call'>> = {};

beforeAll(async () => {
  compute = await startComputeCloud(folder, 1, GROUP);
  const { api } = compute;
  for (const [index, shard] of ['a', 'b', 'none'].entries()) {
    const macs = [`52:54:00:fb:0${index}:01`, `52:54:00:fb:0${index}:02`];
    const uuid = await enroll(api, { ...FAKE, ...(shard === 'none' ? {} : { shard }) }, macs, [traitOf(shard)]);
    // Nova uses no node without a power state.
    await api('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power off' });
    await waitFor('the node has a power state', async () => (await show(api, uuid)).power_state === 'power off', 500);
    nodes[shard] = uuid;
  }
  nova = await compute.startNova({ shard: 'a' });
  apis['a'] = nova;
  apis['b'] = await nova.beside('compute-b', { shard: 'b', conductor_group: GROUP });
}, 3_000_000);
afterAll(async () => {
  await compute?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const traitOf = (shard: string): string => `CUSTOM_SHARD_${shard.toUpperCase()}`;

it('each compute service manages only the nodes of its shard', async () => {
  const expected = { [nodes['a']!]: 'compute', [nodes['b']!]: 'compute-b' };
  await waitFor('both services have nodes', async () => Object.keys(await nova.hypervisors()).length >= 2);
  expect(await nova.hypervisors()).toEqual(expected);
  // Placement offers no others.
  const { resource_providers: providers } = await nova.placement('GET', '/resource_providers');
  expect((providers as readonly { readonly uuid: string }[]).map(({ uuid }) => uuid).sort()).toEqual(Object.keys(expected).sort());
}, 1_800_000);

it.each(['a', 'b'])(
  'the compute service of shard %s builds a server on the node of its shard',
  async (shard) => {
    const { api, cloud } = compute;
    const own = apis[shard]!;
    const image = await newImage(cloud.glance, shard);
    await makeFlavor(own, shard, traitOf(shard));
    const server = { name: shard, imageRef: image.id, flavorRef: shard, networks: [{ uuid: cloud.networks.private }] };
    const { server: made } = (await own.call('POST', '/servers', { server })) as unknown as { server: { id: string } };
    await serverReaches(own, made.id, 'ACTIVE');
    expect(await show(api, nodes[shard]!)).toMatchObject({ provision_state: 'active', instance_uuid: made.id });
    const { server: view } = (await own.call('GET', `/servers/${made.id}`)) as { server: object };
    expect(view).toMatchObject({ 'OS-EXT-SRV-ATTR:host': shard === 'a' ? 'compute' : 'compute-b' });
    await own.call('DELETE', `/servers/${made.id}`);
    await noServersLeft(own);
    await waitFor('the node is available', async () => (await stateOf(api, nodes[shard]!)) === 'available', 100);
    expect(await show(api, nodes['none']!)).toMatchObject({ provision_state: 'available', instance_uuid: null });
  },
  3_600_000,
);

it('a node whose shard changes moves to the compute service of the new shard', async () => {
  const { api } = compute;
  await api('PATCH', `/v1/nodes/${nodes['none']}`, [{ op: 'add', path: '/shard', value: 'b' }]);
  const services = async () => (await nova.hypervisors())[nodes['none']!];
  await waitFor('the service of shard b has the node', async () => (await services()) !== undefined);
  expect(await services()).toBe('compute-b');
}, 1_800_000);
