/** Which blocks of a disk need not be read, because their file systems do not use them. In case of doubt all are read. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Run } from '../system/run';
import type { Device } from './device';
import { HEAD_BYTES, identify, SWAP_HEADER } from './file-systems';
import { isExtended, readPartitions } from './partitions';

interface Range {
  readonly start: number;
  readonly end: number;
}
/** What was done with a partition; for the snapshot and the answer. */
interface SavedPartition {
  /** 0: the disk has a file system, and no partitions. */
  readonly number: number;
  readonly start: number;
  readonly size: number;
  readonly file_system: string | null;
  readonly blocks: 'all' | 'used';
  /** Bytes that are zeros in the image, because the file system does not use them. */
  readonly left_out: number;
  /** Why all blocks were read. */
  readonly reason: string | null;
}
interface UsedBlocks {
  readonly partitions: readonly SavedPartition[];
  /** In the disk's order. */
  readonly free: readonly Range[];
}
interface Tools {
  readonly run: Run;
  readonly log: Pick<Log, 'info'>;
  readonly signal: AbortSignal;
  /** A folder for files that nobody needs afterwards. */
  readonly temporary: string;
  /** The path of a partition's device. */
  readonly partition: (number: number) => string;
}

const MAX_PARTITIONS = 128;
/** Bounds of a list of ranges. A file system with more of them is read whole. */
const MAX_LIST_BYTES = 64 * 2 ** 20;
const MAX_RANGES = 2 ** 20;
const LISTING_MS = 600_000;

type Place = Pick<SavedPartition, 'number' | 'start' | 'size'>;

/** The partitions, or the whole disk if it has none. The boot sector of NTFS looks like an empty partition table. */
async function placesOn(device: Device): Promise<readonly Place[]> {
  const table = await readPartitions(device);
  if (!table || table.partitions.length === 0) return [{ number: 0, start: 0, size: device.size }];
  return table.partitions.filter((partition) => !isExtended(partition)).map(({ number, start, size }) => ({ number, start, size }));
}
const overlap = (one: Place, other: Place): boolean =>
  one !== other && one.start < other.start + other.size && other.start < one.start + one.size;

/** The free ranges of partclone's list: lines with position, size and `?`. Throws for a list that is not complete. @internal */
export function freeIn(list: string, size: number): readonly Range[] {
  const free: Range[] = [];
  let end = 0;
  for (const line of list.split('\n')) {
    const row = /^0x([0-9A-F]{1,16}) +0x([0-9A-F]{1,16}) +([+?])$/.exec(line);
    if (!row) continue;
    const start = Number.parseInt(row[1]!, 16);
    if (start !== end) throw new Error('the list of its blocks is damaged');
    end = start + Number.parseInt(row[2]!, 16);
    if (row[3] === '?') free.push({ start, end });
    if (free.length > MAX_RANGES) throw new Error('its free blocks are in too many pieces');
  }
  if (end === 0 || end > size) throw new Error('the list of its blocks is damaged');
  return free;
}
const bytesOf = (ranges: readonly Range[]): number => ranges.reduce((sum, { start, end }) => sum + end - start, 0);

async function listed(lister: string, path: string, size: number, { run, signal, temporary }: Tools): Promise<readonly Range[]> {
  const folder = await mkdtemp(join(temporary, 'blocks-'));
  try {
    const file = join(folder, 'list');
    await run(lister, ['-D', '-s', path, '-O', file, '-L', '/dev/null'], { timeoutMs: LISTING_MS, signal }).catch((error: unknown) => {
      throw new Error(`${lister} cannot list its blocks`, { cause: error });
    });
    if ((await stat(file)).size > MAX_LIST_BYTES) throw new Error('its free blocks are in too many pieces');
    return freeIn(await readFile(file, 'latin1'), size);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The free ranges of a partition, from its beginning. Throws an Error with the reason why all of it is read. */
async function freeOf(device: Device, { number, start, size }: Place, head: Buffer, tools: Tools): Promise<readonly Range[]> {
  const found = identify(head);
  if (found === undefined) throw new Error('it has no file system that is known');
  if (typeof found === 'string') throw new Error('blocks of this kind are read whole');
  const path = number === 0 ? device.path : tools.partition(number);
  const counted = await found.facts(
    (position, length) => device.read(start + position, Math.max(0, Math.min(length, size - position))),
    (program, args) => tools.run(program, [...args, path], { signal: tools.signal }),
  );
  if (counted.size > size) throw new Error('the file system is larger than its partition');
  if (found.lister === undefined) return [{ start: SWAP_HEADER, end: counted.size }];
  const free = await listed(found.lister, path, counted.size, tools);
  if (bytesOf(free) !== counted.free)
    throw new Error(`${bytesOf(free)} bytes are listed as free, and the file system counts ${counted.free}`);
  return free;
}

/** Never throws for the contents of the disk. */
export async function usedBlocks(device: Device, tools: Tools): Promise<UsedBlocks> {
  const places = await placesOn(device);
  const partitions: SavedPartition[] = [];
  const free: Range[] = [];
  for (const place of places.slice(0, MAX_PARTITIONS)) {
    tools.signal.throwIfAborted();
    const head = await device.read(place.start, Math.min(HEAD_BYTES, place.size));
    const found = identify(head);
    const base = { ...place, file_system: typeof found === 'object' ? found.name : (found ?? null) };
    try {
      if (places.some((other) => overlap(place, other))) throw new Error('it overlaps another partition');
      if (place.start + place.size > device.size) throw new Error('it is larger than the disk');
      const ranges = await freeOf(device, place, head, tools);
      for (const { start, end } of ranges) free.push({ start: place.start + start, end: place.start + end });
      partitions.push({ ...base, blocks: 'used', left_out: bytesOf(ranges), reason: null });
    } catch (error) {
      tools.signal.throwIfAborted();
      partitions.push({ ...base, blocks: 'all', left_out: 0, reason: reasonOf(error).slice(0, MAX_REASON) });
    }
    const { number, blocks, left_out: bytes, reason } = partitions.at(-1)!;
    tools.log.info(
      `Partition ${number} of ${device.path}: ${blocks} blocks, ${bytes} bytes left out${reason === null ? '' : `: ${reason}`}`,
    );
  }
  free.sort((one, other) => one.start - other.start);
  return { partitions, free };
}
const MAX_REASON = 200;

/** The disk with zeros in place of the free ranges. */
export function withoutFree(device: Device, free: readonly Range[]): Pick<Device, 'path' | 'read' | 'size'> {
  /** The first range that ends after a position. */
  const firstAt = (position: number): number => {
    let [low, high] = [0, free.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (free[middle]!.end <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return {
    path: device.path,
    size: device.size,
    async read(position, length, room) {
      const end = Math.min(position + length, device.size);
      const first = free[firstAt(position)];
      const isFree = first !== undefined && first.start <= position && first.end >= end && end > position;
      if (isFree) return room ? room.fill(0, 0, end - position).subarray(0, end - position) : Buffer.alloc(end - position);
      const bytes = await device.read(position, length, room);
      for (let at = firstAt(position); at < free.length && free[at]!.start < end; at++)
        bytes.fill(0, Math.max(0, free[at]!.start - position), Math.min(bytes.length, free[at]!.end - position));
      return bytes;
    },
  };
}
