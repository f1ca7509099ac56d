/** Files of snapshots in a folder: parts that arrive at any position, and whole files after their check. */
import { createHash, webcrypto } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, rename, rm, statfs, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { createThread } from './worker-thread';

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

const spaceIn = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};
/** Bytes that an ordinary user may still write; the folder is created. */
export async function freeBytes(folder: string): Promise<number> {
  try {
    return await spaceIn(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return spaceIn(folder);
}

/** A part as it arrived: its pieces belong to nobody else. */
interface ArrivedPart {
  readonly pieces: readonly Buffer[];
  /** Of its first byte in the file. */
  readonly position: number;
  /** Its SHA-256 as the sender has it, in base64. */
  readonly digest: string;
}
interface PartQuestion extends Pick<ArrivedPart, 'digest' | 'position'> {
  readonly path: string;
  readonly pieces: readonly ArrayBuffer[];
}
type PartAnswer = { readonly isWhole: boolean } | { readonly error: string };
/** Checks a part and writes it. */
const PART_CODE = `
  const { parentPort } = require('node:worker_threads');
  const { createHash } = require('node:crypto');
  const { closeSync, constants, openSync, writeSync } = require('node:fs');
  function store({ path, pieces, position, digest }) {
    const hash = createHash('sha256');
    const all = pieces.map((piece) => new Uint8Array(piece));
    for (const piece of all) hash.update(piece);
    if (hash.digest('base64') !== digest) return { isWhole: false };
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      let at = position;
      for (const piece of all)
        for (let done = 0; done < piece.length;) {
          const written = writeSync(file, piece, done, piece.length - done, at);
          done += written;
          at += written;
        }
    } finally {
      closeSync(file);
    }
    return { isWhole: true };
  }
  parentPort.on('message', (part) => {
    let answer;
    try {
      answer = store(part);
    } catch (error) {
      answer = { error: error.message };
    }
    parentPort.postMessage(answer);
  });`;
/** A disk that does not answer. */
const MAX_DISK_MS = 60_000;
const IDLE_MS = 10_000;
const WRITERS = 2;
const writers = Array.from({ length: WRITERS }, () => createThread<PartQuestion, PartAnswer>(PART_CODE, { idleMs: IDLE_MS }));
let turn = 0;
/** The memory of a piece, without what else it may have. */
const memoryOf = ({ buffer, byteOffset, length }: Buffer): ArrayBuffer =>
  buffer.byteLength === length ? (buffer as ArrayBuffer) : (buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer);

/**
 * Writes a part, unless its digest is another one: then it returns false. Writing it twice is harmless. Threads do both, and take the memory
 * of the pieces with them: garbage of this size would make the collector look through the whole server's memory dozens of times a second.
 */
export async function writePart(folder: string, uuid: string, { pieces, position, digest }: ArrivedPart): Promise<boolean> {
  const given = pieces.map(memoryOf);
  const question: PartQuestion = { path: unfinishedFile(folder, uuid), pieces: given, position, digest };
  const answer = await writers[turn++ % WRITERS]!.use((ask) => ask(question, MAX_DISK_MS, given));
  if ('error' in answer) throw new Error(answer.error);
  return answer.isWhole;
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

type CheckQuestion = { readonly open: string } | { readonly position: number; readonly length: number } | { readonly end: true };
type CheckAnswer = { readonly digest: Uint8Array } | { readonly error: string };
/** Reads a file in parts. Answers each with its SHA-256, and the end with that of the whole file. */
const CHECK_CODE = `
  const { parentPort, workerData: most } = require('node:worker_threads');
  const { createHash } = require('node:crypto');
  const { closeSync, openSync, readSync } = require('node:fs');
  const room = Buffer.alloc(most);
  const none = new Uint8Array(0);
  let file, whole;
  function close() {
    if (file !== undefined) closeSync(file);
    file = undefined;
  }
  function answerTo({ open, position, length }) {
    if (open !== undefined) {
      close();
      file = openSync(open, 'r');
      whole = createHash('sha256');
      return none;
    }
    if (position === undefined) {
      close();
      return whole.digest();
    }
    let done = 0;
    while (done < length) {
      const read = readSync(file, room, done, length - done, position + done);
      if (read === 0) break;
      done += read;
    }
    const bytes = room.subarray(0, done);
    whole.update(bytes);
    return createHash('sha256').update(bytes).digest();
  }
  parentPort.on('message', (question) => {
    let answer;
    try {
      answer = { digest: answerTo(question) };
    } catch (error) {
      answer = { error: error.message };
    }
    parentPort.postMessage(answer);
  });`;
const checking = createThread<CheckQuestion, CheckAnswer>(CHECK_CODE, { idleMs: IDLE_MS, data: PART_BYTES });

/** The digests of parts of a file, in this order, and of the whole file, in a thread: to compute them takes longer than a turn. */
function digestsOf(path: string, parts: ReturnType<typeof partsOf>, signal: AbortSignal): Promise<readonly Buffer[]> {
  return checking.use(async (ask) => {
    const digest = async (question: CheckQuestion): Promise<Buffer> => {
      signal.throwIfAborted();
      const answer = await ask(question, MAX_DISK_MS);
      if ('error' in answer) throw new Error(answer.error);
      return Buffer.from(answer.digest);
    };
    await digest({ open: path });
    const digests: Buffer[] = [];
    for (const [position, length] of parts) digests.push(await digest({ position, length }));
    return [...digests, await digest({ end: true })];
  });
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
    const [tables, data] = [partsOf(0, front), partsOf(front, size)];
    const digests = await digestsOf(isRenamed ? snapshotFile(folder, uuid) : path, [...tables, ...data], signal);
    const whole = digests.at(-1)!;
    const sent = [...digests.slice(tables.length, -1), ...digests.slice(0, tables.length)];
    if (digestOfParts(sent) !== digest) throw new Error('a part of the file is missing or damaged');
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
    return whole.toString('hex');
  } finally {
    await file.close();
  }
}

/** Removes what there is of a snapshot. */
export async function removeFiles(folder: string, uuid: string): Promise<void> {
  for (const path of [snapshotFile(folder, uuid), unfinishedFile(folder, uuid)]) await rm(path, { force: true });
}
