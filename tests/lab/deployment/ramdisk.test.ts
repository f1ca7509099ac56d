/**
 * The ramdisk by itself, on a machine with every kind of disk that QEMU has: what it reports of them, how it erases them, how much memory
 * and time it needs. QEMU's own network connects it with an API of the test's, on loopback.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { freePort } from '../../support/free-port';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Inventory, JsonObject } from '../../../model/records';
import { BMC_MAC, startIpmiSim, type IpmiSim } from '../ipmi/ipmi-sim';
import { consoleEnd, until } from '../support/machines';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';

const GiB = 2 ** 30;
const MAC = '52:54:00:12:34:56';
const TOKEN = 'T'.repeat(43);
const PATIENCE = 900;
/** Disk → its QEMU devices. */
const DISKS = {
  vda: ['virtio-blk-pci,drive=vda,serial=VIRTIO1'],
  nvme: ['nvme,drive=nvme,serial=NVME1'],
  sata: ['ide-hd,drive=sata,serial=SATA1,wwn=0x5000c500a1b2c3d4'],
  scsi: ['virtio-scsi-pci', 'scsi-hd,drive=scsi,serial=SCSI1,wwn=0x5000c500a1b2c3d5,vendor=ACME,product=Disk'],
  usb: ['qemu-xhci', 'usb-storage,drive=usb,serial=USB1'],
} as const;

const BMC_ADDRESS = '127.0.0.9';
const NO_BOOT = { device: 'none', persistent: false, mode: null } as const;
let folder: string;
let api: Server;
let bmc: IpmiSim;
let qemu: ChildProcess;
let agentPort: number;
let startedAt: number;
let firstCall: number | undefined;
const posted: { readonly path: string; readonly body: JsonObject }[] = [];
const consoleFile = (): string => join(folder, 'console.log');
const diskFile = (name: string): string => join(folder, `${name}.img`);

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'ramdisk-'));
  api = createServer((incoming, response) => {
    firstCall ??= Date.now();
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const path = incoming.url!.split('?')[0]!;
      posted.push({ path, body: parts.length > 0 ? (JSON.parse(Buffer.concat(parts).toString()) as JsonObject) : {} });
      const answers: Record<string, readonly [number, JsonObject]> = {
        '/': [200, { default_version: { version: '1.115' } }],
        '/v1/continue_inspection': [202, { uuid: 'u' }],
        '/v1/lookup': [200, { node: { uuid: 'u' }, config: { heartbeat_timeout: 300, agent_token: TOKEN, tls_min_version: '1.3' } }],
        '/v1/heartbeat/u': [202, {}],
      };
      const [status, body] = answers[path] ?? [404, {}];
      response.writeHead(status).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  agentPort = await freePort();
  const machinePort = await freePort();
  const machine = { name: 'ramdisk', macs: [MAC], isOn: () => true, act: async () => {}, boot: () => NO_BOOT, setBoot: () => {} };
  bmc = await startIpmiSim(machine, { address: BMC_ADDRESS, port: 16230, folder, machinePort });

  for (const name of Object.keys(DISKS)) {
    writeFileSync(diskFile(name), '');
    truncateSync(diskFile(name), name === 'vda' ? 4 * GiB : 5 * GiB);
    const file = openSync(diskFile(name), 'r+');
    for (const place of [0, GiB]) writeSync(file, 'secret', place);
  }
  const url = `http://10.0.2.2:${(api.address() as AddressInfo).port}`;
  const words = ['console=ttyS0', `ipa-api-url=${url}`, `ipa-inspection-callback-url=${url}/v1/continue_inspection`, `BOOTIF=${MAC}`];
  startedAt = Date.now();
  qemu = spawn('qemu-system-x86_64', [
    ...['-machine', 'q35,accel=tcg', '-cpu', 'max', '-m', '512', '-smp', '1', '-nodefaults', '-display', 'none', '-no-reboot'],
    ...['-serial', `file:${consoleFile()}`, '-append', words.join(' ')],
    ...['-kernel', join(root, '.cache/ramdisk/vmlinuz'), '-initrd', join(root, '.cache/ramdisk/initrd')],
    ...['-netdev', `user,id=n,hostfwd=tcp:127.0.0.1:${agentPort}-:9999`, '-device', `virtio-net-pci,netdev=n,mac=${MAC}`],
    ...['-chardev', `socket,id=bmc,host=127.0.0.1,port=${machinePort},reconnect=1`, '-device', 'ipmi-bmc-extern,id=b0,chardev=bmc'],
    ...['-device', 'isa-ipmi-kcs,bmc=b0'],
    ...Object.entries(DISKS).flatMap(([name, devices]) => [
      ...['-drive', `if=none,id=${name},format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap,file=${diskFile(name)}`],
      ...devices.flatMap((device) => ['-device', device]),
    ]),
  ]);
}, 1_000_000);

afterAll(async () => {
  if (qemu.exitCode === null) {
    const ended = once(qemu, 'exit');
    qemu.kill('SIGKILL');
    await ended;
  }
  await bmc.stop();
  api.closeAllConnections();
  await new Promise((resolve) => api.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const bodyOf = (path: string): JsonObject | undefined => posted.find((one) => one.path === path)?.body;
/** Waits until the agent has sent a request for the path. */
const waitFor = (path: string): Promise<void> =>
  until(
    PATIENCE,
    () => `${path}\n${existsSync(consoleFile()) ? consoleEnd({ consoleFile: consoleFile() }) : ''}`,
    () => bodyOf(path) !== undefined,
  );
function command(name: string, params: JsonObject): Promise<JsonObject> {
  return new Promise((resolve, reject) => {
    const path = `/v1/commands/?wait=true&agent_token=${TOKEN}`;
    // The certificate is for the machine's address, which QEMU's network hides.
    const trust = { ca: bodyOf('/v1/heartbeat/u')!['agent_verify_ca'] as string, checkServerIdentity: () => undefined };
    const sent = request({ host: '127.0.0.1', port: agentPort, method: 'POST', path, agent: false, ...trust }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(parts).toString()) as JsonObject));
    });
    sent.on('error', reject);
    sent.end(JSON.stringify({ name, params }));
  });
}
/** The six bytes of a disk from that offset, where beforeAll wrote `secret`. */
const textAt = (name: string, place: number): string => {
  const bytes = Buffer.alloc(6);
  readSync(openSync(diskFile(name), 'r'), bytes, 0, 6, place);
  return bytes.toString('latin1');
};

