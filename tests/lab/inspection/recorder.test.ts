/**
 * The recorder in a running machine: API, event and metric show a disk and memory that are plugged in, and what the disks say of themselves is
 * an alert until they are well again. The test prints how long that takes.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { KNOWN, startKnownMachine, type KnownMachine } from './known-machine';
import { openLab, type Lab } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { root } from '../support/venv';

const PATIENCE = 900;
const INTERVAL = 10;
const PORT = 6386;
const KINDS = ['bios', 'boot', 'console', 'deploy', 'firmware', 'inspect', 'management', 'power', 'raid', 'rescue', 'vendor'];
let lab: Lab;
let server: RunningServer;
let machine: KnownMachine;
let uuid: string;

const ask = async (method: string, path: string, body?: object): Promise<string> => {
  const given = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const headers = ['-H', 'content-type: application/json', '-H', 'x-openstack-ironic-api-version: latest'];
  return lab.exec('curl', '-sS', '-m', '60', '-X', method, ...headers, ...given, `http://127.0.0.1:${PORT}${path}`);
};
const json = async <T>(method: string, path: string, body?: object): Promise<T> => JSON.parse(await ask(method, path, body)) as T;
interface Changes {
  readonly changes: readonly {
    readonly kind: string;
    readonly component: string;
    readonly key: string;
    readonly after: Record<string, unknown>;
  }[];
}

/** The ramdisk with another program for its init: a later archive of an initrd replaces files of the earlier ones. */
function ramdiskThatRecords(folder: string, token: string): void {
  const files = join(folder, 'files');
  mkdirSync(files, { recursive: true });
  const recorder = `/bin/agent record --url http://10.0.2.2:${PORT} --node ${uuid} --token-file /token --interval ${INTERVAL} --jitter 0.3`;
  // What other programs read of the same disks.
  const beside = [
    `echo "by nvme-cli: $(nvme smart-log -o json /dev/nvme0n1 | tr -d '\\n')"`,
    `echo "by smartctl: $(smartctl -A /dev/sda | tr '\\n' ';')"`,
  ];
  const lines = [...beside, recorder].map((line) => `  ${line}`).join('\n');
  const init = readFileSync(join(root, 'ramdisk-agent/build/init'), 'utf8').replace(/^ {2}\/bin\/agent$/m, () => lines);
  writeFileSync(join(files, 'init'), init, { mode: 0o755 });
  writeFileSync(join(files, 'token'), token);
  const archive = execFileSync('cpio', ['--quiet', '-o', '-H', 'newc'], { cwd: files, input: 'init\ntoken\n' });
  const ramdisk = readFileSync(join(root, '.cache/ramdisk/initrd'));
  // Each archive begins at a multiple of four bytes.
  writeFileSync(join(folder, 'initrd'), Buffer.concat([ramdisk, Buffer.alloc((4 - (ramdisk.length % 4)) % 4), archive]));
  copyFileSync(join(root, '.cache/ramdisk/vmlinuz'), join(folder, 'vmlinuz'));
}

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('brecorder');
  const fake = Object.fromEntries(KINDS.map((kind) => [`enabled_${kind}_interfaces`, 'fake']));
  const sections = {
    DEFAULT: { enabled_hardware_types: 'fake-hardware', enabled_network_interfaces: 'noop', enabled_storage_interfaces: 'noop', ...fake },
    api: { host_ip: '127.0.0.1', port: PORT },
    recorder: { enabled: 'true', stale_after: 60, check_interval: 5 },
  };
  server = await startServerProcess(join(lab.folder, 'server'), sections, lab.namespace, ['--roles', 'api,conductor']);
  ({ uuid } = await json<{ uuid: string }>('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'known' }));
  const { token } = await json<{ token: string }>('POST', `/v1/nodes/${uuid}/hardware/token`);
  const folder = join(lab.folder, 'records');
  ramdiskThatRecords(folder, token);
  machine = await startKnownMachine(lab, 'recorded', folder, []);
}, 1_000_000);
afterAll(async () => {
  await machine?.stop();
  await server?.stop();
  await lab?.close();
});

