/**
 * Machines that really boot: QEMU without KVM on a bridge in a network namespace of the test. Root.
 * Each is a MachineControl, so any BMC of the lab can control it.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { silentLog } from '../../model/log';
import { createQemuMachine } from '../../simulator/qemu/qemu';
import { bridgeNetwork } from '../../simulator/qemu/network';
import { addNamespace, removeNamespace } from './namespace';

type QemuMachine = Awaited<ReturnType<typeof createQemuMachine>>;
const run = promisify(execFile);

interface MachineSpecification {
  readonly name: string;
  readonly firmware: 'bios' | 'uefi' | 'uefi-http';
  /** Absent: x86_64. */
  readonly architecture?: 'x86_64' | 'aarch64';
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly diskGiB: number;
  /** How many disks of that size; absent: one. */
  readonly disks?: number;
  /** The IP version of its UEFI network boot; absent: 4. */
  readonly pxe?: 4 | 6;
  /** Whether UEFI Secure Boot is in force; absent: its firmware has none. */
  readonly secureBoot?: boolean;
}
/** @internal */
export interface LabMachine extends QemuMachine, MachineSpecification {
  readonly mac: string;
  readonly uuid: string;
  readonly diskSerial: string;
  readonly diskFile: string;
  /** Processor seconds that QEMU used since the last power on: a time that can be compared on a busy machine. */
  cpuSeconds(): number;
}
export interface Lab {
  readonly name: string;
  readonly namespace: string;
  readonly bridge: string;
  /** The address of the host on the bridge, /24. */
  readonly address: string;
  readonly folder: string;
  /** Runs a program in the namespace. @returns its standard output */
  exec(...words: readonly string[]): Promise<string>;
  /** Starts a program in the namespace that runs until the lab closes. */
  start(...words: readonly string[]): ChildProcess;
  /** A machine that is off, with an empty disk. */
  machine(specification: MachineSpecification): Promise<LabMachine>;
  close(): Promise<void>;
}

/** The MAC address and UUID of a machine: the same name gives the same ones. */
const identity = (name: string): { mac: string; uuid: string } => {
  const hash = createHash('md5').update(name).digest('hex');
  const part = (from: number, to: number): string => hash.slice(from, to);
  return {
    mac: `52:54:00:${part(0, 2)}:${part(2, 4)}:${part(4, 6)}`,
    uuid: `${part(0, 8)}-${part(8, 12)}-4${part(13, 16)}-a${part(17, 20)}-${part(20, 32)}`,
  };
};

async function makeMachine(lab: Lab, specification: MachineSpecification): Promise<LabMachine> {
  const { name, firmware, cpus, memoryMiB, diskGiB } = specification;
  const { mac, uuid } = identity(`${lab.name}/${name}`);
  const diskSerial = `lab-${name}`;
  const disks = Array.from({ length: specification.disks ?? 1 }, (_, index) => ({
    name: `/dev/vd${'abcd'[index]!}`,
    size: diskGiB * 2 ** 30,
    serial: index === 0 ? diskSerial : `${diskSerial}-${index + 1}`,
    rotational: false,
    model: 'QEMU',
  }));
  const mode = firmware === 'bios' ? 'bios' : 'uefi';
  const machine = await createQemuMachine({
    description: {
      name,
      uuid,
      serial: name,
      architecture: specification.architecture ?? 'x86_64',
      mode,
      cpus,
      memoryMiB,
      macs: [mac],
      disks,
    },
    vendor: { manufacturer: 'Bloomery lab', product: firmware },
    pxe: specification.pxe,
    folder: join(lab.folder, name),
    // The same on all hosts, whatever they support.
    accelerator: 'tcg',
    starts: async () => ({ secureBoot: specification.secureBoot }),
    network: () => bridgeNetwork([mac], lab.bridge, lab.namespace),
    log: silentLog,
    spawn: (program, words) => lab.start(program, ...words),
  });
  let cpu = 0;
  const cpuSeconds = (): number => {
    const pid = machine.pid();
    if (pid !== undefined) {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      cpu = (Number(fields[11]) + Number(fields[12])) / 100;
    }
    return cpu;
  };
  return {
    ...machine,
    ...specification,
    mac,
    uuid,
    diskSerial,
    diskFile: machine.diskFiles[0]!,
    cpuSeconds,
    act: (action) => {
      // Reads the processor time while the process still runs.
      cpuSeconds();
      return machine.act(action);
    },
    // The machine keeps its firmware, whatever a BMC asks for; that of uefi-http boots from the network by HTTP only.
    setBoot: ({ device, persistent }) =>
      machine.setBoot({ device: firmware === 'uefi-http' && device === 'pxe' ? 'uefi-http' : device, persistent, mode: null }),
    boot: () => {
      const { device, ...rest } = machine.boot();
      return { ...rest, device: device === 'uefi-http' ? 'pxe' : device };
    },
  };
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

/** @param name of the lab: the same name gives the same machines, in a namespace of this run */
export async function openLab(name: string): Promise<Lab> {
  const namespace = await addNamespace(name);
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const address = '10.77.0.1';
  const bridge = 'br0';
  const machines: LabMachine[] = [];
  const started: ChildProcess[] = [];
  const start = (...words: readonly string[]): ChildProcess => {
    const child = spawn('ip', ['netns', 'exec', namespace, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    // Output that is not read would block the program when the pipe is full.
    child.stdout.resume();
    child.stderr.resume();
    started.push(child);
    return child;
  };
  const commands = [
    `-n ${namespace} link add ${bridge} type bridge`,
    `-n ${namespace} link set ${bridge} up`,
    `-n ${namespace} addr add ${address}/24 dev ${bridge}`,
  ];
  for (const command of commands) await run('ip', command.split(' '));
  const lab: Lab = {
    name,
    namespace,
    bridge,
    address,
    folder,
    start,
    exec: async (...words) => (await run('ip', ['netns', 'exec', namespace, ...words], { maxBuffer: 64 << 20, timeout: 300_000 })).stdout,
    machine: async (specification) => {
      const machine = await makeMachine(lab, specification);
      machines.push(machine);
      return machine;
    },
    close: async () => {
      for (const machine of machines) await machine.close();
      for (const child of started) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, 'exit');
        child.kill();
        await ended;
      }
      await removeNamespace(namespace);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return lab;
}
