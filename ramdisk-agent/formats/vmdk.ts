/**
 * Writes a VMDK image (VMware, Virtual Disk Format 5.0) to a disk while it arrives: streamOptimized by the markers between its grains,
 * monolithicSparse by its tables.
 */
import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { readVmdkHeader, SECTOR, vmdkRefusal, type VmdkHeader } from '../../wire/images/vmdk';
import type { ImageWriter, Sink } from '../disk/image';
import { type FileRange, layOn, MAX_RANGES, type Part, rangesWriter, tooManyTables } from './ranges';

const inflated = promisify(inflate) as (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;
const [END, TABLE, DIRECTORY, FOOTER] = [0, 1, 2, 3] as const;
const MARKER = 12;
const MAX_DIRECTORY = 32 * 2 ** 20;
/** Sectors of the tables and directories between the grains. */
const MAX_METADATA = 2 ** 16;

const refuse = (reason: string): Error => new Error(`the vmdk image cannot be used: ${reason}`);

/** Parts of the header that the footer repeats: what the file is, its sizes and descriptor, and its compression. */
const REPEATED: readonly (readonly [start: number, end: number])[] = [
  [0, 8],
  [12, 44],
  [77, 79],
];
const isFooterOf = (footer: Buffer, header: Buffer): boolean =>
  REPEATED.every(([start, end]) => footer.subarray(start, end).equals(header.subarray(start, end)));

/** The grains of a stream are in the order of the disk. What lies between them is zeros. */
function streamRange(sink: Sink, header: VmdkHeader, first: Buffer): FileRange {
  let written = 0;
  const until = async (position: number): Promise<void> => {
    if (position > written) await sink.zero(written, position - written);
    written = Math.max(written, position);
  };
  const grain = async (packed: Buffer, position: number): Promise<void> => {
    if (position % header.grainSize !== 0 || position < written || position >= header.size)
      throw refuse('its grains are not in their order');
    await until(position);
    const content = await inflated(packed, { maxOutputLength: header.grainSize }).catch((error: unknown) => {
      throw new Error('the image is damaged: a grain cannot be read', { cause: error });
    });
    const expected = Math.min(header.grainSize, header.size - position);
    if (content.length < expected) throw new Error('the image is damaged: a grain is too short');
    await sink.write(content.subarray(0, expected), position);
    written = position + expected;
  };
  const atEnd = (): Promise<void> => until(header.size);
  const marker = (offset: number): FileRange => ({
    offset,
    length: SECTOR,
    async take(bytes) {
      const [value, size] = [Number(bytes.readBigUInt64LE(0)), bytes.readUInt32LE(8)];
      if (size === 0) return [afterMetadata(offset + SECTOR, bytes.readUInt32LE(12), value)];
      if (size > 2 * header.grainSize) throw refuse('a grain makes no sense');
      const length = Math.ceil((MARKER + size) / SECTOR) * SECTOR;
      return [
        {
          offset,
          length,
          isWhole: true,
          async take(all) {
            await grain(all.subarray(MARKER, MARKER + size), value * SECTOR);
            return [marker(offset + length)];
          },
        },
      ];
    },
    atEnd,
  });
  const afterMetadata = (offset: number, kind: number, sectors: number): FileRange => {
    if (kind === FOOTER) return footer(offset);
    if (kind === END) return marker(offset);
    if ((kind !== TABLE && kind !== DIRECTORY) || sectors > MAX_METADATA) throw refuse('it has an unknown marker');
    return marker(offset + SECTOR * sectors);
  };
  const footer = (offset: number): FileRange => ({
    offset,
    length: SECTOR,
    async take(bytes) {
      if (!isFooterOf(bytes, first)) throw refuse('its footer does not match its header');
      return [marker(offset + SECTOR)];
    },
  });
  return marker(header.overhead);
}

/** The tables of a file whose grains are not compressed. */
function sparseRange(sink: Sink, header: VmdkHeader): FileRange {
  const covers = header.grainSize * header.entriesPerTable;
  const count = Math.ceil(header.size / covers);
  if (header.directory === null) throw refuse('its grain directory is in a footer');
  if (count * 4 > MAX_DIRECTORY) throw refuse('its header makes no sense');
  const lay = layOn(sink);
  const table = (offset: number, start: number): FileRange => ({
    offset,
    length: header.entriesPerTable * 4,
    take: (bytes) => lay(parts(bytes, start)),
  });
  function* parts(bytes: Buffer, start: number): Generator<Part> {
    for (let index = 0; index < header.entriesPerTable; index++) {
      const to = start + index * header.grainSize;
      if (to >= header.size) return;
      const sector = bytes.readUInt32LE(index * 4);
      const isZero = sector === 0 || (sector === 1 && header.zeroGrains);
      yield { to, length: Math.min(header.grainSize, header.size - to), from: isZero ? null : sector * SECTOR };
    }
  }
  return {
    offset: header.directory,
    length: count * 4,
    async take(bytes) {
      const ranges: FileRange[] = [];
      for (let index = 0; index < count; index++) {
        const sector = bytes.readUInt32LE(index * 4);
        const start = index * covers;
        if (sector === 0) await sink.zero(start, Math.min(covers, header.size - start));
        else if (ranges.push(table(sector * SECTOR, start)) > MAX_RANGES) throw tooManyTables();
      }
      return ranges;
    },
  };
}

/** Up to the end of the longest descriptor. */
const HEAD = 2 ** 16 + SECTOR;
export const vmdkWriter = (sink: Sink): ImageWriter =>
  rangesWriter({
    offset: 0,
    length: HEAD,
    async take(bytes) {
      const header = readVmdkHeader(bytes);
      if (typeof header === 'string') throw refuse(header);
      const refusal = vmdkRefusal(bytes);
      if (refusal !== undefined) throw refuse(refusal);
      if (header.size > sink.size) throw new Error(`the image of ${header.size} bytes is larger than the disk of ${sink.size} bytes`);
      return [header.isStream ? streamRange(sink, header, bytes.subarray(0, SECTOR)) : sparseRange(sink, header)];
    },
  });
