/**
 * Recorders, server and controller as programs, with a real kube-apiserver and metal3's CRDs: what changes on a host is in HardwareData and
 * the status of its BareMetalHost an interval later. The manifests are applied as users do. The test prints how long a change takes.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { RunningServer } from '../../../demo/lab/server';
import { fileTree } from '../../ramdisk-agent/support';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startCluster, type ApplicableObject, type Cluster } from '../support/kubernetes';
import {
  API,
  applyManifests,
  caller,
  startFakeServer,
  type Caller,
  controllerManifest,
  createHost,
  hostsOf,
  installMetal3,
  programsIn,
  type Hardware,
} from '../support/metal3';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-hardware-sync-'));
/** Seconds. */
const [INTERVAL, SYNC, STALE] = [3, 2, 15];
const HOSTS = ['one', 'two'] as const;
type Host = (typeof HOSTS)[number];

let cluster: Cluster;
let port: number;
let server: RunningServer;
const nodes = new Map<string, { readonly uuid: string; readonly token: string; readonly tree: string }>();
const programs = programsIn(folder);

const url = (): string => `http://127.0.0.1:${port}`;
const startServer = (): Promise<RunningServer> => startFakeServer(folder, port, { stale_after: STALE, check_interval: 2 });
const json: Caller = (...words) => caller(url())(...words);
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
  programs.start(`recorder-${name}`, process.execPath, [join(root, 'dist/ramdisk-agent/main.js'), 'record', ...words]);
};

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

