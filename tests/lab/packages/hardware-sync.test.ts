/**
 * Recorders, server and controller as programs, with a real kube-apiserver and metal3's CRDs: what changes on a host is in HardwareData and
 * the status of its BareMetalHost an interval later. The manifests are applied as users do. The test prints how long a change takes.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { fileTree } from '../../ramdisk-agent/support';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startCluster, type Cluster, type ClusterAnswer } from '../support/kubernetes';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-hardware-sync-'));
/** Seconds. */
const [INTERVAL, SYNC, STALE] = [3, 2, 15];
const HOSTS = ['one', 'two'] as const;
type Host = (typeof HOSTS)[number];
const API = '/apis/metal3.io/v1alpha1/namespaces/metal3';

let cluster: Cluster;
let port: number;
let server: RunningServer;
const nodes = new Map<string, { readonly uuid: string; readonly token: string; readonly tree: string }>();
const children = new Map<string, ChildProcess>();

const url = (): string => `http://127.0.0.1:${port}`;
const startServer = (): Promise<RunningServer> => {
  const kinds = ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'vendor'];
  const fake = Object.fromEntries(kinds.map((kind) => [`enabled_${kind}_interfaces`, 'fake']));
  return startServerProcess(
    join(folder, 'server'),
    {
      DEFAULT: { enabled_hardware_types: 'fake-hardware', enabled_network_interfaces: 'noop', enabled_storage_interfaces: 'noop', ...fake },
      api: { host_ip: '127.0.0.1', port },
      recorder: { enabled: 'true', stale_after: STALE, check_interval: 2, max_pushes_per_minute: 1000 },
    },
    undefined,
    ['--roles', 'api,conductor'],
  );
};
async function json<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const answer = await fetch(`${url()}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return JSON.parse(text) as T;
}
/** A program in the background; its output is in the folder. */
function start(name: string, words: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' });
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  children.set(name, child);
}
async function stop(name: string): Promise<void> {
  const child = children.get(name);
  children.delete(name);
  if (!child || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
const startRecorder = (name: Host): void => {
  const { uuid, tree } = nodes.get(name)!;
  const words = [
    '--url',
    url(),
    '--node',
    uuid,
    '--token-file',
    join(folder, `${name}.token`),
    '--root',
    tree,
    '--interval',
    String(INTERVAL),
  ];
  start(`recorder-${name}`, [join(root, 'dist/ramdisk-agent/main.js'), 'record', ...words]);
};

interface Applied {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}
const PLURALS: Readonly<Record<string, readonly [string, string]>> = {
  Namespace: ['/api/v1', 'namespaces'],
  ServiceAccount: ['/api/v1', 'serviceaccounts'],
  ConfigMap: ['/api/v1', 'configmaps'],
  Secret: ['/api/v1', 'secrets'],
  ClusterRole: ['/apis/rbac.authorization.k8s.io/v1', 'clusterroles'],
  ClusterRoleBinding: ['/apis/rbac.authorization.k8s.io/v1', 'clusterrolebindings'],
  Deployment: ['/apis/apps/v1', 'deployments'],
  DaemonSet: ['/apis/apps/v1', 'daemonsets'],
};
/** As `kubectl apply --server-side`: unknown members are refused. @returns the kinds */
async function applyManifests(text: string): Promise<readonly string[]> {
  const kinds: string[] = [];
  for (const document of parseAllDocuments(text)) {
    const resource = document.toJS() as Applied;
    const [group, plural] = PLURALS[resource.kind]!;
    const { name, namespace } = resource.metadata;
    const path = `${group}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}/${name}?fieldManager=user&fieldValidation=Strict`;
    const { status, body } = await cluster.ask('PATCH', path, resource, { type: 'application/apply-patch+yaml' });
    if (status >= 300) throw new Error(`${resource.kind} ${name}: ${status} ${JSON.stringify(body)}`);
    kinds.push(resource.kind);
  }
  return kinds;
}

interface Hardware {
  readonly storage?: readonly { readonly wwn?: string }[];
  readonly nics?: readonly { readonly speedGbps?: number; readonly ip?: string }[];
  readonly ramMebibytes?: number;
}
interface HostObject {
  readonly metadata: { readonly resourceVersion: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly hardware?: Hardware; readonly online?: boolean };
  readonly status: {
    readonly hardware: Hardware;
    readonly provisioning: object;
    readonly conditions: readonly Readonly<Record<string, string>>[];
  };
}
const object = async (resource: 'baremetalhosts' | 'hardwaredata', name: Host): Promise<HostObject> =>
  (await cluster.ask('GET', `${API}/${resource}/${name}`)).body as unknown as HostObject;
const condition = async (name: Host) =>
  (await object('baremetalhosts', name)).status.conditions.find(({ type }) => type === 'HardwareReported');
/** Seconds until host and HardwareData show something. */
async function seconds(what: string, name: Host, isSo: (hardware: Hardware) => boolean): Promise<number> {
  const from = performance.now();
  await until(
    what,
    async () => {
      const [host, data] = [await object('baremetalhosts', name), await object('hardwaredata', name)];
      return isSo(host.status.hardware) && isSo(data.spec.hardware!);
    },
    50,
  );
  return (performance.now() - from) / 1000;
}

/** SMBIOS with a memory device for each size in MiB (type 17: the size is at offset 12, and the slot's name is the first text). */
function smbios(...sizes: readonly number[]): Buffer {
  const modules = sizes.map((size, at) => {
    const formatted = Buffer.alloc(40);
    formatted.set([17, 40]);
    formatted.writeUInt16LE(at, 2);
    formatted.writeUInt16LE(size, 12);
    formatted[16] = 1;
    return Buffer.concat([formatted, Buffer.from(`DIMM${at}\0\0`)]);
  });
  return Buffer.concat([...modules, Buffer.from([127, 4, 0xff, 0xff, 0, 0])]);
}
const machineTree = (at: number): string =>
  fileTree({
    'proc/cpuinfo': 'processor\t: 0\nmodel name\t: CPU\n',
    'proc/sys/kernel/random/boot_id': 'b\n',
    ...Object.fromEntries(
      ['sda', 'sdb'].flatMap((disk) => [
        [`sys/block/${disk}/size`, '2048\n'],
        [`sys/block/${disk}/device/wwid`, `naa.5000c500a1b2c3${disk === 'sda' ? 'd4' : 'd5'}\n`],
      ]),
    ),
    'sys/class/net/eth0/address': `52:54:00:00:00:0${at}\n`,
    'sys/class/net/eth0/device': '->../../../devices/pci0000:00/0000:00:01.0',
    'sys/devices/pci0000:00/0000:00:01.0/vendor': '0x8086\n',
    'sys/class/net/eth0/carrier': '1\n',
    'sys/class/net/eth0/speed': '10000\n',
    'sys/firmware/dmi/tables/DMI': smbios(16_384, 16_384),
  });

/** As the operator does after an inspection. */
async function createHost(name: Host, uuid: string, at: number): Promise<void> {
  const created = (answer: ClusterAnswer): ClusterAnswer['body'] => {
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  };
  const version = { apiVersion: 'metal3.io/v1alpha1' };
  const hardware = {
    cpu: { arch: 'x86_64', flags: ['aes'] },
    nics: [{ mac: `52:54:00:00:00:0${at}`, name: 'eth0', ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
    storage: [{ name: '/dev/sda' }, { name: '/dev/sdb' }],
    ramMebibytes: 32_768,
    hostname: 'ramdisk',
  };
  const host = created(
    await cluster.ask('POST', `${API}/baremetalhosts?fieldManager=baremetal-operator`, {
      ...version,
      kind: 'BareMetalHost',
      metadata: { name, namespace: 'metal3' },
      spec: { online: true },
    }),
  );
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Provisioned', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }];
  const status = {
    errorCount: 0,
    errorMessage: '',
    operationalStatus: 'OK',
    poweredOn: true,
    provisioning: { ID: uuid, state: 'provisioned' },
  };
  created(
    await cluster.ask('PUT', `${API}/baremetalhosts/${name}/status?fieldManager=baremetal-operator`, {
      ...host,
      status: { ...status, provisioning: { ...status.provisioning, image: { url: '' } }, hardware, conditions },
    }),
  );
  created(
    await cluster.ask('POST', `${API}/hardwaredata?fieldManager=baremetal-operator`, {
      ...version,
      kind: 'HardwareData',
      metadata: { name, namespace: 'metal3' },
      spec: { hardware },
    }),
  );
}

beforeAll(async () => {
  needs({ go: 'golang', openssl: 'openssl' });
  cluster = await startCluster(folder);
  for (const file of cluster.definitions) {
    const { status } = await cluster.ask(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      parse(readFileSync(file, 'utf8')),
    );
    expect(status).toBe(201);
  }
  await cluster.ask('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'metal3' } });
  await until('the CRDs are served', async () => (await cluster.ask('GET', `${API}/hardwaredata`)).status === 200, 200);
  port = await freePort();
  mkdirSync(join(folder, 'server'));
  server = await startServer();
  for (const [at, name] of HOSTS.entries()) {
    const { uuid } = await json<{ uuid: string }>('POST', '/v1/nodes', { driver: 'fake-hardware', name: `metal3~${name}` });
    const { token } = await json<{ token: string }>('POST', `/v1/nodes/${uuid}/hardware/token`);
    writeFileSync(join(folder, `${name}.token`), token);
    nodes.set(name, { uuid, token, tree: machineTree(at + 1) });
    await createHost(name, uuid, at + 1);
  }
}, 4_000_000);
afterAll(async () => {
  for (const name of children.keys()) await stop(name);
  await server?.stop();
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('the API server accepts the manifests, also those of a machine with a token of its own', async () => {
  const manifest = (name: string): string => readFileSync(join(root, 'docs/recorder', name), 'utf8');
  expect(await applyManifests(manifest('hardware-sync.yaml'))).toContain('Deployment');
  expect(await applyManifests(manifest('daemonset.yaml'))).toContain('DaemonSet');
  const words = ['metal3', 'recorder', 'metal3~two', '--host', 'worker-2', '--image', 'registry.example/bloomery:1', '--url', url()];
  const { stdout } = await run(process.execPath, [join(root, 'bin/bloomery'), ...words]);
  expect(await applyManifests(stdout)).toEqual(['Secret', 'DaemonSet']);
  // The token is that of the node, and valid.
  const { uuid } = nodes.get('two')!;
  const { body } = await cluster.ask('GET', `/api/v1/namespaces/bloomery-recorder/secrets/recorder-${uuid}`);
  const token = Buffer.from((body as { data: { token: string } }).data.token, 'base64').toString();
  writeFileSync(join(folder, 'two.token'), token);
});

it('the accounts may do no more than they need', async () => {
  const token = await cluster.tokenOf('bloomery-hardware-sync', 'hardware-sync');
  writeFileSync(join(folder, 'account'), token);
  const ofRecorder = await cluster.tokenOf('bloomery-recorder', 'recorder');
  const patch = { type: 'application/merge-patch+json', token };
  const status = async (...[method, path, body, more]: Parameters<Cluster['ask']>): Promise<number> =>
    (await cluster.ask(method, path, body, more)).status;
  expect(await status('GET', `${API}/baremetalhosts`, undefined, { token })).toBe(200);
  expect(await status('PATCH', `${API}/baremetalhosts/one`, { spec: { online: false } }, patch)).toBe(403);
  expect(await status('DELETE', `${API}/hardwaredata/one`, undefined, { token })).toBe(403);
  expect(await status('GET', '/api/v1/namespaces/metal3/secrets', undefined, { token })).toBe(403);
  for (const path of ['/api/v1/namespaces/bloomery-recorder/secrets', `${API}/hardwaredata`])
    expect(await status('GET', path, undefined, { token: ofRecorder })).toBe(403);
});

it('a pulled disk, a lost memory module and a lost link reach the host within the intervals, and no other host', async () => {
  for (const name of HOSTS) startRecorder(name);
  const words = ['--url', url(), '--kube', cluster.url, '--kube-ca', cluster.ca, '--kube-token-file', join(folder, 'account')];
  start('sync', [join(root, 'bin/bloomery'), 'metal3', 'hardware-sync', '--interval', String(SYNC), ...words]);
  const isRecorded = ({ storage }: Hardware): boolean => storage?.[0]?.wwn === '0x5000c500a1b2c3d4';
  for (const name of HOSTS) await seconds(`${name} is recorded`, name, isRecorded);
  expect((await object('hardwaredata', 'one')).spec.hardware).toMatchObject({
    cpu: { arch: 'x86_64', flags: ['aes'] },
    nics: [{ ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
    ramMebibytes: 32_768,
  });
  expect((await object('baremetalhosts', 'one')).status).toMatchObject({ provisioning: { state: 'provisioned' }, conditions: [{}, {}] });
  const others = async () => [
    (await object('baremetalhosts', 'two')).metadata.resourceVersion,
    (await object('hardwaredata', 'two')).metadata.resourceVersion,
  ];
  const before = await others();
  const { tree } = nodes.get('one')!;
  const took: Record<string, number> = {};
  rmSync(join(tree, 'sys/block/sdb'), { recursive: true });
  took['disk'] = await seconds('the disk is gone', 'one', ({ storage }) => storage?.length === 1);
  writeFileSync(join(tree, 'sys/firmware/dmi/tables/DMI'), smbios(16_384));
  took['memory'] = await seconds('the memory is gone', 'one', ({ ramMebibytes }) => ramMebibytes === 16_384);
  writeFileSync(join(tree, 'sys/class/net/eth0/carrier'), '0\n');
  writeFileSync(join(tree, 'sys/class/net/eth0/speed'), '-1\n');
  took['link'] = await seconds('the link is gone', 'one', ({ nics }) => nics?.[0]?.speedGbps === undefined);
  expect((await object('hardwaredata', 'one')).metadata.annotations).toMatchObject({ 'hardware.bloomery.io/links-down': 'eth0' });
  expect(await others()).toEqual(before);
  const longest = INTERVAL * 1.3 + SYNC * 1.1;
  process.stdout.write(`seconds until the host shows a change: ${JSON.stringify(took)}; the intervals allow ${longest}\n`);
  // Programs need some time too, more on a busy machine.
  for (const time of Object.values(took)) expect(time).toBeLessThan(longest + 10);
});

it('the recorder goes on while the server is away, and only its latest record counts', async () => {
  const { tree } = nodes.get('one')!;
  await server.kill();
  mkdirSync(join(tree, 'sys/block/sdc/device'), { recursive: true });
  writeFileSync(join(tree, 'sys/block/sdc/size'), '2048\n');
  await delay(2 * INTERVAL * 1000);
  rmSync(join(tree, 'sys/block/sdc'), { recursive: true });
  writeFileSync(join(tree, 'sys/class/net/eth0/carrier'), '1\n');
  writeFileSync(join(tree, 'sys/class/net/eth0/speed'), '25000\n');
  await delay(2 * INTERVAL * 1000);
  server = await startServer();
  await seconds('the link is there', 'one', ({ nics }) => nics?.[0]?.speedGbps === 25);
  const { changes } = await json<{ changes: readonly { component: string; kind: string }[] }>(
    'GET',
    `/v1/nodes/${nodes.get('one')!.uuid}/hardware/changes`,
  );
  expect(changes.filter(({ component }) => component === 'disk')).toEqual([expect.objectContaining({ kind: 'vanished' })]);
});

it('a silent recorder makes the hardware stale, with the time of its last report', async () => {
  await stop('recorder-one');
  await until('it is stale', async () => (await condition('one'))?.['reason'] === 'Stale', 200);
  expect(await condition('one')).toMatchObject({
    status: 'False',
    message: expect.stringMatching(/^no report since 20\S+, for less than 15 min$/) as unknown,
  });
  expect((await object('hardwaredata', 'one')).metadata.annotations?.['hardware.bloomery.io/stale']).toContain('no report since');
  expect(await condition('two')).toMatchObject({ status: 'True' });
  startRecorder('one');
  await until('it is fresh', async () => (await condition('one'))?.['status'] === 'True', 200);
  expect((await object('hardwaredata', 'one')).metadata.annotations).not.toHaveProperty(['hardware.bloomery.io/stale']);
});

it('HardwareData that is made anew gets the record again, and the specification of hosts was never changed', async () => {
  await stop('sync');
  await cluster.ask('DELETE', `${API}/hardwaredata/one`);
  const made = { apiVersion: 'metal3.io/v1alpha1', kind: 'HardwareData', metadata: { name: 'one', namespace: 'metal3' } };
  await cluster.ask('POST', `${API}/hardwaredata`, { ...made, spec: { hardware: { hostname: 'ramdisk', storage: [] } } });
  const words = ['--url', url(), '--kube', cluster.url, '--kube-ca', cluster.ca, '--kube-token-file', join(folder, 'account'), '--once'];
  await run(process.execPath, [join(root, 'bin/bloomery'), 'metal3', 'hardware-sync', ...words]);
  await seconds('the record is there again', 'one', ({ storage }) => storage?.length === 1);
  const { body } = await cluster.ask('GET', `${API}/baremetalhosts/one`);
  const { generation, managedFields } = (
    body as { metadata: { generation: number; managedFields: readonly { manager: string; subresource?: string }[] } }
  ).metadata;
  expect(generation).toBe(1);
  expect(managedFields.filter(({ manager }) => manager === 'bloomery-hardware-sync')).toEqual([
    expect.objectContaining({ subresource: 'status' }),
  ]);
});
