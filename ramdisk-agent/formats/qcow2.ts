/**
 * Writes a qcow2 image (QEMU docs/interop/qcow2) to a disk while it arrives, without storing it. A file usually has each table before its
 * clusters, so one pass suffices. A further pass reads clusters that precede their table. Only tables with missing clusters are in memory.
 */
import { constants, inflateRawSync } from 'node:zlib';
import { openZstd, type Zstd } from '../system/zstd';
import { incompatibleFeatures, QCOW2_HEADER_LENGTH, qcow2Refusal } from '../../wire/images/qcow2';
import type { ImageWriter, Sink } from '../disk/image';
import { type FileRange, MAX_RANGES, rangesWriter, tooManyTables } from './ranges';

interface Header {
  readonly clusterSize: number;
  readonly clusterBits: number;
  readonly size: number;
  readonly l1Offset: number;
  readonly l1Entries: number;
  /** Version 3: clusters may be marked as zeros. */
  readonly zeroFlag: boolean;
  /** Undefined: zlib. */
  readonly zstd: Zstd | undefined;
}
/** Of the incompatible features: the header names a compression, other than zlib. */
const COMPRESSION = 8;
const ZSTD = 1;
const MAX_L1 = 32 * 2 ** 20;
/** The most bytes of tables in memory: enough for 768 GiB in clusters of 64 KiB. */
const MAX_TABLES = 192 * 2 ** 20;
const BYTES_PER_ENTRY = 16;

/** The range of the header. Its `take` returns the range of the L1 table, whose `take` returns the L2 tables, and these the clusters. */
function headerRange(sink: Sink): FileRange {
  let tableBytes = 0;

  /** Each entry of the L1 table is the offset of an L2 table, or 0 if all its clusters are zeros. */
  function l1Range(header: Header): FileRange {
    const covers = (header.clusterSize / 8) * header.clusterSize;
    return {
      offset: header.l1Offset,
      length: header.l1Entries * 8,
      async take(bytes) {
        const tables: FileRange[] = [];
        for (let index = 0; index < header.l1Entries && index * covers < header.size; index++) {
          const offset = hostOffset(bytes.readUInt32BE(index * 8), bytes.readUInt32BE(index * 8 + 4));
          if (offset > 0) {
            if (tables.push(l2Range(header, offset, index * covers)) > MAX_RANGES) throw tooManyTables();
          } else await sink.zero(index * covers, Math.min(covers, header.size - index * covers));
        }
        return tables;
      },
    };
  }
  function l2Range(header: Header, offset: number, guest: number): FileRange {
    return {
      offset,
      length: header.clusterSize,
      async take(bytes) {
        const clusters = parseL2(header, bytes, guest);
        for (const run of clusters.zeros) await sink.zero(run.start, run.length);
        const size = clusters.order.length * BYTES_PER_ENTRY;
        tableBytes += size;
        if (tableBytes > MAX_TABLES) throw tooManyTables();
        return nextCluster(header, clusters, 0, () => (tableBytes -= size));
      },
    };
  }
  /** The range of the next cluster of an L2 table, in the file's order; empty after the last one. */
  function nextCluster(header: Header, clusters: ClusterTable, at: number, over: () => void): readonly FileRange[] {
    const index = clusters.order[at];
    if (index === undefined) {
      over();
      return [];
    }
    const length = clusters.lengths[index]!;
    const guest = clusters.guest + index * header.clusterSize;
    const compressed = length < 0;
    return [
      {
        offset: clusters.offsets[index]!,
        length: Math.abs(length),
        async take(bytes) {
          const content = compressed ? decompressed(bytes, header) : bytes;
          await sink.write(content.subarray(0, Math.min(header.clusterSize, header.size - guest)), guest);
          return nextCluster(header, clusters, at + 1, over);
        },
      },
    ];
  }

  return {
    offset: 0,
    length: QCOW2_HEADER_LENGTH,
    async take(bytes) {
      const header = parseHeader(bytes, await openZstd());
      if (header.size > sink.size) throw new Error(`the image of ${header.size} bytes is larger than the disk of ${sink.size} bytes`);
      return header.l1Entries === 0 ? [] : [l1Range(header)];
    },
  };
}

export const qcow2Writer = (sink: Sink): ImageWriter => rangesWriter(headerRange(sink));

