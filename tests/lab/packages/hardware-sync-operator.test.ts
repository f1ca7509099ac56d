/**
 * The controller for HardwareData beside the real baremetal-operator, which registers, inspects, deploys and inspects again a simulated
 * machine: who writes which fields, that neither writes against the other, and what a host shows after each of the operator's steps.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';
import { FIXED_SETTINGS } from '../../../metal3/variables';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { fileTree } from '../../ramdisk-agent/support';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { applyObject, operatorManifests, operatorProgram, startCluster, type Cluster } from '../support/kubernetes';
import {
  API,
  applyManifests,
  caller,
  controllerManifest,
  hostsOf,
  installMetal3,
  programsIn,
  type Caller,
  type Hardware,
  type HostObject,
} from '../support/metal3';
import { needs } from '../support/needs';
import { root } from '../support/venv';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-hardware-sync-operator-'));
const programs = programsIn(folder);
/** Seconds. */
const [INTERVAL, SYNC, RELIST] = [2, 1, 10];
const NAME = 'sim';
jest.setTimeout(1_800_000);
const MANAGER = 'bloomery-hardware-sync';
let cluster: Cluster;
let server: RunningServer;
let fleet: Fleet;
let call: Caller;
let boot: string;
let sha256: string;
let machine: string;
const hosts = () => hostsOf(cluster);
const host = (): Promise<HostObject> => hosts().object('baremetalhosts', NAME);
const data = (): Promise<HostObject> => hosts().object('hardwaredata', NAME);

const sections = (port: number): Sections => {
  const metal3 = Object.entries(FIXED_SETTINGS).filter(([name]) => name.startsWith('DEFAULT.'));
  return {
    DEFAULT: { my_ip: '127.0.0.1', ...Object.fromEntries(metal3.map(([name, value]) => [name.slice('DEFAULT.'.length), value])) },
    api: { host_ip: '127.0.0.1', port },
    conductor: {
      deploy_kernel: `file://${folder}/server/state/httpboot/kernel`,
      deploy_ramdisk: `file://${folder}/server/state/httpboot/ramdisk`,
    },
    boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
    deploy: { erase_devices_priority: 0 },
    inspector: { require_managed_boot: 'false', add_ports: 'all', keep_ports: 'present' },
    recorder: { enabled: 'true', max_pushes_per_minute: 1000 },
  };
};
const urlIn = (ready: string, name: 'API' | 'boot'): string => new RegExp(`${name} (\\S+?),`).exec(ready)![1]!;

async function startOperator(port: number): Promise<void> {
  await applyManifests(cluster, readFileSync(await operatorManifests('config/base/rbac/role.yaml'), 'utf8'));
  const group = 'rbac.authorization.k8s.io';
  await applyObject(cluster, {
    apiVersion: `${group}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'operator' },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'manager-role' },
    subjects: [{ kind: 'ServiceAccount', name: 'operator', namespace: 'metal3' }],
  } as never);
  await applyObject(cluster, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'operator', namespace: 'metal3' } });
  const config = join(folder, 'operator.kubeconfig');
  const named = (kind: string, more: object): object => ({ name: 'c', [kind]: more });
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [named('cluster', { server: cluster.url, 'certificate-authority': cluster.ca })],
      contexts: [named('context', { cluster: 'c', user: 'c', namespace: 'metal3' })],
      users: [named('user', { token: await cluster.tokenOf('metal3', 'operator') })],
    }),
  );
  const env = {
    KUBECONFIG: config,
    POD_NAMESPACE: 'metal3',
    TMPDIR: folder,
    IRONIC_ENDPOINT: `http://127.0.0.1:${port}/v1/`,
    IRONIC_INSECURE: 'true',
    METAL3_AUTH_ROOT_DIR: join(folder, 'none'),
    DEPLOY_KERNEL_URL: `${boot}/kernel`,
    DEPLOY_RAMDISK_URL: `${boot}/ramdisk`,
  };
  const health = `127.0.0.1:${await freePort()}`;
  const words = ['-namespace', 'metal3', '-metrics-addr', '0', '-dev', '-webhook-port', '0', '-health-addr', health];
  programs.start('operator', await operatorProgram(), words, env);
  const isReady = async (): Promise<boolean> => (await fetch(`http://${health}/readyz`).catch(() => undefined))?.ok === true;
  await until('the operator is ready', isReady, 200);
}
async function createHost(): Promise<void> {
  const { redfish, macs } = fleet.machines[0]!;
  const secret = { username: redfish.username, password: redfish.password };
  await applyObject(cluster, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'bmc', namespace: 'metal3' },
    stringData: secret,
  } as never);
  await applyObject(cluster, {
    apiVersion: 'metal3.io/v1alpha1',
    kind: 'BareMetalHost',
    metadata: { name: NAME, namespace: 'metal3' },
    spec: {
      online: true,
      automatedCleaningMode: 'disabled',
      bootMACAddress: macs[0],
      bmc: { address: redfish.address.replace(/^http/, 'redfish+http') + redfish.systemId, credentialsName: 'bmc' },
    },
  } as never);
}
const change = async (content: object): Promise<void> => {
  const { status, body } = await cluster.ask('PATCH', `${API}/baremetalhosts/${NAME}`, content, { type: 'application/merge-patch+json' });
  if (status >= 300) throw new Error(JSON.stringify(body));
};
const annotate = (annotations: object): Promise<void> => change({ metadata: { annotations } });
async function reaches(state: string): Promise<void> {
  await until(
    `the host is ${state}`,
    async () => {
      const { status } = await host();
      if (status?.errorMessage) throw new Error(`${status.errorMessage}\n${server.logEnd()}`);
      return status?.provisioning?.state === state;
    },
    200,
  );
}

