/** Writes a VHDX image ([MS-VHDX]), fixed or dynamic, to a disk while it arrives. */
import { readVhdxMetadata, readVhdxRegions, VHDX_HEADERS, vhdxMetadataLength } from '../../wire/images/vhdx';
import type { ImageWriter, Sink } from '../disk/image';
import { type FileRange, layOn, type Part, rangesWriter } from './ranges';

const refuse = (reason: string): Error => new Error(`the vhdx image cannot be used: ${reason}`);
const sound = <T>(value: T | string): T => {
  if (typeof value === 'string') throw refuse(value);
  return value;
};

const MIB = 2 ** 20;
const MAX_TABLE = 32 * MIB;
/** A sector bitmap is for so many sectors (§2.5). */
const SECTORS_PER_BITMAP = 2 ** 23;
/** States of a block whose content is in the file (§2.5.1.1). The others stand for zeros. */
const [PRESENT, PARTIALLY_PRESENT] = [6, 7] as const;
const LAST_ZERO = 3;

type Disk = Exclude<ReturnType<typeof readVhdxMetadata>, string>;
function* partsOf(table: Buffer, { size, blockSize, sectorSize }: Disk): Generator<Part> {
  const ratio = (SECTORS_PER_BITMAP * sectorSize) / blockSize;
  for (let block = 0, to = 0; to < size; block++, to += blockSize) {
    // The entry of a bitmap follows those of its blocks.
    const at = (block + Math.floor(block / ratio)) * 8;
    const [low, high] = [table.readUInt32LE(at), table.readUInt32LE(at + 4)];
    const state = low & 7;
    if (state === PARTIALLY_PRESENT) throw refuse('it has a parent');
    if (state > LAST_ZERO && state !== PRESENT) throw refuse('a block has an unknown state');
    const from = state === PRESENT ? (high * 4096 + (low >>> 20)) * MIB : null;
    yield { to, length: Math.min(blockSize, size - to), from };
  }
}
const tableLength = ({ size, blockSize, sectorSize }: Disk): number => {
  const blocks = Math.ceil(size / blockSize);
  return (blocks + Math.floor(Math.max(0, blocks - 1) / ((SECTORS_PER_BITMAP * sectorSize) / blockSize))) * 8;
};

export const vhdxWriter = (sink: Sink): ImageWriter =>
  rangesWriter({
    offset: 0,
    length: VHDX_HEADERS,
    async take(head) {
      const regions = sound(readVhdxRegions(head));
      if (regions.bat.length > MAX_TABLE) throw refuse('its block allocation table makes no sense');
      // Either of them may come first. Then the other one says what it means.
      const found: { disk?: Disk; table?: Buffer } = {};
      const blocks = async (): Promise<readonly FileRange[]> => {
        const { disk, table } = found;
        return disk && table ? layOn(sink)(partsOf(table, disk)) : [];
      };
      const metadata: FileRange = {
        offset: regions.metadata.offset,
        length: vhdxMetadataLength(regions),
        take(bytes) {
          const disk = sound(readVhdxMetadata(bytes));
          if (disk.size > sink.size) throw new Error(`the image of ${disk.size} bytes is larger than the disk of ${sink.size} bytes`);
          if (tableLength(disk) > regions.bat.length) throw refuse('its block allocation table makes no sense');
          found.disk = disk;
          return blocks();
        },
      };
      const table: FileRange = {
        offset: regions.bat.offset,
        length: regions.bat.length,
        take(bytes) {
          found.table = Buffer.from(bytes);
          return blocks();
        },
      };
      return [metadata, table];
    },
  });
