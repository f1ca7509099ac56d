/**
 * Machines that really boot: QEMU without KVM on a bridge in a network namespace of the test's own. Root.
 * Each is a MachineControl, so any BMC of the lab can stand before it.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, copyFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { BootSetting, MachineControl, PowerAction } from '../../simulator/control';

const run = promisify(execFile);

export interface MachineSpecification {
  readonly name: string;
  readonly firmware: 'bios' | 'uefi' | 'uefi-http';
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly diskGiB: number;
}
export interface LabMachine extends MachineControl, MachineSpecification {
  readonly mac: string;
  readonly uuid: string;
  readonly diskSerial: string;
  readonly diskFile: string;
  readonly consoleFile: string;
  /** Seconds of processor time that QEMU used since the last power on; what is compared when the machine is busy with other work. */
  cpuSeconds(): number;
}
export interface Lab {
  readonly namespace: string;
  readonly bridge: string;
  /** The address of the host on the bridge, /24. */
  readonly address: string;
  readonly folder: string;
  /** Runs a program in the namespace; its standard output. */
  exec(...words: readonly string[]): Promise<string>;
  /** Starts a program in the namespace that runs until the lab closes. */
  start(...words: readonly string[]): ChildProcess;
  /** A machine that is off, with an empty disk. */
  machine(specification: MachineSpecification): Promise<LabMachine>;
  close(): Promise<void>;
}

const OVMF = '/usr/share/OVMF';
/** What the identity of a machine is made of: the same name gives the same machine. */
const identity = (name: string): { mac: string; uuid: string; tap: string } => {
  const hash = createHash('md5').update(name).digest('hex');
  const part = (from: number, to: number): string => hash.slice(from, to);
  return {
    mac: `52:54:00:${part(0, 2)}:${part(2, 4)}:${part(4, 6)}`,
    uuid: `${part(0, 8)}-${part(8, 12)}-4${part(13, 16)}-a${part(17, 20)}-${part(20, 32)}`,
    tap: `tap${part(0, 8)}`,
  };
};

function qemuArguments(machine: LabMachine, tap: string, folder: string, boot: BootSetting): readonly string[] {
  const network = boot.device === 'pxe' ? 1 : 2;
  const disk = 3 - network;
  const bios = machine.firmware === 'bios';
  const firmware = bios
    ? []
    : [
        // PXE over IPv6 costs a minute; for uefi-http neither IPv4 PXE: HTTP boot is what is left.
        ...['-fw_cfg', 'name=opt/org.tianocore/IPv6PXESupport,string=n'],
        ...(machine.firmware === 'uefi-http' ? ['-fw_cfg', 'name=opt/org.tianocore/IPv4PXESupport,string=n'] : []),
        ...['-drive', `if=pflash,format=raw,unit=0,readonly=on,file=${OVMF}/OVMF_CODE_4M.fd`],
        ...['-drive', `if=pflash,format=raw,unit=1,file=${join(folder, 'vars.fd')}`],
      ];
  return [
    ...[
      '-name',
      machine.name,
      '-machine',
      'q35,accel=tcg,graphics=off',
      '-cpu',
      'max',
      '-smp',
      String(machine.cpus),
      '-m',
      String(machine.memoryMiB),
    ],
    ...['-uuid', machine.uuid, '-nodefaults', '-display', 'none', '-vga', 'none', '-no-user-config', '-rtc', 'base=utc'],
    ...['-smbios', `type=1,manufacturer=Bloomery lab,product=${machine.firmware},serial=${machine.name},uuid=${machine.uuid}`],
    ...['-object', 'rng-random,id=rng,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=rng'],
    ...['-serial', `file:${machine.consoleFile}`, '-qmp', `unix:${join(folder, 'qmp')},server=on,wait=off`],
    ...firmware,
    // UEFI: without the option ROM, so that the firmware's own PXE and HTTP boot run; BIOS: QEMU's iPXE ROM.
    ...['-netdev', `tap,id=n0,ifname=${tap},script=no,downscript=no`],
    ...['-device', `virtio-net-pci,netdev=n0,mac=${machine.mac},bootindex=${network}${bios ? '' : ',romfile='}`],
    ...['-drive', `if=none,id=d0,format=qcow2,cache=unsafe,discard=unmap,file=${machine.diskFile}`],
    ...['-device', `virtio-blk-pci,drive=d0,serial=${machine.diskSerial},bootindex=${disk}`],
  ];
}

