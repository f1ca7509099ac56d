/**
 * A machine in QEMU whose parts and programs fail as a test says: disks with errors, and a shell in its ramdisk. It boots the agent of our
 * ramdisk, which reaches the server by QEMU's own network.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openMonitor, type QemuMonitor } from '../../../simulator/qemu/monitor';
import { consoleEnd, until } from '../../../demo/lab/machines';
import { uefiFirmware } from '../../../simulator/qemu/programs';
import type { MachineKind } from '../../support/agent-faults/machine';
import { root } from '../support/venv';

export const MAC = '52:54:00:fa:11:70';
/** The host, as machines in QEMU's network reach it. */
export const HOST = '10.0.2.2';
const MiB = 2 ** 20;
/** Seconds. */
const PATIENCE = 600;

interface FaultyDisk {
  readonly mib: number;
  /** Absent: it is plugged in later. */
  readonly device?: string;
  readonly readOnly?: true;
  /** Requests for this sector fail; without one, all. */
  readonly fails?: { readonly iotype: 'read' | 'write'; readonly sector?: number; readonly errno: number };
}
/** Linux: error numbers. */
const EIO = 5;
const ENOSPC = 28;
/** By serial number. */
const DISKS: Readonly<Record<MachineKind, Readonly<Record<string, FaultyDisk>>>> = {
  BIOS: {
    GOOD: { mib: 5 * 1024, device: 'virtio-blk-pci,id=good' },
    LOCKED: { mib: 5 * 1024, device: 'virtio-blk-pci', readOnly: true },
    WORN: { mib: 5 * 1024, device: 'virtio-blk-pci', fails: { iotype: 'write', sector: 4096, errno: EIO } },
    DEAF: { mib: 5 * 1024, fails: { iotype: 'read', sector: 0, errno: EIO } },
    EDGE: { mib: 5 * 1024, device: 'virtio-blk-pci', fails: { iotype: 'write', sector: 0, errno: EIO } },
    SMALL: { mib: 4, device: 'virtio-blk-pci' },
    WIDE: { mib: 5 * 1024, device: 'virtio-blk-pci,logical_block_size=4096,physical_block_size=4096' },
    THIN: { mib: 5 * 1024, device: 'scsi-hd,bus=scsi0.0', fails: { iotype: 'write', errno: ENOSPC } },
    PULLED: { mib: 5 * 1024, device: 'scsi-hd,id=pulled,bus=scsi0.0' },
  },
  UEFI: { GOOD: { mib: 5 * 1024, device: 'scsi-hd,id=GOOD,bus=scsi0.0' } },
};

export interface FaultyMachine {
  /** Runs a command of the shell in the ramdisk. @returns its output */
  readonly guest: (command: string) => Promise<string>;
  readonly monitor: QemuMonitor;
  /** Resets the machine, and waits for the shell. */
  readonly reset: () => Promise<void>;
  console(): string;
  stop(): Promise<void>;
}

/** The ramdisk with a shell on the second serial line, and an agent that starts again soon. */
function ramdiskWithShell(folder: string, { files, fill, before = '' }: Pick<MachineSettings, 'files' | 'fill' | 'before'>): string {
  const work = join(folder, 'overlay');
  mkdirSync(work);
  fill?.(work);
  // A shell that writes on a terminal would show what is written to it.
  const lines = 'while IFS= read -r line; do echo \\"\\$line\\"; done';
  const loop = `exec 3<> /dev/ttyS1; stty raw -echo <&3; while :; do sh <&3 2>&1 | ${lines} >&3; sleep 1; done`;
  const shell = `setsid sh -c "${loop}" &\n`;
  const init = readFileSync(join(root, 'ramdisk-agent/build/init'), 'utf8')
    .replace('\nhostname localhost\n', `\nhostname localhost\n${shell}`)
    .replace('|| sleep 5', '|| sleep 1')
    .replace('\nuntil [ -e /run/rescue ]', `\n${before}\nuntil [ -e /run/rescue ]`);
  writeFileSync(join(work, 'init'), init, { mode: 0o755 });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(work, name), content);
  const overlay = execFileSync('sh', ['-c', 'find . | cpio --quiet -o -H newc'], { cwd: work, maxBuffer: 64 * MiB });
  const initrd = join(folder, 'initrd');
  const whole = readFileSync(join(root, '.cache/ramdisk/initrd'));
  // The kernel takes archives one after the other, each from a multiple of four bytes on.
  writeFileSync(initrd, Buffer.concat([whole, Buffer.alloc((4 - (whole.length % 4)) % 4), overlay]));
  return initrd;
}

function diskArguments(folder: string, kind: MachineKind): readonly string[] {
  return Object.entries(DISKS[kind]).flatMap(([serial, { mib, device, readOnly, fails }]) => {
    const filename = join(folder, `${serial}.img`);
    writeFileSync(filename, '');
    truncateSync(filename, mib * MiB);
    const file = { driver: 'file', filename, discard: 'unmap', 'read-only': readOnly === true };
    const rule = fails && { ...fails, event: 'none', once: false };
    const node = {
      driver: 'raw',
      'node-name': serial,
      'read-only': readOnly === true,
      file: rule ? { driver: 'blkdebug', image: file, 'inject-error': [rule] } : file,
    };
    const plugged = device === undefined ? [] : ['-device', `${device},drive=${serial},serial=${serial},werror=report,rerror=report`];
    return ['-blockdev', JSON.stringify(node), ...plugged];
  });
}

