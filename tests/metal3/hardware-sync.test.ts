/** The controller with a small Kubernetes API, which refuses what a role does not allow: what it writes, when, and what it leaves alone. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { digestOf } from '../../model/hardware-records';
import { silentLog } from '../../model/log';
import { createHardwareSync } from '../../metal3/hardware-sync';
import { MANAGER, roughAge, type ListedRecord } from '../../metal3/host-writer';
import { createKubernetes, type Kubernetes } from '../../metal3/kubernetes';
import { root } from '../../demo/lab/root';
import { startFakeKubernetes, type FakeKubernetes, type Rule } from '../support/fakes/kubernetes';
import { folder } from '../ramdisk-agent/support';

/** The role of the manifest: the controller needs no more than it. */
const rules = parseAllDocuments(readFileSync(join(root, 'docs/recorder/hardware-sync.yaml'), 'utf8'))
  .map((document) => document.toJS() as { readonly kind: string; readonly rules: readonly Rule[] })
  .find(({ kind }) => kind === 'ClusterRole')!.rules;

const HARDWARE = {
  disks: [
    { name: '/dev/sda', serial: 'A', size: 1000 },
    { name: '/dev/sdb', serial: 'B', size: 1000 },
  ],
  interfaces: [{ name: 'ens1', mac_address: '52:54:00:00:00:01', driver: 'igb', has_carrier: true, speed_mbps: 10_000 }],
  memory: { physical_mb: 65_536 },
};
type Hardware = Partial<typeof HARDWARE>;
const INSPECTED = {
  cpu: { arch: 'x86_64', flags: ['aes'] },
  nics: [{ mac: '52:54:00:00:00:01', name: 'eth0', ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
  storage: [{ serialNumber: 'A' }, { serialNumber: 'B' }],
  ramMebibytes: 65_536,
};
const READY = [{ type: 'Ready', status: 'True', reason: 'Provisioned', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }];
const hostStatus = (uuid: string, more: object = {}) => ({
  provisioning: { ID: uuid, state: 'provisioned' },
  hardware: INSPECTED,
  conditions: READY,
  poweredOn: true,
  ...more,
});

let cluster: FakeKubernetes;
let kubernetes: Kubernetes;
let now: number;
let recorded: Map<string, { hardware: object; row: ListedRecord }>;
let isNews: boolean;
let tokenFile: string;
const stop = new AbortController();

const record = (uuid: string, hardware: Hardware, more: Partial<ListedRecord> = {}): void => {
  const whole = { ...HARDWARE, ...hardware };
  const at = '2026-11-27T20:00:00.000000+00:00';
  const row = {
    node_uuid: uuid,
    node_name: `metal3~${uuid}`,
    digest: digestOf(whole),
    recorded_at: at,
    received_at: at,
    age: 5,
    stale: false,
    ...more,
  };
  recorded.set(uuid, { hardware: whole, row });
  isNews = true;
};
const sync = (client = kubernetes) =>
  createHardwareSync({
    records: {
      async list() {
        if (!isNews) return undefined;
        isNews = false;
        return [...recorded.values()].map(({ row }) => row);
      },
      hardware: async (uuid) => recorded.get(uuid)?.hardware as Readonly<Record<string, unknown>> | undefined,
      inspection: async () => undefined,
    },
    kubernetes: client,
    namespaces: ['metal3'],
    intervalMs: 30_000,
    relistMs: 300_000,
    clock: { now: () => now, sleep: async () => {} },
    random: () => 0.5,
    log: silentLog,
    signal: stop.signal,
  });
const annotations = (name: string) => cluster.get('hardwaredata', name)!.metadata.annotations;
const disks = (name: string) => ({
  data: serials(cluster.get('hardwaredata', name)?.spec['hardware']),
  status: serials(cluster.get('baremetalhosts', name)!.status['hardware']),
});
const serials = (hardware: unknown) =>
  (hardware as { readonly storage?: readonly { readonly serialNumber: string }[] } | undefined)?.storage?.map(
    ({ serialNumber }) => serialNumber,
  );
const condition = (name: string) =>
  (cluster.get('baremetalhosts', name)!.status['conditions'] as readonly Readonly<Record<string, string>>[]).find(
    ({ type }) => type === 'HardwareReported',
  );
const versions = (name: string) =>
  (['baremetalhosts', 'hardwaredata'] as const).map((resource) => cluster.get(resource, name)?.metadata.resourceVersion);

beforeEach(async () => {
  cluster = await startFakeKubernetes('secret', rules);
  tokenFile = join(folder(), 'token');
  writeFileSync(tokenFile, 'secret\n');
  kubernetes = createKubernetes({ url: cluster.url, tokenFile, manager: MANAGER });
  now = Date.parse('2026-11-27T20:00:05Z');
  recorded = new Map();
  for (const name of ['one', 'two', 'three']) {
    cluster.put('baremetalhosts', name, { spec: { online: true }, status: hostStatus(name) });
    cluster.put('hardwaredata', name, { spec: { hardware: INSPECTED } });
    record(name, {});
  }
});
afterEach(async () => {
  await kubernetes.close();
  await cluster.close();
});

it('a pulled disk, a lost memory module and a lost link reach HardwareData and the status of their host only', async () => {
  const controller = sync();
  expect(await controller.round()).toEqual({ written: 3, failed: 0 });
  expect(disks('one')).toEqual({ data: ['A', 'B'], status: ['A', 'B'] });
  expect(cluster.get('baremetalhosts', 'one')).toMatchObject({
    spec: { online: true },
    status: { poweredOn: true, provisioning: { ID: 'one', state: 'provisioned' }, conditions: [{ type: 'Ready', status: 'True' }, {}] },
  });
  expect(condition('one')).toMatchObject({ status: 'True', reason: 'Reported' });
  // What only inspection finds stays.
  expect(cluster.get('hardwaredata', 'one')!.spec['hardware']).toMatchObject({
    cpu: INSPECTED.cpu,
    nics: [{ name: 'ens1', ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
  });
  const others = [versions('two'), versions('three')];
  record('one', { disks: [HARDWARE.disks[1]!] });
  await controller.round();
  expect(disks('one')).toEqual({ data: ['B'], status: ['B'] });
  record('one', { memory: { physical_mb: 49_152 } });
  await controller.round();
  for (const object of [cluster.get('hardwaredata', 'one')!.spec, cluster.get('baremetalhosts', 'one')!.status])
    expect(object['hardware']).toMatchObject({ ramMebibytes: 49_152, storage: [{}, {}] });
  record('one', { interfaces: [{ ...HARDWARE.interfaces[0]!, has_carrier: false }] });
  await controller.round();
  expect((cluster.get('baremetalhosts', 'one')!.status['hardware'] as typeof INSPECTED).nics[0]).not.toHaveProperty('speedGbps');
  expect(annotations('one')).toMatchObject({ 'hardware.bloomery.io/links-down': 'ens1' });
  expect([versions('two'), versions('three')]).toEqual(others);
});

it('does not ask the cluster while no record changes, nor write it again after a restart', async () => {
  const controller = sync();
  await controller.round();
  const before = ['one', 'two', 'three'].map(versions);
  cluster.seen.length = 0;
  for (let rounds = 0; rounds < 9; rounds++) {
    now += 30_000;
    await controller.round();
  }
  expect(cluster.seen).toEqual([]);
  isNews = true;
  await sync().round();
  expect(cluster.seen.filter(({ verb }) => verb === 'patch')).toEqual([]);
  expect(['one', 'two', 'three'].map(versions)).toEqual(before);
});

it('says that a record is stale, since when and for about how long, and that it is fresh again', async () => {
  const controller = sync();
  await controller.round();
  const since = condition('one')!['lastTransitionTime'];
  record('one', {}, { stale: true, age: 1000, received_at: '2026-11-27T19:43:20.000000+00:00' });
  now += 1_000_000;
  await controller.round();
  const text = 'no report since 2026-11-27T19:43:20.000000+00:00, for more than 15 min';
  expect(condition('one')).toMatchObject({ status: 'False', reason: 'Stale', message: text });
  expect(condition('one')!['lastTransitionTime']).not.toBe(since);
  expect(annotations('one')).toMatchObject({ 'hardware.bloomery.io/stale': text });
  expect(disks('one').status).toEqual(['A', 'B']);
  // The server has no news, but time goes on.
  const writes = () => cluster.seen.filter(({ verb, name }) => verb === 'patch' && name === 'one').length;
  const before = writes();
  for (let minutes = 0; minutes < 600; minutes++) {
    now += 60_000;
    await controller.round();
  }
  expect(condition('one')!['message']).toContain('for more than 8 h');
  // 30 min, 1 h, 2 h, 4 h, 8 h; HardwareData and the host.
  expect(writes() - before).toBe(10);
  record('one', {});
  await controller.round();
  expect(condition('one')).toMatchObject({ status: 'True' });
  expect(annotations('one')).not.toHaveProperty(['hardware.bloomery.io/stale']);
});
it.each([
  [0, 'less than 15 min'],
  [900, 'more than 15 min'],
  [3600, 'more than 1 h'],
  [86_400, 'more than 1 d'],
  [86_400 * 100, 'more than 64 d'],
  [Infinity, 'more than 4096 d'],
])('roughAge: %s s', (seconds, text) => expect(roughAge(seconds)).toBe(text));

it('says when a record ends, also after a restart', async () => {
  await sync().round();
  recorded.delete('one');
  isNews = true;
  await sync().round();
  expect(condition('one')).toMatchObject({ status: 'Unknown', reason: 'NoRecord' });
  expect(annotations('one')!['hardware.bloomery.io/stale']).toContain('no recorder');
  expect(disks('one')).toEqual({ data: ['A', 'B'], status: ['A', 'B'] });
});

it('leaves what another manager changed until the record changes, and does not write against it', async () => {
  const controller = sync();
  await controller.round();
  const data = cluster.get('hardwaredata', 'one')!;
  data.spec['hardware'] = { ...(data.spec['hardware'] as object), hostname: 'by-hand' };
  for (let rounds = 0; rounds < 5; rounds++) {
    now += 300_001;
    await controller.round();
  }
  isNews = true;
  await sync().round();
  expect(data.spec['hardware']).toMatchObject({ hostname: 'by-hand' });
  // The status follows HardwareData, as the operator has it for hosts without inspection.
  expect(cluster.get('baremetalhosts', 'one')!.status['hardware']).toMatchObject({ hostname: 'by-hand' });
});
it('writes HardwareData that the operator made anew after an inspection', async () => {
  const controller = sync();
  await controller.round();
  record('one', { disks: [HARDWARE.disks[1]!] });
  await controller.round();
  cluster.put('hardwaredata', 'one', { spec: { hardware: INSPECTED } });
  now += 300_001;
  await controller.round();
  expect(disks('one')).toEqual({ data: ['B'], status: ['B'] });
});

it.each([
  ['of another node', hostStatus('other')],
  ['that is being inspected', hostStatus('one', { provisioning: { ID: 'one', state: 'inspecting' } })],
  ['without a node', { conditions: READY }],
])('does not write a host %s', async (_, status) => {
  cluster.put('baremetalhosts', 'one', { status });
  const before = versions('one');
  await sync().round();
  expect(versions('one')).toEqual(before);
});
it('does not write a host that is paused, nor one whose status names the node of another host', async () => {
  cluster.put('baremetalhosts', 'one', { status: hostStatus('one'), annotations: { 'baremetalhost.metal3.io/paused': '' } });
  cluster.put('baremetalhosts', 'thief', { status: hostStatus('two') });
  const before = [versions('one'), versions('thief')];
  await sync().round();
  expect([versions('one'), versions('thief')]).toEqual(before);
  expect(condition('two')).toMatchObject({ status: 'True' });
});
it('finds a host that is new when its record comes', async () => {
  const controller = sync();
  await controller.round();
  cluster.put('baremetalhosts', 'four', { status: hostStatus('four') });
  cluster.put('hardwaredata', 'four', { spec: { hardware: INSPECTED } });
  record('four', { disks: [] });
  now += 30_000;
  await controller.round();
  expect(disks('four')).toEqual({ data: [], status: [] });
});
it('waits for the first host of a cluster that has none', async () => {
  const empty = await startFakeKubernetes('secret', rules);
  const client = createKubernetes({ url: empty.url, tokenFile, manager: MANAGER });
  try {
    const controller = sync(client);
    expect(await controller.round()).toEqual({ written: 0, failed: 0 });
    empty.put('baremetalhosts', 'one', { status: hostStatus('one') });
    now += 300_001;
    expect(await controller.round()).toEqual({ written: 1, failed: 0 });
  } finally {
    await client.close();
    await empty.close();
  }
});
it('looks once for a host that is in no cluster', async () => {
  const controller = sync();
  await controller.round();
  record('elsewhere', {});
  cluster.seen.length = 0;
  for (let rounds = 0; rounds < 3; rounds++) {
    isNews = true;
    await controller.round();
  }
  expect(cluster.seen.filter(({ verb, resource }) => verb === 'list' && resource === 'baremetalhosts')).toHaveLength(2);
});
it('writes the status of a host without HardwareData, and without conditions if its CRD has none', async () => {
  cluster.put('baremetalhosts', 'bare', { status: { ...hostStatus('bare'), conditions: undefined } });
  record('bare', { disks: [HARDWARE.disks[0]!] });
  await sync().round();
  expect(disks('bare')).toEqual({ data: undefined, status: ['A'] });
});

it('sends what the CRDs of an older metal3 have, once, and the rest after they were updated', async () => {
  cluster.lack('lldp', 'pciAddress', 'conditions');
  for (const name of ['one', 'two', 'three']) {
    cluster.put('baremetalhosts', name, { status: { ...hostStatus(name), conditions: undefined } });
    cluster.put('hardwaredata', name, { spec: { hardware: INSPECTED } });
  }
  record('one', { interfaces: [{ ...HARDWARE.interfaces[0]!, pci_address: '0000:00:01.0' } as (typeof HARDWARE.interfaces)[0]] });
  const controller = sync();
  expect(await controller.round()).toEqual({ written: 3, failed: 0 });
  const nics = () => (cluster.get('hardwaredata', 'one')!.spec['hardware'] as typeof INSPECTED).nics;
  expect(nics()).toEqual([{ mac: '52:54:00:00:00:01', name: 'ens1', ip: '192.0.2.5', pxe: true, speedGbps: 10 }]);
  expect(cluster.get('baremetalhosts', 'one')!.status['conditions']).toBeUndefined();
  const before = versions('one');
  for (let rounds = 0; rounds < 5; rounds++) {
    now += 300_001;
    isNews = true;
    await controller.round();
  }
  isNews = true;
  await sync().round();
  expect(versions('one')).toEqual(before);
  cluster.lack();
  now += 300_001;
  await controller.round();
  expect(nics()).toMatchObject([{ pciAddress: '0000:00:01.0' }]);
  expect(condition('one')).toMatchObject({ status: 'True' });
});
it('an object that is refused does not keep others from being written, and is tried again', async () => {
  const controller = sync();
  cluster.get('hardwaredata', 'two')!.metadata.deletionTimestamp = '2026-11-27T20:00:00Z';
  cluster.put('baremetalhosts', 'one', { status: hostStatus('one', { hardware: { unknown: 1 } }) });
  cluster.put('hardwaredata', 'one', { spec: { hardware: { unknown: 1 } } });
  expect((await controller.round()).written).toBeGreaterThan(0);
  expect(condition('three')).toMatchObject({ status: 'True' });
});
it('goes on after the cluster or its permission was away, with the latest record only', async () => {
  const controller = sync();
  await controller.round();
  for (const status of [500, 403, 401]) {
    cluster.fail(status);
    record('one', { disks: [] });
    const failure = await controller.round().catch((error: unknown) => (error as Error).message);
    expect(failure).toEqual(status === 500 ? { written: 0, failed: 1 } : expect.stringContaining(`answers ${status}`));
  }
  record('one', { disks: [HARDWARE.disks[1]!] });
  cluster.fail(undefined);
  cluster.seen.length = 0;
  await controller.round();
  expect(disks('one')).toEqual({ data: ['B'], status: ['B'] });
  expect(cluster.seen.filter(({ verb }) => verb === 'patch')).toHaveLength(2);
});
it('reads the token again, because the cluster replaces it', async () => {
  const controller = sync();
  writeFileSync(tokenFile, 'another');
  await expect(controller.round()).rejects.toThrow('the Kubernetes API answers 401');
  writeFileSync(tokenFile, 'secret');
  expect(await controller.round()).toEqual({ written: 3, failed: 0 });
});