/** One QMP command; its errors are the caller's. */
async function qmp(path: string, command: string): Promise<void> {
  const socket = connect(path);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(5000) });
    socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"${command}"}\n`);
    await once(socket, 'data', { signal: AbortSignal.timeout(5000) });
    await delay(50);
  } finally {
    socket.destroy();
  }
}

async function makeMachine(lab: Lab, specification: MachineSpecification): Promise<LabMachine> {
  const { mac, uuid, tap } = identity(`${lab.namespace}/${specification.name}`);
  const folder = join(lab.folder, specification.name);
  mkdirSync(folder);
  const diskFile = join(folder, 'disk.qcow2');
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', diskFile, `${specification.diskGiB}G`]);
  await run('ip', ['-n', lab.namespace, 'tuntap', 'add', tap, 'mode', 'tap']);
  await run('ip', ['-n', lab.namespace, 'link', 'set', tap, 'master', lab.bridge, 'up']);
  if (specification.firmware !== 'bios') copyFileSync(`${OVMF}/OVMF_VARS_4M.fd`, join(folder, 'vars.fd'));
  let qemu: ChildProcess | undefined;
  let boot: BootSetting = { device: 'none', persistent: true, mode: null };
  let cpu = 0;
  const isOn = (): boolean => qemu !== undefined && qemu.exitCode === null && qemu.signalCode === null;
  const cpuSeconds = (): number => {
    if (isOn()) {
      const fields = readFileSync(`/proc/${qemu!.pid!}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      cpu = (Number(fields[11]) + Number(fields[12])) / 100;
    }
    return cpu;
  };
  const off = async (): Promise<void> => {
    if (!isOn()) return;
    cpuSeconds();
    const ended = once(qemu!, 'exit');
    qemu!.kill('SIGKILL');
    await ended;
  };
  const on = async (): Promise<void> => {
    if (isOn()) return;
    qemu = lab.start('qemu-system-x86_64', ...qemuArguments(machine, tap, folder, boot));
    let errors = '';
    qemu.stderr!.on('data', (data: Buffer) => (errors += data.toString()));
    if (!boot.persistent) boot = { device: 'none', persistent: true, mode: boot.mode };
    for (let tries = 0; tries < 50 && isOn() && !existsSync(join(folder, 'qmp')); tries++) await delay(50);
    if (!isOn()) throw new Error(`QEMU did not start: ${errors}`);
  };
  const actions: Readonly<Record<PowerAction, () => Promise<void>>> = {
    on,
    off,
    // A new process, not a QMP reset: the boot order is QEMU's command line.
    reset: async () => {
      await off();
      await on();
    },
    cycle: async () => {
      await off();
      await on();
    },
    soft: async () => {
      if (isOn()) await qmp(join(folder, 'qmp'), 'system_powerdown');
    },
    diagnostic: async () => {
      if (isOn()) await qmp(join(folder, 'qmp'), 'inject-nmi');
    },
  };
  const machine: LabMachine = {
    ...specification,
    mac,
    macs: [mac],
    uuid,
    diskSerial: `lab-${specification.name}`,
    diskFile,
    consoleFile: join(folder, 'console.log'),
    isOn,
    cpuSeconds,
    act: (action) => actions[action](),
    boot: () => boot,
    setBoot: (setting) => {
      boot = setting;
    },
  };
  return machine;
}

/** Waits until a condition holds; throws, with what `describe` says, after `seconds`. */
export async function until(seconds: number, describe: () => string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${describe()}`);
    await delay(100);
  }
}

/** The end of what a machine wrote on its serial line. */
export const consoleEnd = (machine: { readonly consoleFile: string }): string =>
  existsSync(machine.consoleFile) ? readFileSync(machine.consoleFile, 'latin1').slice(-4000) : '(nothing on the console)';

/** @param name of the namespace, at most 15 characters; a left-over one of that name is an error */
export async function openLab(name: string): Promise<Lab> {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const address = '10.77.0.1';
  const bridge = 'br0';
  const machines: LabMachine[] = [];
  const started: ChildProcess[] = [];
  const start = (...words: readonly string[]): ChildProcess => {
    const child = spawn('ip', ['netns', 'exec', name, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.resume();
    started.push(child);
    return child;
  };
  const commands = [
    `netns add ${name}`,
    `-n ${name} link set lo up`,
    `-n ${name} link add ${bridge} type bridge`,
    `-n ${name} link set ${bridge} up`,
    `-n ${name} addr add ${address}/24 dev ${bridge}`,
  ];
  for (const command of commands) await run('ip', command.split(' '));
  const lab: Lab = {
    namespace: name,
    bridge,
    address,
    folder,
    start,
    exec: async (...words) => (await run('ip', ['netns', 'exec', name, ...words], { maxBuffer: 64 << 20, timeout: 300_000 })).stdout,
    machine: async (specification) => {
      const machine = await makeMachine(lab, specification);
      machines.push(machine);
      return machine;
    },
    close: async () => {
      for (const machine of machines) await machine.act('off');
      for (const child of started) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, 'exit');
        child.kill();
        await ended;
      }
      await run('ip', ['netns', 'del', name]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return lab;
}
