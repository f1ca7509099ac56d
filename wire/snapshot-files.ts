/** Files of snapshots in a folder: parts that arrive at any position, and whole files after their check. */
import { createHash, webcrypto } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, rename, rm, statfs, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes of a part, of which the last one before the tables, and the last one, may have fewer. */
export const PART_BYTES = 4 * 2 ** 20;
/** The whole file of a snapshot. There is none before its check. */
export const snapshotFile = (folder: string, uuid: string): string => join(folder, `${uuid}.qcow2`);
const unfinishedFile = (folder: string, uuid: string): string => join(folder, `${uuid}.part`);

/** SHA-256, by another thread. */
export const sha256 = async (bytes: Buffer): Promise<Buffer> => Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes));
/** Identifies all parts, in the order in which they were sent: the data, then the tables. */
export const digestOfParts = (digests: readonly Buffer[]): string => {
  const hash = createHash('sha256');
  for (const digest of digests) hash.update(digest);
  return hash.digest('hex');
};

/** Bytes that an ordinary user may still write; the folder is created. */
export async function freeBytes(folder: string): Promise<number> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Writes a part. Writing it twice is harmless. */
export async function writePart(folder: string, uuid: string, bytes: Buffer, position: number): Promise<void> {
  const file = await open(unfinishedFile(folder, uuid), constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    for (let done = 0; done < bytes.length;) done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  } finally {
    await file.close();
  }
}

/** The SHA-256 of bytes that are stored; undefined: there are fewer of them. */
export async function digestOfPart(folder: string, uuid: string, position: number, length: number): Promise<Buffer | undefined> {
  const file = await open(unfinishedFile(folder, uuid), constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  });
  if (!file) return undefined;
  try {
    const bytes = await readAt(file, position, length);
    return bytes.length === length ? await sha256(bytes) : undefined;
  } finally {
    await file.close();
  }
}

export interface PartsReport {
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes of the tables at its beginning. */
  readonly front: number;
  /** See digestOfParts. */
  readonly digest: string;
}
const partsOf = (from: number, to: number): readonly (readonly [position: number, length: number])[] =>
  Array.from({ length: Math.ceil((to - from) / PART_BYTES) }, (_, at) => {
    const position = from + at * PART_BYTES;
    return [position, Math.min(PART_BYTES, to - position)];
  });
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

/**
 * Checks that all parts have arrived as they were sent, and makes them the file of the snapshot. Returns its SHA-256. Doing it again after
 * an interruption is harmless.
 * @throws Error with the reason
 */
export async function finishFile(folder: string, uuid: string, { size, front, digest }: PartsReport, signal: AbortSignal): Promise<string> {
  const isRenamed = await open(snapshotFile(folder, uuid)).catch(() => undefined);
  const path = unfinishedFile(folder, uuid);
  const file = isRenamed ?? (await open(path, 'r+'));
  try {
    const whole = createHash('sha256');
    const read = async (parts: ReturnType<typeof partsOf>): Promise<Buffer[]> => {
      const digests: Buffer[] = [];
      for (const [position, length] of parts) {
        signal.throwIfAborted();
        const bytes = await readAt(file, position, length);
        whole.update(bytes);
        digests.push(await sha256(bytes));
      }
      return digests;
    };
    const tables = await read(partsOf(0, front));
    const data = await read(partsOf(front, size));
    if (digestOfParts([...data, ...tables]) !== digest) throw new Error('a part of the file is missing or damaged');
    if (!isRenamed) {
      await file.truncate(size);
      await file.sync();
      await rename(path, snapshotFile(folder, uuid));
      const directory = await open(folder);
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    }
    return whole.digest('hex');
  } finally {
    await file.close();
  }
}

/** Removes what there is of a snapshot. */
export async function removeFiles(folder: string, uuid: string): Promise<void> {
  for (const path of [snapshotFile(folder, uuid), unfinishedFile(folder, uuid)]) await rm(path, { force: true });
}
