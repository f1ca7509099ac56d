/**
 * The files of console logs: a folder for each node, with files whose names are the offsets of their first bytes. When a file is full, the
 * next one begins, and all but one before it are removed. Both a node's files and all files together are bounded.
 */
import { appendFile, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isUuid } from '../model/idents';

interface Segment {
  readonly start: number;
  size: number;
  /** When it was last written, in a sequence that begins with the times of the files. */
  written: number;
}
export interface SavedPart {
  /** The offset of the first byte: bytes that the machine has said before, since the log began. */
  readonly offset: number;
  /** The offset after the last byte. */
  readonly next: number;
  /** The offsets that the log has. */
  readonly start: number;
  readonly end: number;
  readonly bytes: Buffer;
}
/** No two calls may run at a time. */
interface ConsoleFiles {
  /** @throws Error of the file system, or because all files together are too large; then all before it is saved */
  append(node: string, bytes: Buffer, most: number): Promise<void>;
  read(node: string, offset: number | undefined, limit: number): Promise<SavedPart>;
  remove(node: string): Promise<void>;
  nodes(): Promise<readonly string[]>;
}

const NAME = /^\d{15}$/;
/** Two files have all bytes of a node. */
const SEGMENTS = 2;
const nameOf = ({ start }: Segment): string => String(start).padStart(15, '0');
const sizeOf = (segments: readonly Segment[]): number => segments.reduce((sum, { size }) => sum + size, 0);

async function readSegments(folder: string): Promise<Segment[]> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name)).sort();
  const found = await Promise.all(
    names.map(async (name) => {
      const { size, mtimeMs } = await stat(join(folder, name));
      return { start: Number(name), size, written: mtimeMs };
    }),
  );
  // After a gap, which a removed file leaves, only the later files are one text.
  const lastGap = found.findLastIndex(({ start, size }, index) => index + 1 < found.length && start + size !== found[index + 1]!.start);
  return found.slice(lastGap + 1);
}
/** The bytes from an offset on, at most up to another. */
async function readBytes(folder: string, segments: readonly Segment[], from: number, to: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let at = from;
  for (const segment of segments) {
    const count = Math.min(segment.start + segment.size, to) - at;
    if (count <= 0) continue;
    const file = await open(join(folder, nameOf(segment)));
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(count), 0, count, at - segment.start);
      parts.push(buffer.subarray(0, bytesRead));
      at += bytesRead;
    } finally {
      await file.close();
    }
  }
  return Buffer.concat(parts);
}

/** @param root the folder, which is made at the first byte @param inAll the most bytes of all nodes */
export function createConsoleFiles(root: string, inAll: number): ConsoleFiles {
  const known = new Map<string, Segment[]>();
  let isScanned = false;
  let total = 0;
  let turn = 0;
  const folderOf = (node: string): string => join(root, node);
  const nodes = async (): Promise<readonly string[]> => (await readdir(root).catch(() => [])).filter(isUuid);
  /** All logs, because all together are bounded. */
  async function scan(): Promise<void> {
    if (isScanned) return;
    for (const node of await nodes()) {
      const segments = await readSegments(folderOf(node));
      total += sizeOf(segments);
      turn = Math.max(turn, ...segments.map(({ written }) => written));
      known.set(node, segments);
    }
    isScanned = true;
  }
  async function drop(node: string, segments: Segment[]): Promise<void> {
    const oldest = segments.shift()!;
    await rm(join(folderOf(node), nameOf(oldest)), { force: true });
    total -= oldest.size;
  }
  /** The file that was written last the longest time ago goes first, and of each node the last file stays. */
  async function makeRoom(bytes: number): Promise<void> {
    while (total + bytes > inAll) {
      const candidates = [...known].filter(([, segments]) => segments.length > 1);
      const [oldest] = candidates.sort(([, left], [, right]) => left[0]!.written - right[0]!.written);
      if (!oldest) throw new Error('the logs of all nodes have the size of [console]saved_logs_limit');
      await drop(...oldest);
    }
  }
  async function write(node: string, all: Buffer, most: number, segments: Segment[]): Promise<void> {
    await mkdir(folderOf(node), { recursive: true, mode: 0o700 });
    const full = Math.ceil(most / SEGMENTS);
    for (let bytes = all.subarray(-most); bytes.length > 0;) {
      let last = segments.at(-1);
      if (!last || last.size >= full) {
        last = { start: last ? last.start + last.size : 0, size: 0, written: turn };
        segments.push(last);
        while (segments.length > SEGMENTS) await drop(node, segments);
      }
      const part = bytes.subarray(0, full - last.size);
      await makeRoom(part.length);
      await appendFile(join(folderOf(node), nameOf(last)), part, { mode: 0o600 });
      last.size += part.length;
      last.written = ++turn;
      total += part.length;
      bytes = bytes.subarray(part.length);
    }
  }
  return {
    nodes,
    async append(node, bytes, most) {
      await scan();
      const segments = known.get(node) ?? [];
      known.set(node, segments);
      try {
        await write(node, bytes, most, segments);
      } catch (error) {
        // A part may have been written.
        total -= sizeOf(segments);
        segments.splice(0, Infinity, ...(await readSegments(folderOf(node))));
        total += sizeOf(segments);
        throw error;
      }
    },
    async read(node, offset, limit) {
      const segments = known.get(node) ?? (await readSegments(folderOf(node)));
      const start = segments[0]?.start ?? 0;
      const end = start + sizeOf(segments);
      const wanted = offset ?? end - limit;
      const from = wanted > end ? start : Math.max(start, wanted);
      const bytes = await readBytes(folderOf(node), segments, from, from + limit);
      return { offset: from, next: from + bytes.length, start, end, bytes };
    },
    async remove(node) {
      total -= sizeOf(known.get(node) ?? []);
      known.delete(node);
      await rm(folderOf(node), { recursive: true, force: true });
    },
  };
}
