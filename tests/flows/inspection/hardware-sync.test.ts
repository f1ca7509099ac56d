/**
 * From the host to metal3: a recorder pushes to the whole server, and the controller brings its record into HardwareData and the status of
 * the host, at a small Kubernetes API.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordsOf } from '../../../metal3/hardware-feed';
import { createHardwareSync } from '../../../metal3/hardware-sync';
import { MANAGER } from '../../../metal3/host-writer';
import { createKubernetes } from '../../../metal3/kubernetes';
import { getTagged } from '../../../commands/endpoint';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { readHardware } from '../../../ramdisk-agent/record-hardware';
import { pushOnce } from '../../../ramdisk-agent/recorder';
import { tree } from '../../../ramdisk-agent/system/tree';
import { fileTree, folder } from '../../ramdisk-agent/support';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startFakeKubernetes, type FakeKubernetes } from '../../support/fakes/kubernetes';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
const RULES = [
  { resources: ['baremetalhosts'], verbs: ['get', 'list'] },
  { resources: ['baremetalhosts/status'], verbs: ['patch'] },
  { resources: ['hardwaredata'], verbs: ['get', 'list', 'patch'] },
];
const tokenFile = join(folder(), 'token');
writeFileSync(tokenFile, 'secret');
let whole: WholeServer;
let cluster: FakeKubernetes;
interface Machine {
  readonly root: string;
  readonly uuid: string;
  readonly token: string;
}
const machines = new Map<string, Machine>();

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 2, options: { 'recorder.enabled': true } });
  cluster = await startFakeKubernetes('secret', RULES);
  for (const [at, name] of ['one', 'two'].entries()) {
    const uuid = await whole.enrol(whole.fleet.machines[at]!, { name: `metal3~${name}` });
    const { token } = (await whole.call('POST', `/v1/nodes/${uuid}/hardware/token`)).body as { token: string };
    const root = fileTree({
      'proc/cpuinfo': 'processor\t: 0\n',
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
    });
    machines.set(name, { root, uuid, token });
    cluster.put('baremetalhosts', name, {
      status: { provisioning: { ID: uuid, state: 'provisioned' }, hardware: { hostname: 'before' }, conditions: [] },
    });
    cluster.put('hardwaredata', name, { spec: { hardware: { hostname: 'before' } } });
  }
});
afterAll(async () => {
  await cluster?.close();
  await whole?.close();
});

const push = (name: string) => {
  const { root, uuid, token } = machines.get(name)!;
  return pushOnce({
    pace: { intervalMs: 300_000, jitter: 0.3 },
    identity: async () => ({ url: whole.server.apiUrl!, node: uuid, token }),
    read: () =>
      readHardware({
        tree: tree(root),
        run: async () => '',
        addresses: () => ({}),
        machine: 'x86_64',
        hostname: () => name,
        bootInterface: null,
        bootedFromMedium: false,
      }),
    bootId: 'b',
    trust: { insecure: false },
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    signal: new AbortController().signal,
  });
};
interface Shown {
  readonly hostname?: string;
  readonly storage?: readonly { readonly wwn?: string }[];
  readonly nics?: readonly { readonly speedGbps?: number }[];
}
const statusOf = (name: string) => cluster.get('baremetalhosts', name)!.status['hardware'] as Shown;
const dataOf = (name: string) => cluster.get('hardwaredata', name)!.spec['hardware'] as Shown;

it('the command brings the records to the cluster once', async () => {
  await push('one');
  await push('two');
  const words = [
    'metal3',
    'hardware-sync',
    '--url',
    whole.server.apiUrl!,
    '--kube',
    cluster.url,
    '--kube-token-file',
    tokenFile,
    '--namespace',
    'metal3',
  ];
  const { code, output, errors } = await runCommand([...words, '--once']);
  expect({ code, output, errors }).toEqual({ code: 0, output: 'the hardware of 2 hosts was written\n', errors: '' });
  expect(statusOf('one')).toMatchObject({ hostname: 'one', storage: [{}, {}], nics: [{ speedGbps: 10 }] });
  expect(dataOf('two')).toEqual(statusOf('two'));
});

it('a pulled disk and a lost link are in the status within an interval, and no other host is touched', async () => {
  const stop = new AbortController();
  const kubernetes = createKubernetes({ url: cluster.url, tokenFile, manager: MANAGER });
  let asked = 0;
  const controller = createHardwareSync({
    records: recordsOf((path, tag, signal) => {
      asked++;
      return getTagged(whole.server.apiUrl, path, tag, signal);
    }),
    kubernetes,
    namespaces: undefined,
    intervalMs: 100,
    relistMs: 1000,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    signal: stop.signal,
  });
  const running = controller.run();
  const other = () =>
    (['baremetalhosts', 'hardwaredata'] as const).map((resource) => cluster.get(resource, 'two')!.metadata.resourceVersion);
  const before = other();
  const { root } = machines.get('one')!;
  rmSync(join(root, 'sys/block/sdb'), { recursive: true });
  await push('one');
  await until('the disk is gone', () => statusOf('one').storage?.length === 1);
  expect(statusOf('one').storage).toMatchObject([{ wwn: '0x5000c500a1b2c3d4' }]);
  writeFileSync(join(root, 'sys/class/net/eth0/carrier'), '0\n');
  writeFileSync(join(root, 'sys/class/net/eth0/speed'), '-1\n');
  await push('one');
  await until('the link is gone', () => statusOf('one').nics?.[0]?.speedGbps === undefined);
  expect(dataOf('one')).toEqual(statusOf('one'));
  // A link is no change of the hardware for the server.
  const { body } = await whole.call('GET', `/v1/nodes/${machines.get('one')!.uuid}/hardware/changes`);
  expect(body['changes']).toMatchObject([{ kind: 'vanished', component: 'disk' }]);
  const then = asked;
  const patches = () => cluster.seen.filter(({ verb }) => verb === 'patch').length;
  const written = patches();
  await until('more rounds', () => asked > then + 5);
  expect(patches()).toBe(written);
  expect(other()).toEqual(before);
  stop.abort();
  await running;
  await kubernetes.close();
});

it.each([
  ['no cluster', [], 'use --kube'],
  ['a token over a network in the clear', ['--kube', 'http://192.0.2.1'], '--kube is https://'],
  ['a token file that is missing', ['--kube', 'https://127.0.0.1:1', '--kube-token-file', '/nonexistent'], 'ENOENT'],
])('refuses %s', async (_, words, message) => {
  const command = ['metal3', 'hardware-sync', '--once', '--url', whole.server.apiUrl!, ...words];
  const { code, errors } = await runCommand(command, { KUBERNETES_SERVICE_HOST: undefined });
  expect(code).not.toBe(0);
  expect(errors).toContain(message);
});
