/** A machine with every kind of disk that QEMU has. It boots a ramdisk, whose agent talks to an API of the test's by QEMU's own network. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { type Architecture, PLATFORMS } from '../../../simulator/qemu/platforms';
import { freePort } from '../../support/free-port';
import { consoleEnd, until } from '../../../demo/lab/machines';
import { root } from '../support/venv';
import { NEWEST_VERSION } from '../../support/newest';

export const GiB = 2 ** 30;
export const MAC = '52:54:00:12:34:56';
/** Seconds. */
export const PATIENCE = 900;
const TOKEN = 'T'.repeat(43);
const STICK_MIB = 8;

/** Disk → its QEMU devices. Two drives of one file are two paths to one disk. */
export const DISKS: Readonly<Record<string, readonly string[]>> = {
  vda: ['virtio-blk-pci,drive=vda,serial=VIRTIO1'],
  v4k: ['virtio-blk-pci,drive=v4k,serial=V4K1,logical_block_size=4096,physical_block_size=4096'],
  vmfs: ['virtio-blk-pci,drive=vmfs,serial=VMFS1'],
  nvme: ['nvme,drive=nvme,serial=NVME1'],
  sata: ['ide-hd,drive=sata,serial=SATA1,wwn=0x5000c500a1b2c3d4,model=Disk With More Than 16 Letters'],
  scsi: ['virtio-scsi-pci,id=scsi0', 'scsi-hd,bus=scsi0.0,drive=scsi,serial=SCSI1,wwn=0x5000c500a1b2c3d5,vendor=ACME,product=Disk'],
  usb: ['qemu-xhci,id=xhci', 'usb-storage,bus=xhci.0,drive=usb,serial=USB1'],
  stick: ['usb-storage,bus=xhci.0,drive=stick,serial=STICK1,removable=on'],
  megaraid: ['megasas,id=mega', 'scsi-hd,bus=mega.0,drive=megaraid,serial=MEGA1,wwn=0x5000c500a1b2c3d6'],
  mptsas: ['mptsas1068,id=mpt', 'scsi-hd,bus=mpt.0,drive=mptsas,serial=MPT1,wwn=0x5000c500a1b2c3d7'],
  multipath: [
    'virtio-scsi-pci,id=path0',
    'scsi-hd,bus=path0.0,drive=multipath,serial=MULTI1,wwn=0x5000c500a1b2c3d8,share-rw=on',
    'virtio-scsi-pci,id=path1',
    'scsi-hd,bus=path1.0,drive=multipath-2,serial=MULTI1,wwn=0x5000c500a1b2c3d8,share-rw=on',
  ],
};
export const diskFile = (folder: string, name: string): string => join(folder, `${name}.img`);

interface Posted {
  readonly path: string;
  readonly body: JsonObject;
}
interface ImageApi {
  readonly server: Server;
  readonly posted: readonly Posted[];
  /** Milliseconds since the epoch. */
  firstCall(): number | undefined;
}
/**
 * Answers an agent as Ironic does, and serves the images at /images/NAME.
 * @param more of the agent's settings
 * @param seen gets the path of each request of the agent, when it has arrived
 */
export async function startImageApi(
  images: Readonly<Record<string, Buffer>>,
  more: JsonObject = {},
  seen: (path: string) => void = () => {},
): Promise<ImageApi> {
  const posted: Posted[] = [];
  let firstCall: number | undefined;
  const config = { heartbeat_timeout: 300, agent_token: TOKEN, tls_min_version: '1.3', ...more };
  const answers: Readonly<Record<string, readonly [number, JsonObject]>> = {
    '/': [200, { default_version: { version: NEWEST_VERSION } }],
    '/v1/continue_inspection': [202, { uuid: 'u' }],
    '/v1/lookup': [200, { node: { uuid: 'u', properties: {}, instance_info: {}, driver_internal_info: {} }, config }],
    '/v1/heartbeat/u': [202, {}],
  };
  const server = createServer((incoming, response) => {
    firstCall ??= Date.now();
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const path = incoming.url!.split('?')[0]!;
      const image = images[path.replace('/images/', '')];
      if (image) return response.writeHead(200, { 'content-length': image.length }).end(image);
      seen(path);
      posted.push({ path, body: parts.length > 0 ? (JSON.parse(Buffer.concat(parts).toString()) as JsonObject) : {} });
      const [status, body] = answers[path] ?? [404, {}];
      return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, posted, firstCall: () => firstCall };
}

/**
 * Writes our ramdisk with other files in it, which are programs. A link of the ramdisk must not be one of their folders. The kernel takes archives one after the other, each from a multiple of four
 * bytes on.
 */
export function overlaid(to: string, files: Readonly<Record<string, string | Buffer>>, from = join(root, '.cache/ramdisk/initrd')): void {
  const work = mkdtempSync(join(tmpdir(), 'overlay-'));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(work, path)), { recursive: true });
    writeFileSync(join(work, path), content, { mode: 0o755 });
  }
  const parents = (path: string): readonly string[] => (path.includes('/') ? [...parents(dirname(path)), dirname(path)] : []);
  const input = [...new Set(Object.keys(files).flatMap((path) => [...parents(path), path]))].join('\n');
  const cpio = execFileSync('cpio', ['--quiet', '-o', '-H', 'newc', '-R', '0:0'], { cwd: work, input, maxBuffer: 256 * 2 ** 20 });
  rmSync(work, { recursive: true });
  const whole = readFileSync(from);
  writeFileSync(to, Buffer.concat([whole, Buffer.alloc(-whole.length & 3), cpio]));
}