it(
  'the ramdisk reports the hardware of the machine',
  async () => {
    await waitFor('/v1/continue_inspection');
    const { inventory, root_disk: rootDisk } = bodyOf('/v1/continue_inspection') as unknown as {
      inventory: Inventory;
      root_disk: JsonObject;
    };
    expect(inventory.memory?.physical_mb).toBe(512);
    expect(inventory.interfaces).toMatchObject([{ mac_address: MAC, ipv4_address: '10.0.2.15', driver: 'virtio_net', has_carrier: true }]);
    // Linux names SCSI and USB disks in the order in which it finds them.
    const serials = ['NVME1', 'SATA1', 'SCSI1', 'USB1', 'VIRTIO1'];
    const disks = inventory.disks?.toSorted((a, b) => serials.indexOf(a.serial ?? '') - serials.indexOf(b.serial ?? ''));
    expect(disks).toMatchObject([
      { name: '/dev/nvme0n1', serial: 'NVME1', tran: 'nvme', rotational: false, size: 5 * GiB },
      { name: '/dev/sda', serial: 'SATA1', tran: 'sata', wwn: '0x5000c500a1b2c3d4', vendor: 'ATA' },
      { serial: 'SCSI1', tran: 'virtio', wwn: '0x5000c500a1b2c3d5', vendor: 'ACME', model: 'Disk' },
      { serial: 'USB1', tran: 'usb' },
      { name: '/dev/vda', serial: 'VIRTIO1', tran: 'virtio', size: 4 * GiB },
    ]);
    expect(rootDisk).toMatchObject({ name: '/dev/vda' });
    expect(inventory).toMatchObject({ bmc_address: BMC_ADDRESS, bmc_mac: BMC_MAC });
    process.stderr.write(`ramdisk: ${((firstCall! - startedAt) / 1000).toFixed(1)} s from QEMU's start to the first call\n`);
  },
  (PATIENCE + 10) * 1000,
);

it(
  'the ramdisk erases each disk by a command that the disk supports, except disks in skip_block_devices',
  async () => {
    await waitFor('/v1/heartbeat/u');
    const node = { properties: { skip_block_devices: [{ serial: 'USB1' }] }, driver_internal_info: {} };
    const metadata = { step: { step: 'erase_devices_metadata', interface: 'deploy' }, node, ports: [] };
    expect(await command('clean.execute_clean_step', metadata)).toMatchObject({ command_status: 'SUCCEEDED' });
    execFileSync('sync');
    for (const name of Object.keys(DISKS))
      expect([name, textAt(name, 0), textAt(name, GiB)]).toEqual([name, name === 'usb' ? 'secret' : '\0'.repeat(6), 'secret']);

    // SATA last: QEMU's disk has no erase command of its own, and overwriting takes long.
    const all = { properties: { skip_block_devices: [{ serial: 'USB1' }, { serial: 'SATA1' }] }, driver_internal_info: {} };
    const erase = { step: { step: 'erase_devices', interface: 'deploy' }, node: all, ports: [] };
    expect(await command('clean.execute_clean_step', erase)).toMatchObject({ command_status: 'SUCCEEDED' });
    for (const name of ['vda', 'nvme', 'scsi']) expect([name, textAt(name, GiB)]).toEqual([name, '\0'.repeat(6)]);
    expect([textAt('usb', GiB), textAt('sata', GiB)]).toEqual(['secret', 'secret']);
    const said = readFileSync(consoleFile(), 'latin1');
    expect(said).toContain('Erasing /dev/nvme0n1 by NVMe format');
    expect(said).toContain('Erasing /dev/vda by write zeroes');
  },
  2 * PATIENCE * 1000,
);

it('the agent uses less than 120 MiB, and leaves more than 150 of 512 MiB available', async () => {
  const { command_result: result } = await command('log.collect_system_logs', {});
  const archive = Buffer.from((result as JsonObject)['system_logs'] as string, 'base64');
  const read = (name: string): string => execFileSync('tar', ['-xzOf', '-', name], { input: archive, encoding: 'utf8' });
  const resident = Math.max(...[...read('resident').matchAll(/VmRSS:\s+(\d+) kB/g)].map((match) => Number(match[1]))) / 1024;
  const available = Number(/MemAvailable:\s+(\d+) kB/.exec(read('meminfo'))![1]) / 1024;
  process.stderr.write(`ramdisk: agent ${resident.toFixed(0)} MiB resident, ${available.toFixed(0)} of 512 MiB available\n`);
  expect(resident).toBeLessThan(120);
  expect(available).toBeGreaterThan(150);
});

it(
  'the machine powers off at the command standby.power_off',
  async () => {
    const ended = once(qemu, 'exit');
    // The machine may be off before the agent has answered.
    await command('standby.power_off', {}).catch(() => undefined);
    expect(await ended).toEqual([0, null]);
  },
  PATIENCE * 1000,
);