/** What the recorder sees: the machine's first interface, and disks. */
let tree: string;
const setDisks = (...disks: readonly string[]): void => {
  rmSync(join(tree, 'sys/block'), { recursive: true, force: true });
  for (const disk of disks) {
    mkdirSync(join(tree, 'sys/block', disk, 'device'), { recursive: true });
    writeFileSync(join(tree, 'sys/block', disk, 'size'), '2048\n');
    writeFileSync(join(tree, 'sys/block', disk, 'device/wwid'), `naa.5000c500a1b2c3${disk === 'sda' ? 'd4' : 'd5'}\n`);
  }
};
async function startRecorder(): Promise<void> {
  const { uuid } = await call<{ uuid: string }>('GET', `/v1/nodes/metal3~${NAME}?fields=uuid`);
  const { token } = await call<{ token: string }>('POST', `/v1/nodes/${uuid}/hardware/token`);
  writeFileSync(join(folder, 'token'), token);
  const words = ['--url', machine, '--node', uuid, '--token-file', join(folder, 'token'), '--root', tree, '--interval', String(INTERVAL)];
  programs.start('recorder', process.execPath, [join(root, 'dist/ramdisk-agent/main.js'), 'record', ...words]);
}
const hasDisks =
  (count: number) =>
  ({ storage }: Hardware): boolean =>
    storage?.length === count && storage[0]!.wwn === '0x5000c500a1b2c3d4';
/**
 * The operator looks at a host once a minute, and the controller lists all hosts more often: for that long, neither of them writes. The
 * operator writes the time of its last update (status.lastUpdated) once more, a minute after an inspection.
 */
async function isQuiet(): Promise<void> {
  const seen = async (): Promise<readonly HostObject[]> => [await host(), await data()];
  const writers: unknown[] = [];
  for (let periods = 0; periods < 3; periods++) {
    const before = await seen();
    await delay(Math.max(65, RELIST + 2) * 1000);
    const written = (await seen()).filter(({ metadata }, at) => metadata.resourceVersion !== before[at]!.metadata.resourceVersion);
    if (written.length === 0) return;
    writers.push(
      ...written.map(({ metadata }) => metadata.managedFields.map(({ manager, subresource, time }) => ({ manager, subresource, time }))),
    );
  }
  throw new Error(`they write again and again: ${JSON.stringify(writers)}`);
}
const managersOf = ({ metadata }: HostObject): readonly string[] => [
  ...new Set(metadata.managedFields.map(({ manager, subresource = 'main' }) => `${manager} ${subresource}`)),
];