it(
  'the recorder reports the hardware, and later a disk and memory that are plugged in',
  async () => {
    let latest: {
      received_at?: string;
      hardware?: { disks: { serial: string }[]; interfaces: { mac_address: string }[]; memory: { modules: object[] } };
    } = {};
    for (const end = Date.now() + PATIENCE * 1000; latest.hardware === undefined && Date.now() < end;) {
      await delay(500);
      latest = await json('GET', '/v1/nodes/known/hardware');
    }
    expect(latest.hardware?.disks.map(({ serial }) => serial).sort()).toEqual(['NVME1', 'SATA1', 'VIRTIO1']);
    expect(latest.hardware?.interfaces.map(({ mac_address: mac }) => mac)).toEqual([...KNOWN.macs]);
    expect(latest.hardware?.memory.modules).toMatchObject([{ locator: 'DIMM 0', size_mb: KNOWN.memoryMiB, manufacturer: 'QEMU' }]);
    expect((await json<Changes>('GET', '/v1/nodes/known/hardware/changes')).changes).toEqual([]);
    const began = Date.now();
    await machine.plug();
    let reported: Changes['changes'] = [];
    for (const end = began + PATIENCE * 1000; reported.length < 3 && Date.now() < end;) {
      await delay(200);
      reported = (await json<Changes>('GET', '/v1/hardware/changes')).changes;
    }
    const seconds = (Date.now() - began) / 1000;
    console.log(`a disk and memory were reported ${seconds.toFixed(1)} s after they were plugged in; the interval is ${INTERVAL} s`);
    expect(reported).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'appeared', component: 'disk', key: 'PLUGGED1' }) as unknown,
        // The PCI function of the disk: virtio's block device.
        expect.objectContaining({
          kind: 'appeared',
          component: 'pci_device',
          after: expect.objectContaining({ vendor_id: '1af4' }) as unknown,
        }) as unknown,
        expect.objectContaining({ kind: 'changed', component: 'memory', after: { present_mb: KNOWN.memoryMiB + 512 } }) as unknown,
      ]),
    );
    const { events } = await json<{ events: { payload: { count: number } }[] }>('GET', '/v1/events?kind=hardware');
    expect(events.length).toBeGreaterThan(0);
    expect(await ask('GET', '/metrics')).toContain('bloomery_recorder_changes_total{component="disk",kind="appeared"} 1');
  },
  (2 * PATIENCE + 60) * 1000,
);

interface Alert {
  readonly source: string;
  readonly rule: string;
  readonly subject: string;
  readonly severity: string;
  readonly text: string;
}
it(
  'what the disks say of themselves is what other programs read, and an alert while a disk expects to fail',
  async () => {
    interface Smart {
      readonly smart: readonly (Readonly<Record<string, unknown>> & { readonly serial: string })[];
    }
    const { smart } = await json<Smart>('GET', '/v1/nodes/known/hardware');
    // The virtio disk has no SMART.
    expect(smart.map(({ serial }) => serial)).toEqual(['NVME1', 'SATA1']);
    const console_ = readFileSync(machine.consoleFile, 'utf8');
    const nvme = JSON.parse(/by nvme-cli: (\{.*\})/.exec(console_)![1]!) as Record<string, number>;
    // nvme-cli shows kelvins.
    expect(smart[0]).toMatchObject({
      passed: true,
      critical_warning: nvme['critical_warning'],
      temperature: nvme['temperature']! - 273,
      life_used: nvme['percent_used'],
    });
    const attribute = (id: number): number => Number(new RegExp(`;\\s*${id} [^;]*\\s(\\d+);`).exec(console_)?.[1]);
    expect(smart[1]).toMatchObject({ passed: true, reallocated_sectors: attribute(5), power_on_hours: attribute(9) });
    console.log(`the server has ${JSON.stringify(smart)}`);

    const alerts = async (): Promise<readonly Alert[]> =>
      (await json<{ alerts: readonly Alert[] }>('GET', '/v1/nodes/known/health')).alerts;
    const seen = async (isSeen: (found: readonly Alert[]) => boolean): Promise<number> => {
      const began = Date.now();
      let found = await alerts();
      for (const end = began + PATIENCE * 1000; !isSeen(found) && Date.now() < end; found = await alerts()) await delay(200);
      expect(isSeen(found)).toBe(true);
      return (Date.now() - began) / 1000;
    };
    // The reliability of the disk is degraded.
    await machine.warn(4);
    const raised = await seen((found) => found.length > 0);
    expect(await alerts()).toMatchObject([{ source: 'smart', rule: 'drive_failing', subject: 'disk NVME1', severity: 'warning' }]);
    await machine.warn(0);
    const cleared = await seen((found) => found.length === 0);
    console.log(`the alert was raised after ${raised.toFixed(1)} s and ended after ${cleared.toFixed(1)} s; the interval is ${INTERVAL} s`);
  },
  (3 * PATIENCE + 60) * 1000,
);

it(
  'the server marks the hardware as stale after the machine has stopped',
  async () => {
    const stale = async (): Promise<boolean> => (await json<{ stale: boolean }>('GET', '/v1/nodes/known/hardware')).stale;
    await machine.stop();
    const end = Date.now() + PATIENCE * 1000;
    while (!(await stale()) && Date.now() < end) await delay(1000);
    expect(await stale()).toBe(true);
    const { events } = await json<{ events: { payload: object }[] }>('GET', '/v1/events?kind=recorder');
    expect(events.map(({ payload }) => payload)).toMatchObject([{ stale: true }]);
  },
  (PATIENCE + 30) * 1000,
);