const inspected = (at: number): object => ({
  cpu: { arch: 'x86_64', flags: ['aes'] },
  nics: [{ mac: `52:54:00:00:00:0${at}`, name: 'eth0', ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
  storage: [{ name: '/dev/sda' }, { name: '/dev/sdb' }],
  ramMebibytes: 32_768,
  hostname: 'ramdisk',
});
const hosts = () => hostsOf(cluster);

beforeAll(async () => {
  needs({ go: 'golang', openssl: 'openssl' });
  cluster = await startCluster(folder);
  await installMetal3(cluster);
  port = await freePort();
  mkdirSync(join(folder, 'server'));
  server = await startServer();
  for (const [at, name] of HOSTS.entries()) {
    const { uuid } = await json<{ uuid: string }>('POST', '/v1/nodes', { driver: 'fake-hardware', name: `metal3~${name}` });
    const { token } = await json<{ token: string }>('POST', `/v1/nodes/${uuid}/hardware/token`);
    writeFileSync(join(folder, `${name}.token`), token);
    nodes.set(name, { uuid, token, tree: machineTree(at + 1) });
    await createHost(cluster, name, uuid, inspected(at + 1));
  }
}, 4_000_000);
afterAll(async () => {
  await programs.stopAll();
  await server?.stop();
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const kinds = (resources: readonly ApplicableObject[]): readonly string[] => resources.map(({ kind }) => kind);
it('the API server accepts the manifests, also those of a machine with a token of its own', async () => {
  const recorders = readFileSync(join(root, 'docs/recorder/daemonset.yaml'), 'utf8');
  const applied = [...(await applyManifests(cluster, controllerManifest())), ...(await applyManifests(cluster, recorders))];
  expect(kinds(applied)).toEqual(expect.arrayContaining(['Deployment', 'DaemonSet', 'ClusterRole']));
  const words = ['metal3', 'recorder', 'metal3~two', '--host', 'worker-2', '--image', 'registry.example/bloomery:1', '--url', url()];
  const { stdout } = await run(process.execPath, [join(root, 'bin/bloomery'), ...words]);
  const own = await applyManifests(cluster, stdout);
  expect(kinds(own)).toEqual(['Secret', 'DaemonSet']);
  // The token is that of the node, and valid.
  const { uuid } = nodes.get('two')!;
  const { body } = await cluster.ask('GET', `/api/v1/namespaces/bloomery-recorder/secrets/recorder-${uuid}`);
  const token = Buffer.from((body as { data: { token: string } }).data.token, 'base64').toString();
  writeFileSync(join(folder, 'two.token'), token);
  // The namespaces' Pod Security levels allow the pods.
  for (const resource of [...applied, ...own].filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind))) {
    const { spec } = resource as ApplicableObject & { readonly spec: { readonly template: { readonly spec: object } } };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pod' }, spec: spec.template.spec };
    const answer = await cluster.ask(
      'POST',
      `/api/v1/namespaces/${resource.metadata.namespace}/pods?dryRun=All&fieldValidation=Strict`,
      pod,
    );
    expect(answer).toMatchObject({ status: 201 });
  }
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
  programs.start('sync', process.execPath, [join(root, 'bin/bloomery'), 'metal3', 'hardware-sync', '--interval', String(SYNC), ...words]);
  const isRecorded = ({ storage }: Hardware): boolean => storage?.[0]?.wwn === '0x5000c500a1b2c3d4';
  for (const name of HOSTS) await hosts().seconds(`${name} is recorded`, name, isRecorded);
  expect((await hosts().object('hardwaredata', 'one')).spec.hardware).toMatchObject({
    cpu: { arch: 'x86_64', flags: ['aes'] },
    nics: [{ ip: '192.0.2.5', pxe: true, speedGbps: 10 }],
    ramMebibytes: 32_768,
  });
  expect((await hosts().object('baremetalhosts', 'one')).status).toMatchObject({
    provisioning: { state: 'provisioned' },
    conditions: [{}, {}],
  });
  const before = await hosts().versions('two');
  const { tree } = nodes.get('one')!;
  const took: Record<string, number> = {};
  rmSync(join(tree, 'sys/block/sdb'), { recursive: true });
  took['disk'] = await hosts().seconds('the disk is gone', 'one', ({ storage }) => storage?.length === 1);
  writeFileSync(join(tree, 'sys/firmware/dmi/tables/DMI'), smbios(16_384));
  took['memory'] = await hosts().seconds('the memory is gone', 'one', ({ ramMebibytes }) => ramMebibytes === 16_384);
  writeFileSync(join(tree, 'sys/class/net/eth0/carrier'), '0\n');
  writeFileSync(join(tree, 'sys/class/net/eth0/speed'), '-1\n');
  took['link'] = await hosts().seconds('the link is gone', 'one', ({ nics }) => nics?.[0]?.speedGbps === undefined);
  expect((await hosts().object('hardwaredata', 'one')).metadata.annotations).toMatchObject({ 'hardware.bloomery.io/links-down': 'eth0' });
  expect(await hosts().versions('two')).toEqual(before);
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
  await hosts().seconds('the link is there', 'one', ({ nics }) => nics?.[0]?.speedGbps === 25);
  const { changes } = await json<{ changes: readonly { component: string; kind: string }[] }>(
    'GET',
    `/v1/nodes/${nodes.get('one')!.uuid}/hardware/changes`,
  );
  expect(changes.filter(({ component }) => component === 'disk')).toEqual([expect.objectContaining({ kind: 'vanished' })]);
});

it('a silent recorder makes the hardware stale, with the time of its last report', async () => {
  await programs.stop('recorder-one');
  await until('it is stale', async () => (await hosts().condition('one'))?.['reason'] === 'Stale', 200);
  expect(await hosts().condition('one')).toMatchObject({
    status: 'False',
    message: expect.stringMatching(/^no report since 20\S+, for less than 15 min$/) as unknown,
  });
  expect((await hosts().object('hardwaredata', 'one')).metadata.annotations?.['hardware.bloomery.io/stale']).toContain('no report since');
  expect(await hosts().condition('two')).toMatchObject({ status: 'True' });
  startRecorder('one');
  await until('it is fresh', async () => (await hosts().condition('one'))?.['status'] === 'True', 200);
  expect((await hosts().object('hardwaredata', 'one')).metadata.annotations).not.toHaveProperty(['hardware.bloomery.io/stale']);
});

it('HardwareData that is made anew gets the record again, and the specification of hosts was never changed', async () => {
  await programs.stop('sync');
  await cluster.ask('DELETE', `${API}/hardwaredata/one`);
  const made = { apiVersion: 'metal3.io/v1alpha1', kind: 'HardwareData', metadata: { name: 'one', namespace: 'metal3' } };
  await cluster.ask('POST', `${API}/hardwaredata`, { ...made, spec: { hardware: { hostname: 'ramdisk', storage: [] } } });
  const words = ['--url', url(), '--kube', cluster.url, '--kube-ca', cluster.ca, '--kube-token-file', join(folder, 'account'), '--once'];
  await run(process.execPath, [join(root, 'bin/bloomery'), 'metal3', 'hardware-sync', ...words]);
  await hosts().seconds('the record is there again', 'one', ({ storage }) => storage?.length === 1);
  const { body } = await cluster.ask('GET', `${API}/baremetalhosts/one`);
  const { generation, managedFields } = (
    body as { metadata: { generation: number; managedFields: readonly { manager: string; subresource?: string }[] } }
  ).metadata;
  expect(generation).toBe(1);
  expect(managedFields.filter(({ manager }) => manager === 'bloomery-hardware-sync')).toEqual([
    expect.objectContaining({ subresource: 'status' }),
  ]);
});
