/**
 * The controller for HardwareData with a real kube-apiserver that fails it: CRDs of an older metal3, an API server that dies and is away, a
 * token that ends, hosts that are made again, a second controller, and 1000 hosts. The test prints what a round costs.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningServer } from '../../../demo/lab/server';
import { createKubernetes, KubernetesError } from '../../../metal3/kubernetes';
import { cpuSecondsOf } from '../../support/cpu-time';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { applyObject, startCluster, type Cluster } from '../support/kubernetes';
import {
  API,
  applyManifests,
  caller,
  controllerManifest,
  createHost,
  hostsOf,
  installMetal3,
  programsIn,
  startFakeServer,
  type Caller,
  type Definition,
  type Hardware,
  type Schema,
} from '../support/metal3';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-hardware-sync-away-'));
/** Seconds. */
const [SYNC, RELIST] = [1, 5];
const MANY = 1000;
jest.setTimeout(1_800_000);
const programs = programsIn(folder);
let cluster: Cluster;
let server: RunningServer;
let call: Caller;
let port: number;
const hosts = () => hostsOf(cluster);

const macOf = (at: number): string =>
  `52:54:00:${at
    .toString(16)
    .padStart(6, '0')
    .replace(/(..)(?=.)/g, '$1:')}`;
const NO_DISKS: readonly object[] = [];
const disksOf = (count: number): readonly object[] =>
  Array.from({ length: count }, (_, at) => ({
    name: `/dev/sd${'abcdefgh'[at]}`,
    serial: `S${at}`,
    size: 1_000_000_000_000,
    model: 'Disk',
  }));
const interfaces = (at: number): readonly object[] =>
  Array.from({ length: 4 }, (_, nic) => {
    const place = `0000:0${nic}:00.0`;
    return {
      name: `ens${nic}`,
      mac_address: macOf(4 * at + nic),
      driver: 'ice',
      pci_address: place,
      has_carrier: true,
      speed_mbps: 25_000,
    };
  });
const recorded = (at: number, disks = disksOf(8)): object => ({
  disks,
  interfaces: interfaces(at),
  memory: { physical_mb: 262_144 },
  cpu: { architecture: 'x86_64', count: 64, flags: Array.from({ length: 100 }, (_, flag) => `flag${flag}`) },
});
const INSPECTED = { cpu: { arch: 'x86_64' }, storage: [{ name: '/dev/sda' }], hostname: 'ramdisk' };

interface Node {
  readonly uuid: string;
  readonly token: string;
}
const nodes = new Map<string, Node>();
const push = (name: string, hardware: object): Promise<object> => {
  const { uuid, token } = nodes.get(name)!;
  return call('PUT', `/v1/nodes/${uuid}/hardware`, { hardware }, { 'x-recorder-token': token });
};
async function createNode(name: string, at: number): Promise<void> {
  const { uuid } = await call<{ uuid: string }>('POST', '/v1/nodes', { driver: 'fake-hardware', name: `metal3~${name}` });
  const { token } = await call<{ token: string }>('POST', `/v1/nodes/${uuid}/hardware/token`);
  nodes.set(name, { uuid, token });
  await push(name, recorded(at));
}
const account = (): string => join(folder, 'account');
const newToken = async (): Promise<void> => writeFileSync(account(), await cluster.tokenOf('bloomery-hardware-sync', 'hardware-sync'));
const startController = (name: string, interval = SYNC, relist = RELIST): number => {
  const words = ['--url', `http://127.0.0.1:${port}`, '--kube', cluster.url, '--kube-ca', cluster.ca, '--kube-token-file', account()];
  const all = ['metal3', 'hardware-sync', '--interval', String(interval), '--relist', String(relist), ...words];
  return programs.start(name, process.execPath, [join(root, 'bin/bloomery'), ...all]);
};
const hasDisks =
  (count: number) =>
  ({ storage }: Hardware): boolean =>
    (storage?.length ?? 0) === count && (count === 0 || 'serialNumber' in storage![0]!);

