/** Fetches a kernel with its initial ramdisk, and loads them. Nothing of the running system changes. */
import { createHash } from 'node:crypto';
import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { checkCommandLine, checkKernel, checkSizes } from '../kexec/kexec';
import type { KernelCalls } from '../kexec/kernel-calls';
import type { Tree } from '../system/tree';

export interface RamdiskFile {
  readonly url: string;
  /** Bytes. */
  readonly size: number;
  /** Hexadecimal digits. */
  readonly sha256: string;
}
/** Opens a URL. Rejects unless the answer is a file. */
export type Fetch = (url: string) => Promise<AsyncIterable<Buffer>>;
export interface LoadHost {
  readonly tree: Tree;
  /** As uname(1) reports it. */
  readonly machine: string;
  readonly kernelCalls: KernelCalls;
  /** A folder in memory, for the files until they are loaded. */
  readonly temporary: string;
}
const RAMDISK = 'ramdisk';

/** Throws an Error with the reason unless exactly the file is there. */
async function save(fetch: Fetch, { url, size, sha256 }: RamdiskFile, path: string, name: string): Promise<void> {
  const hash = createHash('sha256');
  let received = 0;
  const file = await open(path, 'w', 0o600);
  try {
    for await (const chunk of await fetch(url)) {
      received += chunk.length;
      if (received > size) break;
      hash.update(chunk);
      await file.write(chunk);
    }
  } finally {
    await file.close();
  }
  if (received !== size) throw new Error(`The ${name} has ${received > size ? 'more' : received} bytes in place of ${size}`);
  if (hash.digest('hex') !== sha256) throw new Error(`The ${name} has another SHA-256 than the conductor says`);
}

export async function loadRamdisk(
  host: LoadHost,
  fetch: Fetch,
  { kernel, initrd }: { readonly kernel: RamdiskFile; readonly initrd: RamdiskFile },
  commandLine: string,
): Promise<void> {
  checkCommandLine(commandLine, RAMDISK);
  checkSizes(host, kernel.size, initrd.size, RAMDISK);
  const { bavail, bsize } = await statfs(host.temporary);
  if (kernel.size + initrd.size > bavail * bsize) throw new Error(`${host.temporary} has no room for the kernel and the ramdisk`);
  const folder = await mkdtemp(join(host.temporary, 'bloomery-ramdisk-'));
  const [kernelPath, initrdPath] = [join(folder, 'kernel'), join(folder, 'initrd')];
  const opened: { close(): Promise<void> }[] = [];
  try {
    await save(fetch, kernel, kernelPath, 'kernel');
    await save(fetch, initrd, initrdPath, 'ramdisk');
    // The kernel loads no file that is open for writing.
    const kernelFile = await open(kernelPath, 'r');
    opened.push(kernelFile);
    const initrdFile = await open(initrdPath, 'r');
    opened.push(initrdFile);
    await checkKernel(host, { file: kernelFile, start: 0, length: kernel.size }, 'kernel', RAMDISK);
    await host.kernelCalls.load(kernelFile.fd, initrdFile.fd, commandLine);
  } finally {
    for (const file of opened) await file.close();
    await rm(folder, { recursive: true, force: true });
  }
}