beforeAll(async () => {
  needs({ go: 'golang', openssl: 'openssl' });
  await operatorProgram();
  cluster = await startCluster(folder);
  await installMetal3(cluster);
  await applyManifests(cluster, controllerManifest());
  writeFileSync(join(folder, 'account'), await cluster.tokenOf('bloomery-hardware-sync', 'hardware-sync'));
  const port = await freePort();
  machine = `http://127.0.0.1:${port}`;
  call = caller(machine);
  mkdirSync(join(folder, 'server/state/httpboot'), { recursive: true });
  const image = randomBytes(1 << 20);
  sha256 = createHash('sha256').update(image).digest('hex');
  for (const name of ['kernel', 'ramdisk', 'image']) writeFileSync(join(folder, 'server/state/httpboot', name), image);
  server = await startServerProcess(join(folder, 'server'), sections(port));
  boot = urlIn(server.ready, 'boot');
  fleet = await startFleet({
    count: 1,
    bootUrl: boot,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    seed: 1,
  });
  tree = fileTree({
    'proc/cpuinfo': 'processor\t: 0\nmodel name\t: CPU\n',
    'proc/sys/kernel/random/boot_id': 'b\n',
    'sys/class/net/eth0/address': `${fleet.machines[0]!.macs[0]}\n`,
    'sys/class/net/eth0/device': '->../../../devices/pci0000:00/0000:00:01.0',
    'sys/devices/pci0000:00/0000:00:01.0/vendor': '0x8086\n',
    'sys/class/net/eth0/carrier': '1\n',
    'sys/class/net/eth0/speed': '25000\n',
  });
  setDisks('sda', 'sdb');
  const words = ['--url', machine, '--kube', cluster.url, '--kube-ca', cluster.ca, '--kube-token-file', join(folder, 'account')];
  const all = ['metal3', 'hardware-sync', '--interval', String(SYNC), '--relist', String(RELIST), ...words];
  programs.start('sync', process.execPath, [join(root, 'bin/bloomery'), ...all]);
  await startOperator(port);
}, 4_000_000);
afterAll(async () => {
  await programs.stopAll();
  await fleet?.close();
  await server?.stop();
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('the operator registers and inspects the host, and the controller leaves it alone: it has no record', async () => {
  await createHost();
  await reaches('available');
  expect(managersOf(await data())).not.toContainEqual(expect.stringContaining(MANAGER));
  expect((await data()).spec.hardware!.storage!.length).toBeGreaterThan(0);
});

it('a record reaches the host, and neither writes against the other', async () => {
  await startRecorder();
  await hosts().seconds('the record is there', NAME, hasDisks(2));
  setDisks('sda');
  const took = await hosts().seconds('the disk is gone', NAME, hasDisks(1));
  process.stdout.write(`seconds until the host shows a pulled disk: ${took.toFixed(1)}\n`);
  expect(await hosts().condition(NAME)).toMatchObject({ status: 'True' });
  await isQuiet();
  expect(managersOf(await host())).toContain(`${MANAGER} status`);
  expect(managersOf(await data())).toContain(`${MANAGER} main`);
});

it('an inspection writes what it finds, and then the record is there again', async () => {
  const before = (await data()).metadata.uid;
  await annotate({ 'inspect.metal3.io': '' });
  await until('HardwareData is another one', async () => (await data().catch(() => undefined))?.metadata.uid !== before, 50);
  await reaches('available');
  await hosts().seconds('the record is there again', NAME, hasDisks(1));
  await isQuiet();
});

it('a deployment and power keep the record, and the end of the instance ends it', async () => {
  await change({ spec: { image: { url: `${boot}/image`, checksum: sha256, checksumType: 'sha256', format: 'raw' } } });
  await reaches('provisioned');
  // The deployment may have made a token of its own.
  await programs.stop('recorder');
  await startRecorder();
  setDisks('sda', 'sdb');
  await hosts().seconds('the record is there', NAME, hasDisks(2));
  await change({ spec: { online: false } });
  await until('the host is off', async () => !(await host()).status.poweredOn, 200);
  await change({ spec: { online: true } });
  await until('the host is on', async () => (await host()).status.poweredOn, 200);
  expect(hasDisks(2)((await host()).status.hardware)).toBe(true);
  expect(hasDisks(2)((await data()).spec.hardware!)).toBe(true);
  await programs.stop('recorder');
  await change({ spec: { image: null } });
  await reaches('available');
  await until('the record has ended', async () => (await hosts().condition(NAME))?.['reason'] === 'NoRecord', 100);
});

it('disabled inspection, with and without the annotation that sets the hardware, changes nothing that the controller wrote', async () => {
  await startRecorder();
  setDisks('sda');
  await hosts().seconds('the record is there', NAME, hasDisks(1));
  await annotate({ 'inspect.metal3.io': 'disabled', 'inspect.metal3.io/hardwaredetails': JSON.stringify({ hostname: 'by-annotation' }) });
  await until(
    'the operator took the annotation',
    async () => !('inspect.metal3.io/hardwaredetails' in ((await host()).metadata.annotations ?? {})),
    100,
  );
  expect(hasDisks(1)((await host()).status.hardware)).toBe(true);
  await isQuiet();
});

it('the host is deleted, with its node, its HardwareData and its record', async () => {
  await programs.stop('recorder');
  expect((await cluster.ask('DELETE', `${API}/baremetalhosts/${NAME}`)).status).toBe(200);
  await until('the host is gone', async () => (await cluster.ask('GET', `${API}/baremetalhosts/${NAME}`)).status === 404, 200);
  expect((await call<{ hardware: readonly object[] }>('GET', '/v1/hardware')).hardware).toEqual([]);
  expect(programs.output('sync')).not.toContain('could not be written');
  const conflicts = programs.output('operator').match(/the object has been modified/g)?.length ?? 0;
  process.stdout.write(`updates that the operator had to repeat: ${conflicts}\n`);
});
