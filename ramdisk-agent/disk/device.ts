/** A disk for reading and writing bytes; in tests a plain file. */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { reasonOf } from '../../model/errors';
import { ALIGNMENT } from '../system/aligned';
import type { Run } from '../system/run';
import { DiskHangs, type Limited, unlimited } from './stall';

export interface Device {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Bytes of a logical sector: 512 or 4096. */
  readonly sectorSize: number;
  /**
   * Shorter than requested at the disk's end.
   * @param room memory that may be used for the bytes. A long read into memory for it (system/aligned.ts) is direct
   */
  read(position: number, length: number, room?: Buffer): Promise<Buffer>;
  /** Rejects beyond the disk's end. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  zero(position: number, length: number): Promise<void>;
  /** Runs a program that changes the disk. It gets the disk's path as its last argument. */
  command(program: string, args: readonly string[]): Promise<string>;
  /** Waits until all writes are on the disk. */
  flush(): Promise<void>;
  close(): Promise<void>;
}
interface DeviceOptions {
  readonly path: string;
  readonly size: number;
  readonly sectorSize: number;
  readonly mode: 'read' | 'write';
  /** With `run`, the kernel writes long ranges of zeros (blkdiscard --zeroout), by the disk's own function if possible. */
  readonly run?: Run;
  /** Reads, writes and flushes reject when the disk hangs. Programs do not: to erase itself, a disk may work for hours without a sign. */
  readonly limit?: Limited;
}

const MiB = 2 ** 20;
const ZEROS = Buffer.alloc(MiB);
/** Bytes. For longer ranges of zeros, the kernel's function is faster than writing. */
const LONG = 4 * MiB;

/** Opens a disk whose reads need not go through the kernel's memory. Undefined: its driver or file system cannot do that. */
const openDirect = (path: string): Promise<FileHandle | undefined> =>
  open(path, constants.O_RDONLY | constants.O_DIRECT).catch(() => undefined);

/** Only disk/guard.ts and tests call it. */
export async function openDevice({ path, size, sectorSize, mode, run, limit = unlimited }: DeviceOptions): Promise<Device> {
  const file = await open(path, mode === 'read' ? 'r' : 'r+');
  const direct = mode === 'read' ? await openDirect(path) : undefined;
  const isAligned = (...numbers: readonly number[]): boolean => numbers.every((number) => number % ALIGNMENT === 0);
  /** Undefined: what is read is not aligned, and is read by the kernel. */
  const readDirect = async (bytes: Buffer, position: number) =>
    direct && isAligned(position, bytes.length)
      ? direct.read(bytes, 0, bytes.length, position).catch((error: unknown) => {
          if ((error as NodeJS.ErrnoException).code === 'EINVAL') return undefined;
          throw error;
        })
      : undefined;
  const write = async (bytes: Uint8Array, position: number): Promise<void> => {
    if (position < 0 || position + bytes.length > size)
      throw new Error(`${path} ends at ${size}: cannot write ${bytes.length} bytes at ${position}`);
    for (let done = 0; done < bytes.length;) {
      done += (await limit.run(() => file.write(bytes, done, bytes.length - done, position + done))).bytesWritten;
    }
  };
  const writeZeros = async (position: number, length: number): Promise<void> => {
    for (let done = 0; done < length; done += MiB) await write(ZEROS.subarray(0, Math.min(MiB, length - done)), position + done);
  };
  return {
    path,
    size,
    sectorSize,
    async read(position, length, room) {
      const present = Math.max(0, Math.min(length, size - position));
      const bytes = room && room.length >= present ? room.subarray(0, present) : Buffer.alloc(present);
      let done = 0;
      while (done < bytes.length) {
        const at = position + done;
        const rest = bytes.subarray(done);
        const { bytesRead } = await limit
          .run(async () => (await readDirect(rest, at)) ?? file.read(rest, 0, rest.length, at))
          .catch((error: unknown) => {
            throw new Error(`${path} cannot be read at ${position + done}: ${reasonOf(error)}`, { cause: error });
          });
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return bytes.subarray(0, done);
    },
    write,
    async zero(position, length) {
      const start = Math.ceil(position / ALIGNMENT) * ALIGNMENT;
      const end = Math.floor((position + length) / ALIGNMENT) * ALIGNMENT;
      const kernelDoes =
        run !== undefined &&
        end - start >= LONG &&
        (await limit
          .run((signal) =>
            run('blkdiscard', ['--zeroout', '--force', '--offset', String(start), '--length', String(end - start), path], {
              timeoutMs: DAY,
              signal,
            }),
          )
          .then(
            () => true,
            () => false,
          ));
      if (!kernelDoes) return writeZeros(position, length);
      await writeZeros(position, start - position);
      await writeZeros(end, position + length - end);
    },
    async command(program, args) {
      if (run === undefined || mode === 'read') throw new Error(`${path} is not open for ${program}`);
      return run(program, [...args, path], { timeoutMs: DAY });
    },
    flush: () => limit.run(() => file.sync()),
    async close() {
      // Ends after the operations before it.
      const closing = Promise.all([file.close(), direct?.close()]);
      closing.catch(() => {});
      try {
        await limit.run(() => closing);
      } catch (error) {
        if (!(error instanceof DiskHangs)) throw error;
      } finally {
        limit.end();
      }
    },
  };
}

const DAY = 86_400_000;