/** Architecture → the folder of its ramdisk, and its console. */
const SYSTEMS = {
  x86_64: { kernel: 'ramdisk', terminal: 'ttyS0' },
  aarch64: { kernel: 'ramdisk-aarch64', terminal: 'ttyAMA0' },
} as const;
interface DiskMachineOptions {
  readonly architecture?: Architecture;
  readonly folder: string;
  readonly initrd: string;
  readonly memoryMiB: number;
  /** Of the kernel's command line, besides those that lead to the API. */
  readonly words: readonly string[];
  /** Arguments of QEMU. */
  readonly more: readonly string[];
  /** Writes to a new disk; `file` is open for writing. */
  readonly prepare: (name: string, file: number) => void;
  readonly disks?: Readonly<Record<string, readonly string[]>>;
  /** False: the agent waits for commands, without an inspection before. */
  readonly inspects?: boolean;
}
export interface DiskMachine {
  readonly process: ChildProcess;
  /** Where the agent reaches the API. */
  readonly url: string;
  firstCall(): number | undefined;
  readonly consoleFile: string;
  /** What the machine wrote on its serial line. */
  console(): string;
  bodyOf(path: string): JsonObject | undefined;
  /** Waits until the agent has sent a request for the path. */
  waitFor(path: string): Promise<void>;
  command(name: string, params: JsonObject): Promise<JsonObject>;
  /** Stops the machine and its API. */
  stop(): Promise<void>;
}

/** @param api null: the machine does not need one */
export async function startDiskMachine(api: ImageApi | null, options: DiskMachineOptions): Promise<DiskMachine> {
  const { architecture = 'x86_64', folder, initrd, memoryMiB, words, more, prepare, disks = DISKS, inspects = true } = options;
  const { program, machine, cpu } = PLATFORMS[architecture];
  const { kernel, terminal } = SYSTEMS[architecture];
  const consoleFile = join(folder, `console-${await freePort()}.log`);
  const agentPort = await freePort();
  for (const name of Object.keys(disks)) {
    const path = diskFile(folder, name);
    if (existsSync(path)) continue;
    writeFileSync(path, '');
    truncateSync(path, name === 'stick' ? STICK_MIB * 2 ** 20 : (name === 'vda' ? 4 : 5) * GiB);
    const file = openSync(path, 'r+');
    prepare(name, file);
    closeSync(file);
  }
  const port = api === null ? 0 : (api.server.address() as AddressInfo).port;
  const url = `http://10.0.2.2:${port}`;
  const inspection = inspects ? [`ipa-inspection-callback-url=${url}/v1/continue_inspection`] : [];
  const toApi = api === null ? [] : [`ipa-api-url=${url}`, ...inspection, `BOOTIF=${MAC}`];
  const drives = Object.entries(disks).flatMap(([name, devices]) =>
    devices.flatMap((device) => {
      const id = /drive=([\w-]+)/.exec(device)?.[1];
      const drive = `if=none,id=${id},format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap,file.locking=off,file=${diskFile(folder, name)}`;
      return [...(id === undefined ? [] : ['-drive', drive]), '-device', device];
    }),
  );
  const qemu = spawn(program, [
    '-machine',
    `${machine},accel=tcg`,
    '-cpu',
    cpu,
    '-m',
    String(memoryMiB),
    '-smp',
    '1',
    '-nodefaults',
    '-display',
    'none',
    '-no-reboot',
    '-serial',
    `file:${consoleFile}`,
    '-append',
    [`console=${terminal}`, 'no_timer_check', ...toApi, ...words].join(' '),
    '-kernel',
    join(root, '.cache', kernel, 'vmlinuz'),
    '-initrd',
    initrd,
    '-netdev',
    `user,id=n,hostfwd=tcp:127.0.0.1:${agentPort}-:9999`,
    '-device',
    `virtio-net-pci,netdev=n,mac=${MAC}`,
    ...more,
    ...drives,
  ]);
  const bodyOf = (path: string): JsonObject | undefined => api?.posted.find((candidate) => candidate.path === path)?.body;
  return {
    process: qemu,
    consoleFile,
    url,
    firstCall: () => api?.firstCall(),
    console: () => readFileSync(consoleFile, 'latin1'),
    bodyOf,
    waitFor: (path) =>
      until(
        PATIENCE,
        () => `${path}\n${consoleEnd({ consoleFile })}`,
        () => bodyOf(path) !== undefined,
      ),
    command: (name, params) =>
      new Promise((resolve, reject) => {
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
      }),
    stop: async () => {
      if (qemu.exitCode === null) {
        const ended = once(qemu, 'exit');
        qemu.kill('SIGKILL');
        await ended;
      }
      api?.server.closeAllConnections();
      await new Promise((resolve) => (api === null ? resolve(null) : api.server.close(resolve)));
    },
  };
}
