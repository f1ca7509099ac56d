/**
 * Makes a qcow2 image (QEMU docs/interop/qcow2, version 3) of a disk, without clusters of zeros, the others compressed. A receiver that takes
 * bytes at any position gets its data first and its tables last, from one reading of the disk (`streamedImage`). For one that takes the
 * file from its beginning to its end (`imageOf`), the disk is read once to learn the sizes, and once more for the content.
 */
import { clustersOf, type SourceDisk } from './clusters';
import type { Compression } from './compression';

const SECTOR = 512;
const HEADER_LENGTH = 112;
/** Of the incompatible features: the header names a compression. */
const COMPRESSION_FEATURE = 8;
const SMALLEST_CLUSTER_BITS = 16;
const LARGEST_CLUSTER_BITS = 21;
/** Bounds the memory of the tables: 4 bytes for each cluster of the disk. */
const MAX_CLUSTERS = 2 ** 24;
const REFCOUNT_BYTES = 2;
/** Bits of entries of tables. */
const COPIED = 2 ** 31;
const COMPRESSED = 2 ** 30;
/** In `sizes`: a cluster that does not shrink. */
const AS_IT_IS = -1;

export interface DiskImage {
  /** Bytes of the file. */
  readonly size: number;
  /** The file. Throws when the disk changes meanwhile. */
  content(): AsyncGenerator<Buffer>;
}

interface Room {
  readonly clusterBits: number;
  readonly l1Entries: number;
  /** Clusters of the file, in this order after the header: L1 table, L2 tables, table of reference counts, blocks of reference counts. */
  readonly l1Clusters: number;
  readonly tables: readonly number[];
  readonly refcountTableClusters: number;
  readonly refcountBlocks: number;
  /** Offset of the first data, in bytes. */
  readonly dataStart: number;
}
interface Layout extends Room {
  readonly size: number;
}

/** Calls `place` for each cluster with content: its index, its offset in the file and its bytes. Returns the end of the data. */
function placeAll(sizes: Int32Array, clusterSize: number, from: number, place: (index: number, offset: number, length: number) => void) {
  let end = from;
  sizes.forEach((size, index) => {
    if (size === 0) return;
    const offset = size === AS_IT_IS ? Math.ceil(end / clusterSize) * clusterSize : end;
    const length = size === AS_IT_IS ? clusterSize : size;
    place(index, offset, length);
    end = offset + length;
  });
  return end;
}

/** @param tables the L2 tables, of all that the disk may need @param dataClusters the most clusters of data */
function roomFor(
  { diskSize, clusterBits }: { readonly diskSize: number; readonly clusterBits: number },
  tables: readonly number[],
  dataClusters: number,
): Room {
  const clusterSize = 2 ** clusterBits;
  const l1Entries = tablesOf(diskSize, clusterBits);
  const l1Clusters = Math.ceil((l1Entries * 8) / clusterSize);
  const others = 1 + l1Clusters + tables.length + dataClusters;
  // The blocks count themselves too.
  let [refcountBlocks, refcountTableClusters] = [1, 1];
  for (;;) {
    const blocks = Math.ceil(((others + refcountBlocks + refcountTableClusters) * REFCOUNT_BYTES) / clusterSize);
    const table = Math.ceil((blocks * 8) / clusterSize);
    if (blocks === refcountBlocks && table === refcountTableClusters) break;
    [refcountBlocks, refcountTableClusters] = [blocks, table];
  }
  const dataStart = (1 + l1Clusters + tables.length + refcountTableClusters + refcountBlocks) * clusterSize;
  return { clusterBits, l1Entries, l1Clusters, tables, refcountTableClusters, refcountBlocks, dataStart };
}
const tablesOf = (diskSize: number, clusterBits: number): number =>
  Math.ceil(Math.ceil(diskSize / 2 ** clusterBits) / (2 ** clusterBits / 8));

function layoutOf(diskSize: number, clusterBits: number, sizes: Int32Array): Layout {
  const clusterSize = 2 ** clusterBits;
  const ofTable = clusterSize / 8;
  const tables = Array.from({ length: tablesOf(diskSize, clusterBits) }, (_, table) => table).filter((table) =>
    sizes.subarray(table * ofTable, (table + 1) * ofTable).some((size) => size !== 0),
  );
  const dataClusters = Math.ceil(placeAll(sizes, clusterSize, 0, () => {}) / clusterSize);
  const room = roomFor({ diskSize, clusterBits }, tables, dataClusters);
  return { ...room, size: room.dataStart + dataClusters * clusterSize };
}

