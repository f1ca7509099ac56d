/** Loads the kernel of the written image, and starts it in place of the ramdisk's: the instance boots without the machine's firmware. */
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { Device } from '../disk/device';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { type FoundKernel, findKernel } from './find-kernel';
import type { KernelCalls } from './kernel-calls';
import type { Piece } from './unified-kernel';
import { withVolumes } from './volumes';

interface Surroundings {
  readonly run: Run;
  readonly tree: Tree;
  readonly temporary: string;
  /** As uname(1) reports it. */
  readonly machine: string;
  readonly kernelCalls: KernelCalls;
}

const MiB = 2 ** 20;
const MAX_KERNEL = 256 * MiB;
const MAX_INITRD = 1024 * MiB;
/** Bytes with the terminating NUL (COMMAND_LINE_SIZE of x86-64 and arm64). */
const MAX_COMMAND_LINE = 2048;
/** The file in memory, the kernel's copy of it, and the segments to which that is copied. */
const COPIES = 3;
/** Architecture → offset and bytes that a kernel for it has. */
const KERNELS: Readonly<Record<string, readonly [offset: number, bytes: string]>> = {
  x86_64: [514, 'HdrS'],
  aarch64: [56, 'ARM\x64'],
};

const refusal = (message: string, what = 'image'): Error => new Error(`The ${what} cannot be started by kexec: ${message}`);

type Host = Pick<Surroundings, 'machine' | 'tree'>;
/** Throws an Error with the reason unless files of these sizes (bytes) can be loaded. `what` is named in it. */
export function checkSizes({ tree }: Pick<Host, 'tree'>, kernel: number, initrd: number, what?: string): void {
  if (kernel > MAX_KERNEL || initrd > MAX_INITRD) throw refusal('its kernel or its initial ramdisk is too large', what);
  const available = Number(/^MemAvailable: +(\d+) kB$/m.exec(tree.text('/proc/meminfo') ?? '')?.[1] ?? Number.MAX_SAFE_INTEGER) * 1024;
  if (COPIES * (kernel + initrd) > available)
    throw refusal(`its kernel and initial ramdisk have ${Math.ceil((kernel + initrd) / MiB)} MiB, and too little memory is free`, what);
}
/** Throws an Error with the reason unless a kernel takes it. `what` is named in it. */
export function checkCommandLine(commandLine: string, what?: string): void {
  if (Buffer.byteLength(commandLine) >= MAX_COMMAND_LINE)
    throw refusal(`its kernel command line exceeds ${MAX_COMMAND_LINE - 1} bytes`, what);
  // eslint-disable-next-line no-control-regex -- a command line is one line
  if (/[\0-\x1f]/.test(commandLine)) throw refusal('its kernel command line has control characters', what);
}
/** Throws an Error with the reason unless the file is a kernel for this machine. `what` is named in it. */
export async function checkKernel({ machine }: Pick<Host, 'machine'>, kernel: Piece, path: string, what?: string): Promise<void> {
  const [offset, bytes] = KERNELS[machine] ?? [0, ''];
  const head = Buffer.alloc(bytes.length);
  await kernel.file.read(head, 0, head.length, kernel.start + offset);
  if (head.toString('latin1') !== bytes) throw refusal(`${path.slice(0, 200)} is not a kernel for ${machine}`, what);
}
async function check(host: Host, { kernel, initrds, commandLine, path }: FoundKernel): Promise<void> {
  checkCommandLine(commandLine);
  await checkKernel(host, kernel, path);
  checkSizes(
    host,
    kernel.length,
    initrds.reduce((sum, { length }) => sum + length, 0),
  );
}

/** A file with the content of the pieces: that of a single piece, if it is a whole file; else a copy in memory. */
async function asFile(pieces: readonly Piece[], copy: string): Promise<{ readonly fd: number; close(): Promise<void> }> {
  const [only, ...others] = pieces;
  if (only && others.length === 0 && only.start === 0 && only.length === (await only.file.stat()).size)
    return { fd: only.file.fd, close: async () => {} };
  const written = await open(copy, 'w', 0o600);
  try {
    const buffer = Buffer.alloc(MiB);
    for (const { file: source, start, length } of pieces) {
      for (let at = 0; at < length;) {
        const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, length - at), start + at);
        if (bytesRead === 0) throw refusal('one of its files is shorter than its header says');
        await written.write(buffer, 0, bytesRead);
        at += bytesRead;
      }
    }
  } finally {
    await written.close();
  }
  // The kernel loads no file that is open for writing.
  const file = await open(copy, 'r');
  return { fd: file.fd, close: () => file.close() };
}

/** Loads the kernel of the image on the disk. Throws AgentError with the reason why the image cannot be started so. */
export async function loadImageKernel(device: Device, surroundings: Surroundings): Promise<JsonObject> {
  const { temporary, kernelCalls } = surroundings;
  const copies = [join(temporary, 'kexec-kernel'), join(temporary, 'kexec-initrd')] as const;
  try {
    return await withVolumes(device, surroundings, async (volumes) => {
      const found = await findKernel(volumes);
      const opened: { close(): Promise<void> }[] = [...found.files];
      try {
        await check(surroundings, found);
        const kernel = await asFile([found.kernel], copies[0]);
        opened.push(kernel);
        const initrd = found.initrds.length === 0 ? null : await asFile(found.initrds, copies[1]);
        if (initrd) opened.push(initrd);
        await kernelCalls.load(kernel.fd, initrd?.fd ?? null, found.commandLine);
      } finally {
        for (const file of opened) await file.close();
      }
      return { kernel: found.path, from: found.from };
    });
  } catch (error) {
    throw new AgentError('CommandExecutionError', reasonOf(error), { cause: error });
  } finally {
    for (const copy of copies) await rm(copy, { force: true });
  }
}

/** Whether a kernel is loaded. */
export const isKernelLoaded = (tree: Tree): boolean => tree.text('/sys/kernel/kexec_loaded') === '1';
