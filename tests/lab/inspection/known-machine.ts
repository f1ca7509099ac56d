/**
 * A machine whose hardware is all known: two sockets that are two NUMA nodes, two interfaces, disks of three kinds, and room for more. It
 * boots a kernel and a ramdisk. Its second interface is connected to a "switch", the program lldpd. Root.
 */
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Inventory, JsonObject } from '../../../model/records';
import { consoleEnd, until, type Lab } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { timeoutSignal } from '../../../wire/timeout-signal';

const run = promisify(execFile);
const GiB = 2 ** 30;
const API_PORT = 6385;
const TAP = 'switch0';
const TOKEN = 'T'.repeat(43);

/** The machine's configuration, and what an inventory must contain of it. */
export const KNOWN = {
  memoryMiB: 1536,
  macs: ['52:54:00:12:34:56', '52:54:00:12:34:57'],
  vendor: { manufacturer: 'Lab Works', product_name: 'Known 7', serial_number: 'KNOWN-0001' },
  firmware: { vendor: 'Lab Firmware', version: '7.7', build_date: '01/02/2026' },
  switch: { name: 'switch-7.lab', port: 'port-5' },
} as const;
const DISKS = {
  virtio: { size: 5 * GiB, devices: ['virtio-blk-pci,drive=virtio,serial=VIRTIO1,bus=pcie.0'] },
  nvme: { size: 6 * GiB, devices: ['nvme,id=warning-disk,drive=nvme,serial=NVME1,bus=pcie.0'] },
  sata: { size: 7 * GiB, devices: ['ide-hd,drive=sata,serial=SATA1,wwn=0x5000c500a1b2c3d4,rotation_rate=7200,bus=ide.0'] },
} as const;

interface Posted {
  readonly path: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly body: JsonObject | null;
}
export interface KnownMachine {
  readonly startedAt: number;
  readonly consoleFile: string;
  posted(): readonly Posted[];
  /** Waits for the agent's report of the inspection. */
  inspection(seconds: number): Promise<{ readonly inventory: Inventory } & JsonObject>;
  /** Runs a command of the agent's API, after the first heartbeat. */
  command(name: string, seconds: number): Promise<JsonObject>;
  /** Plugs in a virtio disk of 1 GiB with the serial PLUGGED1, and 512 MiB of memory. */
  plug(): Promise<void>;
  /** Sets the bits of Critical Warning in the SMART log of the NVMe disk. */
  warn(bits: number): Promise<void>;
  stop(): Promise<void>;
}

/** Sends QMP commands, one after the other; rejects with the first error. */
async function qmp(path: string, commands: readonly object[]): Promise<void> {
  const socket = connect(path);
  let said = '';
  socket.on('data', (data: Buffer) => (said += data.toString()));
  try {
    await once(socket, 'connect', { signal: timeoutSignal(5000) });
    const all = [{ execute: 'qmp_capabilities' }, ...commands];
    socket.write(all.map((item) => `${JSON.stringify(item)}\n`).join(''));
    const answers = (): readonly string[] => said.split('\n').filter((line) => /"(return|error)"/.test(line));
    await until(
      240,
      () => `answers of QMP: ${said}`,
      () => answers().length === all.length,
    );
    const error = answers().find((line) => line.includes('"error"'));
    if (error !== undefined) throw new Error(error);
  } finally {
    socket.destroy();
  }
}

/** The switch: lldpd at the machine's second interface. It sends a frame every second. */
async function startSwitch(lab: Lab): Promise<void> {
  needs({ lldpd: 'lldpd', lldpcli: 'lldpd' });
  await run('ip', ['-n', lab.namespace, 'tuntap', 'add', TAP, 'mode', 'tap']);
  await run('ip', ['-n', lab.namespace, 'link', 'set', TAP, 'up']);
  // lldpcli drops its privileges before it opens the socket.
  chmodSync(lab.folder, 0o711);
  const control = join(lab.folder, 'lldpd.socket');
  const none = join(lab.folder, 'no-configuration');
  lab.start('lldpd', '-d', '-I', TAP, '-u', control, '-O', none);
  await until(
    240,
    () => 'lldpd',
    () => existsSync(control),
  );
  const { name, port } = KNOWN.switch;
  const configuration = [
    `configure system hostname ${name}`,
    `configure ports ${TAP} lldp portidsubtype local ${port}`,
    'configure lldp tx-interval 1',
  ];
  for (const line of configuration) await run('lldpcli', ['-u', control, ...line.split(' ')], { timeout: 30_000 });
}