function headerOf(
  diskSize: number,
  compression: Compression,
  { clusterBits, l1Entries, l1Clusters, tables, refcountTableClusters }: Layout,
): Buffer {
  const clusterSize = 2 ** clusterBits;
  const header = Buffer.alloc(clusterSize);
  header.write('QFI\xfb', 0, 'latin1');
  header.writeUInt32BE(3, 4);
  header.writeUInt32BE(clusterBits, 20);
  header.writeBigUInt64BE(BigInt(diskSize), 24);
  header.writeUInt32BE(l1Entries, 36);
  header.writeBigUInt64BE(BigInt(clusterSize), 40);
  header.writeBigUInt64BE(BigInt((1 + l1Clusters + tables.length) * clusterSize), 48);
  header.writeUInt32BE(refcountTableClusters, 56);
  if (compression.type !== 0) header.writeUInt32BE(COMPRESSION_FEATURE, 76);
  // Reference counts of 2 ** 4 bits.
  header.writeUInt32BE(4, 96);
  header.writeUInt32BE(HEADER_LENGTH, 100);
  header.writeUInt8(compression.type, 104);
  return header;
}

/** A table of offsets of whole clusters that follow one another. */
function offsetsTable(entries: Iterable<readonly [at: number, offset: number]>, bytes: number, flag: number): Buffer {
  const table = Buffer.alloc(bytes);
  for (const [at, offset] of entries) {
    table.writeUInt32BE(Math.floor(offset / 2 ** 32) + flag, at * 8);
    table.writeUInt32BE(offset % 2 ** 32, at * 8 + 4);
  }
  return table;
}

/** The header and all tables. */
function* frontOf(diskSize: number, compression: Compression, sizes: Int32Array, layout: Layout): Generator<Buffer> {
  const { clusterBits, l1Clusters, tables, refcountTableClusters, refcountBlocks, dataStart, size } = layout;
  const clusterSize = 2 ** clusterBits;
  const firstTable = 1 + l1Clusters;
  const firstBlock = firstTable + tables.length + refcountTableClusters;
  yield headerOf(diskSize, compression, layout);
  const l1 = tables.map((table, at) => [table, (firstTable + at) * clusterSize] as const);
  yield offsetsTable(l1, l1Clusters * clusterSize, COPIED);

  const counts = new Uint16Array((refcountBlocks * clusterSize) / REFCOUNT_BYTES);
  counts.fill(1, 0, dataStart / clusterSize);
  const offsets = new Float64Array(sizes.length);
  const end = placeAll(sizes, clusterSize, dataStart, (index, offset, length) => {
    offsets[index] = offset;
    // A compressed cluster counts from its first byte to the end of its last sector.
    const last = Math.ceil((offset + length) / SECTOR) * SECTOR - 1;
    for (let at = Math.floor(offset / clusterSize); at <= Math.floor(last / clusterSize); at++) counts[at]!++;
  });
  if (Math.ceil(end / clusterSize) * clusterSize !== size) throw new Error('the layout of the image is wrong');

  const ofTable = clusterSize / 8;
  /** The bits of the high half of an entry that belong to the offset. */
  const shift = 2 ** (62 - (clusterBits - 8) - 32);
  for (const table of tables) {
    const l2 = Buffer.alloc(clusterSize);
    for (let at = 0; at < ofTable && table * ofTable + at < sizes.length; at++) {
      const [length, offset] = [sizes[table * ofTable + at]!, offsets[table * ofTable + at]!];
      if (length === 0) continue;
      const sectors = Math.floor((offset + length - 1) / SECTOR) - Math.floor(offset / SECTOR);
      const high = Math.floor(offset / 2 ** 32) + (length === AS_IT_IS ? COPIED : COMPRESSED + sectors * shift);
      l2.writeUInt32BE(high, at * 8);
      l2.writeUInt32BE(offset % 2 ** 32, at * 8 + 4);
    }
    yield l2;
  }
  const blocks = Array.from({ length: refcountBlocks }, (_, at) => [at, (firstBlock + at) * clusterSize] as const);
  yield offsetsTable(blocks, refcountTableClusters * clusterSize, 0);
  // The numbers of the file are big-endian.
  yield Buffer.from(counts.buffer).swap16();
}