/** Requests to metal3's resources that the API server has answered, by verb. */
async function requests(): Promise<Readonly<Record<string, number>>> {
  const { body } = await cluster.ask('GET', '/metrics');
  const counts: Record<string, number> = {};
  for (const [, labels, count] of String(body['text']).matchAll(/^apiserver_request_total\{(.*group="metal3\.io".*)\} (\d+)$/gm)) {
    const verb = /verb="(\w+)"/.exec(labels!)![1]!;
    counts[verb] = (counts[verb] ?? 0) + Number(count);
  }
  return counts;
}
/** As before 0.12 and 0.13. */
function older({ metadata, spec }: Definition): void {
  const { openAPIV3Schema: schema } = spec.versions[0].schema;
  const status = schema.properties['status'];
  const hardware = { 'hardwaredata.metal3.io': schema.properties['spec'], 'baremetalhosts.metal3.io': status }[metadata.name];
  if (!hardware) return;
  const nics: Schema = hardware.properties['hardware']!.properties['nics']!.items;
  for (const name of ['lldp', 'pciAddress']) delete nics.properties[name];
  delete status?.properties['conditions'];
}

beforeAll(async () => {
  needs({ go: 'golang', openssl: 'openssl' });
  cluster = await startCluster(folder);
  await installMetal3(cluster, older);
  await applyManifests(cluster, controllerManifest());
  await newToken();
  port = await freePort();
  call = caller(`http://127.0.0.1:${port}`);
  server = await startFakeServer(folder, port);
  for (const [at, name] of ['one', 'two'].entries()) {
    await createNode(name, at);
    await createHost(cluster, name, nodes.get(name)!.uuid, INSPECTED, false);
  }
}, 4_000_000);
afterAll(async () => {
  await programs.stopAll();
  await server?.stop();
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('an older metal3 gets what its CRDs have, once, and the rest after its CRDs were updated', async () => {
  startController('sync');
  await hosts().seconds('the record is there', 'one', hasDisks(8));
  await hosts().seconds('the record is there', 'two', hasDisks(8));
  const nic = async () => (await hosts().object('hardwaredata', 'one')).spec.hardware!.nics![0]!;
  expect(await nic()).toMatchObject({ mac: macOf(0), speedGbps: 25 });
  expect(await nic()).not.toHaveProperty('pciAddress');
  const before = await hosts().versions('one');
  await delay((2 * RELIST + 1) * 1000);
  expect(await hosts().versions('one')).toEqual(before);
  await installMetal3(cluster);
  await until('the new members are there', async () => 'pciAddress' in (await nic()), 100);
  await until('the condition is there', async () => (await hosts().condition('one'))?.['status'] === 'True', 100);
});

it('an API server that dies and starts again gets the change that came meanwhile, without a restart of the controller', async () => {
  await cluster.killApi();
  await push('one', recorded(0, disksOf(7)));
  await delay(60_000);
  await cluster.startApi();
  const took = await hosts().seconds('the change is there', 'one', hasDisks(7));
  process.stdout.write(`seconds after the API server was back: ${took.toFixed(1)}; the longest pause is ${4 * SYNC * 1.1}\n`);
  expect(took).toBeLessThan(4 * SYNC * 1.1 + 10);
  const lines = programs
    .output('sync')
    .split('\n')
    .filter((line) => line.includes('does not answer'));
  // One line for each reason, not for each round.
  expect(lines.length).toBeLessThan(10);
});

it('a token that ended is said, and a new one in the file is used', async () => {
  const path = '/api/v1/namespaces/bloomery-hardware-sync/serviceaccounts/hardware-sync';
  expect((await cluster.ask('DELETE', path)).status).toBe(200);
  await until(
    'the token is refused',
    async () => (await cluster.ask('GET', `${API}/hardwaredata`, undefined, { token: readFileSync(account(), 'utf8') })).status === 401,
    500,
  );
  await push('one', recorded(0, disksOf(6)));
  await until('it is said', () => programs.output('sync').includes('answers 401'), 100);
  await applyObject(cluster, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'hardware-sync', namespace: 'bloomery-hardware-sync' },
  });
  await newToken();
  await hosts().seconds('the change is there', 'one', hasDisks(6));
});

it('a list that the cluster forgot while it was read is refused, and the next one is whole', async () => {
  for (let at = 0; at < 101; at++) await createHost(cluster, `list-${at}`, `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`, {});
  const kubernetes = createKubernetes({ url: cluster.url, tokenFile: account(), caFile: cluster.ca, manager: 'test' });
  try {
    const { signal } = new AbortController();
    const read = async (between: () => Promise<void>): Promise<number> => {
      let count = 0;
      for await (const _ of kubernetes.list(`${API}/baremetalhosts`, false, signal)) if (++count === 1) await between();
      return count;
    };
    const change = async (): Promise<void> => {
      for (let times = 0; times < 3; times++) await push('two', recorded(1, disksOf(times)));
      await cluster.ask(
        'PATCH',
        `${API}/baremetalhosts/list-1`,
        { metadata: { labels: { a: 'b' } } },
        { type: 'application/merge-patch+json' },
      );
      await cluster.compact();
    };
    // The API server may still have the state in which the list began, and goes on with it.
    const result = await read(change).catch((error: unknown) => (error instanceof KubernetesError ? error.status : error));
    expect([103, 410]).toContain(result);
    expect(await read(async () => {})).toBe(103);
  } finally {
    await kubernetes.close();
    for (let at = 0; at < 101; at++)
      for (const kind of ['baremetalhosts', 'hardwaredata']) await cluster.ask('DELETE', `${API}/${kind}/list-${at}`);
  }
});