/** @param folder has vmlinuz and initrd @param words further ones for the kernel's command line */
export async function startKnownMachine(lab: Lab, name: string, folder: string, words: readonly string[]): Promise<KnownMachine> {
  const own = join(lab.folder, name);
  mkdirSync(own);
  const [consoleFile, control, requests] = [join(own, 'console.log'), join(own, 'qmp'), join(own, 'requests')];
  if (!existsSync(join(lab.folder, 'lldpd.socket'))) await startSwitch(lab);
  writeFileSync(requests, '');
  const server = lab.start(process.execPath, join(__dirname, 'inspection-server.mjs'), '127.0.0.1', String(API_PORT), requests, TOKEN);
  const disks = Object.entries(DISKS).map(([disk, given]) => ({ disk, ...given, file: join(own, disk) }));
  const plugged = join(own, 'plugged');
  for (const { file, size } of [...disks, { file: plugged, size: GiB }]) {
    writeFileSync(file, '');
    truncateSync(file, size);
  }
  const half = `${KNOWN.memoryMiB / 2}M`;
  const url = `http://10.0.2.2:${API_PORT}`;
  const commandLine = [
    'console=ttyS0',
    `ipa-api-url=${url}`,
    `ipa-inspection-callback-url=${url}/v1/continue_inspection`,
    `BOOTIF=01-${KNOWN.macs[0].replaceAll(':', '-')}`,
    ...words,
  ];
  const startedAt = Date.now();
  const qemu: ChildProcess = lab.start(
    'qemu-system-x86_64',
    // One thread for all processors: with a thread each, QEMU 7.2 crashed now and then while the guest scanned PCI.
    '-machine',
    'q35',
    '-accel',
    'tcg,thread=single',
    '-cpu',
    'max',
    '-nodefaults',
    '-display',
    'none',
    '-no-reboot',
    '-smp',
    '4,sockets=2,cores=2,threads=1',
    '-m',
    `${KNOWN.memoryMiB},slots=2,maxmem=4G`,
    ...[0, 1].flatMap((node) => [
      '-object',
      `memory-backend-ram,id=m${node},size=${half}`,
      '-numa',
      `node,nodeid=${node},cpus=${2 * node}-${2 * node + 1},memdev=m${node}`,
    ]),
    '-smbios',
    `type=0,vendor=${KNOWN.firmware.vendor},version=${KNOWN.firmware.version},date=${KNOWN.firmware.build_date}`,
    '-smbios',
    `type=1,manufacturer=${KNOWN.vendor.manufacturer},product=${KNOWN.vendor.product_name},serial=${KNOWN.vendor.serial_number}`,
    '-serial',
    `file:${consoleFile}`,
    '-append',
    commandLine.join(' '),
    '-qmp',
    `unix:${control},server=on,wait=off`,
    '-kernel',
    join(folder, 'vmlinuz'),
    '-initrd',
    join(folder, 'initrd'),
    // The first interface is behind the second NUMA node.
    '-device',
    'pxb-pcie,id=pxb,bus_nr=128,numa_node=1,bus=pcie.0',
    '-device',
    'pcie-root-port,id=far,bus=pxb,chassis=1',
    '-device',
    'pcie-root-port,id=free,chassis=2,bus=pcie.0',
    '-netdev',
    'user,id=n0,ipv6=off,hostfwd=tcp:127.0.0.1:9999-:9999',
    '-device',
    `e1000e,netdev=n0,mac=${KNOWN.macs[0]},bus=far,romfile=`,
    '-netdev',
    `tap,id=n1,ifname=${TAP},script=no,downscript=no`,
    '-device',
    `virtio-net-pci,netdev=n1,mac=${KNOWN.macs[1]},bus=pcie.0,romfile=`,
    ...disks.flatMap(({ disk, file, devices }) => [
      '-drive',
      `if=none,id=${disk},format=raw,cache=unsafe,file=${file}`,
      ...devices.flatMap((device) => ['-device', device]),
    ]),
  );
  let errors = '';
  qemu.stderr!.on('data', (data: Buffer) => (errors += data.toString()));
  const posted = (): readonly Posted[] =>
    readFileSync(requests, 'utf8')
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line) as Posted);
  const first = async (path: string, seconds: number): Promise<Posted> => {
    const find = (): Posted | undefined => posted().find((candidate) => candidate.path === path);
    const describe = (): string => `${path}: ${errors}\n${consoleEnd({ consoleFile })}`;
    await until(seconds, describe, () => {
      if (qemu.exitCode !== null || qemu.signalCode !== null)
        throw new Error(`QEMU ended (${qemu.signalCode ?? qemu.exitCode}): ${describe()}`);
      return find() !== undefined;
    });
    return find()!;
  };
  return {
    startedAt,
    consoleFile,
    posted,
    inspection: async (seconds) => (await first('/v1/continue_inspection', seconds)).body as { readonly inventory: Inventory } & JsonObject,
    command: async (command, seconds) => {
      await first('/v1/heartbeat/u', seconds);
      const to = `https://127.0.0.1:9999/v1/commands/?wait=true&agent_token=${TOKEN}`;
      const body = JSON.stringify({ name: command, params: {} });
      const said = await lab.exec('curl', '-sSk', '-m', String(seconds), '-H', 'content-type: application/json', '--data', body, to);
      return JSON.parse(said) as JsonObject;
    },
    plug: () =>
      qmp(control, [
        { execute: 'blockdev-add', arguments: { driver: 'raw', 'node-name': 'plugged', file: { driver: 'file', filename: plugged } } },
        { execute: 'device_add', arguments: { driver: 'virtio-blk-pci', id: 'd9', drive: 'plugged', serial: 'PLUGGED1', bus: 'free' } },
        { execute: 'object-add', arguments: { 'qom-type': 'memory-backend-ram', id: 'm9', size: 512 * 2 ** 20 } },
        { execute: 'device_add', arguments: { driver: 'pc-dimm', id: 'dimm9', memdev: 'm9', node: 0 } },
      ]),
    warn: (bits) =>
      qmp(control, [
        { execute: 'qom-set', arguments: { path: '/machine/peripheral/warning-disk', property: 'smart_critical_warning', value: bits } },
      ]),
    stop: async () => {
      for (const child of [qemu, server]) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }
      await delay(100);
    },
  };
}