/** The size of clusters that a disk needs, at least `least`. Throws for a disk that is too large. */
function clusterBitsFor({ path, size }: SourceDisk, least: number): number {
  const bits = Math.max(least, Math.ceil(Math.log2(size / MAX_CLUSTERS)));
  if (bits > LARGEST_CLUSTER_BITS) throw new Error(`${path} of ${size} bytes is too large for an image`);
  return bits;
}
/** Bytes between the end of the data and the place of the next cluster. */
const gapBefore = (stored: Buffer, end: number, clusterSize: number): number =>
  stored.length === clusterSize ? (clusterSize - (end % clusterSize)) % clusterSize : 0;
const sizeOf = (stored: Buffer | undefined, clusterSize: number): number =>
  stored?.length === clusterSize ? AS_IT_IS : (stored?.length ?? 0);

interface Making {
  readonly compression: Compression;
  readonly signal: AbortSignal;
  /** Called with the bytes that have been read, in each pass. */
  readonly progress: (bytes: number) => void;
}
/** Reads the disk once. */
export async function imageOf(device: SourceDisk, { compression, signal, progress }: Making): Promise<DiskImage> {
  const clusterBits = clusterBitsFor(device, SMALLEST_CLUSTER_BITS);
  const clusterSize = 2 ** clusterBits;
  const sizes = new Int32Array(Math.ceil(device.size / clusterSize));
  for await (const clusters of clustersOf(device, { clusterSize, compression, keepsUp: false, signal })) {
    for (const { index, stored } of clusters) sizes[index] = sizeOf(stored, clusterSize);
    progress((clusters.at(-1)!.index + 1) * clusterSize);
  }
  const layout = layoutOf(device.size, clusterBits, sizes);
  return {
    size: layout.size,
    async *content() {
      yield* frontOf(device.size, compression, sizes, layout);
      let end = layout.dataStart;
      for await (const clusters of clustersOf(device, { clusterSize, compression, keepsUp: false, signal })) {
        const parts: Buffer[] = [];
        for (const { index, stored } of clusters) {
          if (sizeOf(stored, clusterSize) !== sizes[index]) throw new Error(`${device.path} has changed while it was read`);
          if (stored === undefined) continue;
          const gap = gapBefore(stored, end, clusterSize);
          if (gap > 0) parts.push(Buffer.alloc(gap));
          parts.push(stored);
          end += gap + stored.length;
        }
        if (parts.length > 0) yield Buffer.concat(parts);
        progress((clusters.at(-1)!.index + 1) * clusterSize);
      }
      if (end < layout.size) yield Buffer.alloc(layout.size - end);
    },
  };
}

export interface StreamedImage {
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes of the tables at its beginning. */
  readonly front: number;
}
/** Large clusters: few tables, for which there is room at the beginning of the file whatever the disk has. */
const STREAMED_CLUSTER_BITS = 20;
/**
 * Reads the disk once. Yields bytes with their positions in the file: all data in its order, then the tables at the beginning. Bytes stay
 * valid until the next ones are asked for.
 */
export async function* streamedImage(
  device: SourceDisk,
  { compression, signal, progress }: Making,
): AsyncGenerator<readonly [position: number, bytes: Buffer], StreamedImage> {
  const clusterBits = clusterBitsFor(device, STREAMED_CLUSTER_BITS);
  const clusterSize = 2 ** clusterBits;
  const sizes = new Int32Array(Math.ceil(device.size / clusterSize));
  const tables = Array.from({ length: tablesOf(device.size, clusterBits) }, (_, table) => table);
  const room = roomFor({ diskSize: device.size, clusterBits }, tables, sizes.length);
  let end = room.dataStart;
  for await (const clusters of clustersOf(device, { clusterSize, compression, keepsUp: true, signal })) {
    for (const { index, stored } of clusters) {
      sizes[index] = sizeOf(stored, clusterSize);
      if (stored === undefined) continue;
      const gap = gapBefore(stored, end, clusterSize);
      if (gap > 0) yield [end, Buffer.alloc(gap)];
      yield [end + gap, stored];
      end += gap + stored.length;
    }
    progress(Math.min(device.size, (clusters.at(-1)!.index + 1) * clusterSize));
  }
  const size = Math.ceil(end / clusterSize) * clusterSize;
  if (end < size) yield [end, Buffer.alloc(size - end)];
  let position = 0;
  for (const bytes of frontOf(device.size, compression, sizes, { ...room, size })) {
    yield [position, bytes];
    position += bytes.length;
  }
  return { size, front: room.dataStart };
}
