/**
 * 200 servers at once through a real Nova, on 200 simulated machines: none fails, and no port is left behind.
 * It runs when it is named (`npm run test:openstack -- scale`), and prints what it measured. SERVERS sets another number of servers.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inParallel } from '../../conductor/runtime/parallel';
import { reasonOf } from '../../model/errors';
import { newImage } from './services/cloud';
import {
  enroll,
  makeFlavor,
  noAllocationsLeft,
  noServersLeft,
  redfishNode,
  serverReaches,
  startComputeCloud,
  stateOf,
  waitFor,
  type ComputeCloud,
} from './services/compute';
import type { RealNova } from './services/nova';

/** Requests of this client at the same time. Nova's listener holds 64 connections that wait, and a further one fails after ten seconds. */
const WIDTH = 20;
const COUNT = Number(process.env['SERVERS'] ?? 200);
const TRAIT = 'CUSTOM_MANY';
const folder = mkdtempSync(join(tmpdir(), 'bloomery-scale-'));
let compute: ComputeCloud;
let nova: RealNova;
const nodes: string[] = [];

/** All at once, or a few at a time, and the first failure. */
async function forEach<T>(items: readonly T[], width: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const stopping = new AbortController();
  const errors: unknown[] = [];
  await inParallel(items, width, stopping.signal, async (item) => {
    await work(item).catch((error: unknown) => {
      errors.push([reasonOf(error), reasonOf((error as Error).cause)]);
      stopping.abort();
    });
  });
  expect(errors).toEqual([]);
}

beforeAll(async () => {
  compute = await startComputeCloud(folder, COUNT);
  const { api, fleet } = compute;
  await forEach(fleet.machines, WIDTH, async (machine) => {
    // The life of the servers ends with a cleaning; the nodes need none before it.
    const uuid = await enroll(api, { ...redfishNode(machine), network_interface: 'neutron', automated_clean: false }, machine.macs, [
      TRAIT,
    ]);
    await api('PATCH', `/v1/nodes/${uuid}`, [{ op: 'replace', path: '/automated_clean', value: null }]);
    nodes.push(uuid);
  });
  nova = await compute.startNova();
  await makeFlavor(nova, 'many', TRAIT);
  await waitFor('Placement has all nodes', async () => {
    const answer = await nova.placement('GET', `/resource_providers?required=${TRAIT}`);
    return (answer['resource_providers'] as unknown[]).length === COUNT;
  });
}, 3_600_000);
afterAll(async () => {
  await compute?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

it(`Nova creates ${COUNT} servers at once and deletes them at once, and none fails`, async () => {
  const { api, cloud } = compute;
  const image = await newImage(cloud.glance, 'image');
  const figures: string[] = [];
  const measure = async (what: string, work: () => Promise<void>): Promise<void> => {
    const [start, requests] = [performance.now(), cloud.neutron.requests().length];
    await work();
    const seconds = (performance.now() - start) / 1000;
    figures.push(
      `${what}: ${seconds.toFixed(0)} s, ${((cloud.neutron.requests().length - requests) / COUNT).toFixed(1)} requests to Neutron each`,
    );
  };
  let servers: readonly string[] = [];
  await measure(`${COUNT} servers active`, async () => {
    await nova.call('POST', '/servers', {
      server: {
        name: 'one of many',
        imageRef: image.id,
        flavorRef: 'many',
        networks: [{ uuid: cloud.networks.private }],
        min_count: COUNT,
        max_count: COUNT,
      },
    });
    servers = ((await nova.call('GET', '/servers')) as { servers: readonly { readonly id: string }[] }).servers.map(({ id }) => id);
    await forEach(servers, 1, (id) => serverReaches(nova, id, 'ACTIVE'));
  });
  expect(servers).toHaveLength(COUNT);
  const active = await cloud.neutron.ports();
  expect(active).toHaveLength(COUNT);
  expect(new Set(active.map((port) => port['binding:host_id']))).toEqual(new Set(nodes));

  await measure(`${COUNT} servers deleted, nodes clean`, async () => {
    await forEach(servers, WIDTH, (id) => nova.call('DELETE', `/servers/${id}`));
    await noServersLeft(nova);
    await forEach(nodes, 1, (uuid) => waitFor('the node is available', async () => (await stateOf(api, uuid)) === 'available', 500));
  });
  process.stderr.write(`\n${figures.join('\n')}\n`);
  expect(await cloud.neutron.ports()).toEqual([]);
  await forEach(nodes, 5, (uuid) => noAllocationsLeft(nova, uuid));
}, 7_200_000);