function parseHeader(bytes: Buffer, library: Zstd | undefined): Header {
  if (bytes.readUInt32BE(0) !== 0x514649fb) throw new Error('the image is not a qcow2 image');
  const incompatible = incompatibleFeatures(bytes);
  const isZstd = (incompatible & COMPRESSION) !== 0 && bytes.readUInt32BE(100) >= QCOW2_HEADER_LENGTH && bytes.readUInt8(104) === ZSTD;
  const refusals = [
    qcow2Refusal(bytes),
    isZstd && !library ? 'it is compressed with zstd, and this ramdisk has no libzstd' : undefined,
    !isZstd && (incompatible & COMPRESSION) !== 0 ? 'it has an unknown compression' : undefined,
  ];
  const refused = refusals.find((refusal) => refusal !== undefined);
  if (refused !== undefined) throw new Error(`the qcow2 image cannot be used: ${refused}`);
  const clusterBits = bytes.readUInt32BE(20);
  const l1Entries = bytes.readUInt32BE(36);
  if (clusterBits < 9 || clusterBits > 21 || l1Entries * 8 > MAX_L1)
    throw new Error('the qcow2 image is damaged: its header makes no sense');
  const clusterSize = 2 ** clusterBits;
  const [size, l1Offset] = [Number(bytes.readBigUInt64BE(24)), Number(bytes.readBigUInt64BE(40))];
  if (size > l1Entries * (clusterSize / 8) * clusterSize) throw new Error('the qcow2 image is damaged: its first table is too short');
  return { clusterSize, clusterBits, size, l1Offset, l1Entries, zeroFlag: bytes.readUInt32BE(4) === 3, zstd: isZstd ? library : undefined };
}

interface ClusterTable {
  /** The position on the disk of the table's first cluster, in bytes. */
  readonly guest: number;
  /** By entry: offset and bytes in the file (negative: compressed). */
  readonly offsets: Float64Array;
  readonly lengths: Int32Array;
  /** Entries with data in the file, in the file's order. */
  readonly order: Uint32Array;
  readonly zeros: readonly { readonly start: number; readonly length: number }[];
}
function parseL2(header: Header, bytes: Buffer, guest: number): ClusterTable {
  const count = Math.min(header.clusterSize / 8, Math.ceil((header.size - guest) / header.clusterSize));
  const offsets = new Float64Array(count);
  const lengths = new Int32Array(count);
  const zeros: { start: number; length: number }[] = [];
  for (let index = 0; index < count; index++) {
    const [high, low] = [bytes.readUInt32BE(index * 8), bytes.readUInt32BE(index * 8 + 4)];
    if (high & 0x40000000) {
      const offsetBits = 62 - (header.clusterBits - 8) - 32;
      offsets[index] = (high & (2 ** offsetBits - 1)) * 2 ** 32 + low;
      lengths[index] = -((((high & 0x3fffffff) >>> offsetBits) + 1) * 512 - (low % 512));
      continue;
    }
    const offset = header.zeroFlag && low & 1 ? 0 : hostOffset(high, low);
    if (offset > 0) {
      offsets[index] = offset;
      lengths[index] = header.clusterSize;
      continue;
    }
    const start = guest + index * header.clusterSize;
    const length = Math.min(header.clusterSize, header.size - start);
    const run = zeros.at(-1);
    if (run && run.start + run.length === start) run.length += length;
    else zeros.push({ start, length });
  }
  const order = Uint32Array.from(Array.from(lengths.keys()).filter((index) => lengths[index] !== 0)).sort(
    (a, b) => offsets[a]! - offsets[b]!,
  );
  return { guest, offsets, lengths, order, zeros };
}

/** Bits 9 to 55 of an entry. */
const hostOffset = (high: number, low: number): number => (high & 0x00ffffff) * 2 ** 32 + (low - (low % 512));

/** A cluster's data ends inside its last sector, so other data follows it. */
function decompressed(bytes: Buffer, { clusterSize, zstd }: Header): Buffer {
  let content: Buffer;
  try {
    if (zstd) {
      content = Buffer.allocUnsafeSlow(clusterSize);
      zstd.decompress(bytes, content);
      return content;
    }
    content = inflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: clusterSize });
  } catch (error) {
    throw new Error('the image is damaged: a compressed cluster cannot be read', { cause: error });
  }
  if (content.length !== clusterSize) throw new Error('the image is damaged: a compressed cluster is too short');
  return content;
}
