/** Our agent in the system of a simulated machine. In place of a kernel it starts the ramdisk of the simulator. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { fetchFile, runResident, type Resident } from '../../ramdisk-agent/resident';
import { tree } from '../../ramdisk-agent/system/tree';
import type { SimulatedMachine } from '../../simulator/machine/machine';

/** The first bytes of a kernel, with the sign of x86-64. */
export function kernelBytes(size = 4096): Buffer {
  const bytes = randomBytes(size);
  bytes.write('HdrS', 514, 'latin1');
  return bytes;
}

export interface ResidentHost {
  /** The command lines that were loaded. */
  readonly loaded: readonly string[];
  /** The files that were loaded last. */
  readonly files: () => readonly Buffer[];
  stop(): Promise<void>;
}
/** @param changes what differs from a host on which everything works */
export function startResident(
  url: string,
  node: string,
  token: string,
  machine: Pick<SimulatedMachine, 'startRamdisk'>,
  changes: Partial<Resident> = {},
): ResidentHost {
  const root = mkdtempSync(join(tmpdir(), 'resident-'));
  mkdirSync(join(root, 'proc'));
  mkdirSync(join(root, 'sys/kernel'), { recursive: true });
  writeFileSync(join(root, 'proc/meminfo'), 'MemAvailable:    4000000 kB\n');
  const kexecLoaded = join(root, 'sys/kernel/kexec_loaded');
  writeFileSync(kexecLoaded, '0\n');
  const loaded: string[] = [];
  let files: readonly Buffer[] = [];
  const stop = new AbortController();
  const running = runResident({
    service: () => ({ url, node, token }),
    address: async () => '127.0.0.1',
    hostname: () => 'instance',
    bootId: randomUUID(),
    listen: { host: '127.0.0.1', port: 0 },
    trust: { insecure: false },
    clock: systemClock,
    random: randomBytes,
    newUuid: randomUUID,
    log: silentLog,
    tree: tree(root),
    machine: 'x86_64',
    kernelCalls: {
      load: async (kernel, initrd, commandLine) => {
        files = [kernel, initrd!].map((descriptor) => readFileSync(descriptor));
        loaded.push(commandLine);
        writeFileSync(kexecLoaded, '1\n');
      },
      start: async () => {},
    },
    temporary: root,
    fetch: (from) => fetchFile(from, stop.signal),
    leave: {
      check: async () => {},
      go: async () => {
        stop.abort();
        machine.startRamdisk(loaded.at(-1)!);
      },
    },
    signal: stop.signal,
    ...changes,
  });
  return {
    loaded,
    files: () => files,
    stop: async () => {
      stop.abort();
      await running;
      rmSync(root, { recursive: true, force: true });
    },
  };
}