it('a host that is deleted and made again, with a new node of the same name, shows only the hardware of the new node', async () => {
  for (const kind of ['baremetalhosts', 'hardwaredata']) expect((await cluster.ask('DELETE', `${API}/${kind}/two`)).status).toBe(200);
  await call('DELETE', `/v1/nodes/${nodes.get('two')!.uuid}`);
  await delay(2 * SYNC * 1000);
  await createNode('two', 1);
  await push('two', recorded(1, disksOf(3)));
  await createHost(cluster, 'two', nodes.get('two')!.uuid, INSPECTED);
  await hosts().seconds('the record of the new node is there', 'two', hasDisks(3));
});

it('two controllers write what one would write', async () => {
  const writes = async (): Promise<number> => (await requests())['APPLY'] ?? 0;
  startController('second');
  await until('it is ready', () => programs.output('second').includes('is ready'), 100);
  await delay(2 * SYNC * 1000);
  const [before, resting] = [await hosts().versions('one'), await writes()];
  await delay((RELIST + 2) * 1000);
  expect([await hosts().versions('one'), await writes()]).toEqual([before, resting]);
  await push('one', recorded(0, NO_DISKS));
  await hosts().seconds('the change is there', 'one', hasDisks(0));
  await delay(2 * RELIST * 1000);
  // HardwareData and the host, by each of the two at most.
  expect((await writes()) - resting).toBeLessThanOrEqual(4);
  expect(await hosts().condition('one')).toMatchObject({ status: 'True' });
  expect(programs.output('sync') + programs.output('second')).not.toContain('could not be written');
  await programs.stop('second');
  await programs.stop('sync');
});

it(`${MANY} hosts: what the first round, a quiet one, a list of all hosts and a change cost`, async () => {
  const names = Array.from({ length: MANY }, (_, at) => `many-${at}`);
  const queue = [...names.entries()];
  const work = async (): Promise<void> => {
    for (let next = queue.pop(); next; next = queue.pop()) {
      await createNode(next[1], next[0] + 10);
      await createHost(cluster, next[1], nodes.get(next[1])!.uuid, INSPECTED);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  const [interval, relist] = [2, 20];
  const pid = startController('many', interval, relist);
  await until('it is ready', () => programs.output('many').includes('is ready'), 20);
  const cost = async (what: string, wait: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> => {
    const [from, processor, counts] = [performance.now(), cpuSecondsOf(pid), await requests()];
    await wait();
    const [seconds, used, now] = [(performance.now() - from) / 1000, cpuSecondsOf(pid) - processor, await requests()];
    const asked = Object.fromEntries(
      Object.entries(now).flatMap(([verb, count]) => (count === counts[verb] ? [] : [[verb, count - (counts[verb] ?? 0)]])),
    );
    process.stdout.write(`${what}: ${seconds.toFixed(1)} s, ${used.toFixed(2)} s of processor time, requests ${JSON.stringify(asked)}\n`);
    return asked;
  };
  const written = (): number =>
    [...programs.output('many').matchAll(/the hardware of (\d+) hosts/g)].reduce((sum, [, count]) => sum + Number(count), 0);
  const first = await cost('the first round', () => until('all are written', () => written() >= MANY, 100));
  // The hosts of the tests before have their record already.
  expect([MANY, MANY + 2].map((count) => 2 * count)).toContain(first['APPLY']);
  const quiet = await cost('five quiet rounds', () => delay(5 * interval * 1000));
  expect(quiet['APPLY']).toBeUndefined();
  const listed = await cost('rounds with a list of all hosts', () => delay(relist * 1.2 * 1000));
  expect(listed['APPLY']).toBeUndefined();
  const change = await cost('a changed host', async () => {
    await push('many-7', recorded(17, disksOf(7)));
    await hosts().seconds('the change is there', 'many-7', hasDisks(7));
  });
  expect(change).toMatchObject({ APPLY: 2 });
});