const flash = (file: string, more: string): readonly string[] => ['-drive', `if=pflash,format=raw,file=${file}${more}`];
/** What makes the machine different from others. */
const ODD: Readonly<Record<MachineKind, () => readonly (readonly string[])[]>> = {
  BIOS: () => [],
  // Without a battery, many clocks begin so.
  UEFI: () => {
    const { code, variables } = uefiFirmware();
    return [['-rtc', 'base=2001-01-01', ...flash(code, ',readonly=on'), ...flash(variables, ',snapshot=on')]];
  },
};

export interface MachineSettings {
  readonly kind: MachineKind;
  /** MiB. */
  readonly memory?: number | undefined;
  /** Of the kernel's command line. */
  readonly words: readonly string[];
  /** Where the host reaches the agent. */
  readonly agentPort: number;
  /** Of the ramdisk's root folder. */
  readonly files: Readonly<Record<string, string>>;
  /** Puts more into the ramdisk's root folder. */
  readonly fill?: (folder: string) => void;
  /** Commands of its first process, before the agent. */
  readonly before?: string;
  /** Arguments of QEMU for its disks; absent: those of the kind. */
  readonly disks?: readonly string[];
}
export async function startFaultyMachine(folder: string, settings: MachineSettings): Promise<FaultyMachine> {
  const { kind, memory = 768, words, agentPort, disks } = settings;
  mkdirSync(folder);
  const [consoleFile, shellSocket, monitorSocket] = ['console.log', 'shell', 'monitor'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const groups = [
    ['-machine', 'q35,accel=tcg', '-cpu', 'max', '-m', String(memory), '-smp', '1', '-nodefaults', '-display', 'none'],
    ...ODD[kind](),
    ['-serial', `file:${consoleFile}`, '-serial', `unix:${shellSocket},server=on,wait=off`],
    ['-qmp', `unix:${monitorSocket},server=on,wait=off`],
    ['-kernel', join(root, '.cache/ramdisk/vmlinuz'), '-initrd', ramdiskWithShell(folder, settings)],
    ['-append', ['console=ttyS0 no_timer_check mitigations=off cryptomgr.notests nokaslr', `BOOTIF=${MAC}`, ...words].join(' ')],
    ['-netdev', `user,id=n,ipv6=off,hostfwd=tcp:127.0.0.1:${agentPort}-:9999`, '-device', `virtio-net-pci,id=nic,netdev=n,mac=${MAC}`],
    ['-device', 'virtio-scsi-pci,id=scsi0', ...(disks ?? diskArguments(folder, kind))],
  ];
  const qemu = spawn('qemu-system-x86_64', groups.flat(), { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  qemu.stderr.on('data', (part: Buffer) => (errors += part.toString()));
  await until(
    30,
    () => `QEMU to start: ${errors}`,
    () => existsSync(monitorSocket) && existsSync(shellSocket),
  );
  const monitor = await openMonitor(connect(monitorSocket), () => {});
  const shell = createShell(connect(shellSocket), () => consoleEnd({ consoleFile }));
  return {
    guest: shell.run,
    monitor,
    reset: async () => {
      await monitor.execute('system_reset');
      await shell.again();
    },
    console: () => consoleEnd({ consoleFile }),
    stop: async () => {
      shell.close();
      if (qemu.exitCode !== null) return;
      const ended = once(qemu, 'exit');
      qemu.kill('SIGKILL');
      await ended;
    },
  };
}

interface Shell {
  readonly run: FaultyMachine['guest'];
  /** Waits for the shell of the next boot. */
  readonly again: () => Promise<void>;
  readonly close: () => void;
}
function createShell(socket: Socket, describe: () => string): Shell {
  let said = '';
  let count = 0;
  socket.setEncoding('utf8');
  socket.on('data', (part: string) => (said += part));
  socket.on('error', () => {});
  /** What is sent before the shell runs is lost. */
  const begin = async (): Promise<void> => {
    const mark = `up-${(count += 1)}-42`;
    await until(
      PATIENCE,
      () => `a shell\n${describe()}`,
      async () => {
        socket.write(`echo up-${count}-$((40 + 2))\n`);
        await delay(1000);
        return said.includes(mark);
      },
    );
  };
  let up = begin();
  up.catch(() => {});
  return {
    close: () => socket.destroy(),
    again: () => (up = begin()),
    async run(command) {
      await up;
      const mark = `end-${(count += 1)}-`;
      const from = said.length;
      socket.write(`${command}; echo ${mark}$?\n`);
      await until(
        PATIENCE,
        () => `${command}: ${said.slice(-2000)}\n${describe()}`,
        () => {
          if (socket.destroyed) throw new Error(`the machine has ended\n${describe()}`);
          return said.indexOf(mark, from) >= 0;
        },
      );
      return said.slice(from, said.indexOf(mark, from));
    },
  };
}
