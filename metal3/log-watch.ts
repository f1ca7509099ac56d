/** The container `ramdisk-logs`: prints the logs of ramdisks and deletes them, as metal3's image does. */
import { createReadStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { systemClock, type Clock } from '../model/clock';
import { printableText } from '../model/log';

const FOLDER = '/shared/log/ironic/deploy';
const CHECK_MS = 2000;
/** Bytes of an unpacked archive that are printed; the rest is dropped. */
const MAX_BYTES = 256 << 20;
const BLOCK = 512;

interface Member {
  readonly name: string;
  readonly data: Buffer;
}
const text = (bytes: Buffer): string => bytes.toString('utf8').split('\0', 1)[0]!;
/** The files of a tar archive (POSIX.1-1988 ustar); it may end early. */
function* membersOf(archive: Buffer): Generator<Member> {
  for (let at = 0; at + BLOCK <= archive.length;) {
    const header = archive.subarray(at, at + BLOCK);
    const name = text(header.subarray(0, 100));
    if (name === '') return;
    const size = parseInt(text(header.subarray(124, 136)).trim() || '0', 8);
    if (!Number.isSafeInteger(size) || size < 0) return;
    const prefix = header.toString('latin1', 257, 262) === 'ustar' && header[263] === 0x30 ? text(header.subarray(345, 500)) : '';
    const type = String.fromCharCode(header[156]!);
    if (type === '0' || type === '\0')
      yield { name: prefix === '' ? name : `${prefix}/${name}`, data: archive.subarray(at + BLOCK, at + BLOCK + size) };
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
}

async function unpack(path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  const collect = new Writable({
    write(piece: Buffer, _, done) {
      size += piece.length;
      if (size <= MAX_BYTES) pieces.push(piece);
      done(size <= MAX_BYTES ? null : new Error('it is too large'));
    },
  });
  // The data before an error is printed nevertheless.
  await pipeline(createReadStream(path), createGunzip(), collect).catch((error: unknown) => {
    if (pieces.length === 0) throw error;
  });
  return Buffer.concat(pieces);
}

async function print(folder: string, name: string, write: (line: string) => void): Promise<void> {
  write(`************ Contents of ${join(folder, name)} ramdisk log file bundle **************`);
  try {
    for (const member of membersOf(await unpack(join(folder, name)))) {
      write(`${name}: **** Entry: ${printableText(member.name)} ****`);
      for (const line of member.data.toString('utf8').split('\n')) write(`${name}: ${printableText(line)}`);
    }
  } catch (error) {
    write(`${name}: cannot be read: ${(error as Error).message}`);
  }
  await rm(join(folder, name), { force: true });
}

/** File name → size and modification time. A file with the same values at the next check is complete. */
async function versionsIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(folder).catch(() => []);
  const found = new Map<string, string>();
  for (const name of names.filter((candidate) => candidate.endsWith('.tar.gz')).sort()) {
    const status = await stat(join(folder, name)).catch(() => undefined);
    if (status?.isFile()) found.set(name, `${status.size} ${status.mtimeMs}`);
  }
  return found;
}

/** Until the signal is aborted. */
export async function watchLogs(
  signal: AbortSignal,
  write: (line: string) => void,
  folder: string = FOLDER,
  clock: Clock = systemClock,
): Promise<void> {
  let before: ReadonlyMap<string, string> = new Map();
  while (!signal.aborted) {
    const now = await versionsIn(folder);
    for (const [name, version] of now) if (before.get(name) === version) await print(folder, name, write);
    before = now;
    await clock.sleep(CHECK_MS, signal).catch(() => {});
  }
}
