/** GUID partition tables (UEFI 2.10 §5.3): reading, changing, and writing both copies. */
import { crc32 } from 'node:zlib';
import type { Device } from './device';

interface GptEntry {
  /** The partition's number, from 1. */
  readonly number: number;
  /** Partition type GUID as text, in lower case. */
  readonly type: string;
  readonly guid: string;
  /** LBAs, both inclusive. */
  readonly first: number;
  readonly last: number;
  readonly name: string;
}
interface Gpt {
  readonly diskGuid: string;
  readonly firstUsable: number;
  /** LBA of the first copy's partition entry array. */
  readonly arrayLba: number;
  readonly entrySize: number;
  /** The partition entry array, unchanged from disk. */
  readonly array: Buffer;
}

const SIGNATURE = 'EFI PART';
const HEADER_SIZE = 92;
const ARRAY_LARGEST = 2 ** 20;

/** The table from the first copy on the disk, or from the second if the first is damaged. Null: both are damaged. */
export async function readGpt(device: Device): Promise<Gpt | null> {
  const last = Math.floor(device.size / device.sectorSize) - 1;
  return (await readCopy(device, 1)) ?? (await readCopy(device, last));
}

async function readCopy(device: Device, lba: number): Promise<Gpt | null> {
  const header = await device.read(lba * device.sectorSize, device.sectorSize);
  if (header.length < HEADER_SIZE || header.toString('latin1', 0, 8) !== SIGNATURE) return null;
  const headerSize = header.readUInt32LE(12);
  if (headerSize < HEADER_SIZE || headerSize > header.length) return null;
  const checked = Buffer.from(header.subarray(0, headerSize));
  checked.writeUInt32LE(0, 16);
  if (crc32(checked) !== header.readUInt32LE(16)) return null;
  const [count, entrySize] = [header.readUInt32LE(80), header.readUInt32LE(84)];
  if (entrySize < 128 || count === 0 || count * entrySize > ARRAY_LARGEST) return null;
  const arrayLba = Number(header.readBigUInt64LE(72));
  const array = await device.read(arrayLba * device.sectorSize, count * entrySize);
  if (array.length < count * entrySize || crc32(array) !== header.readUInt32LE(88)) return null;
  return {
    diskGuid: guidText(header.subarray(56, 72)),
    firstUsable: Number(header.readBigUInt64LE(40)),
    arrayLba: lba === 1 ? arrayLba : 2,
    entrySize,
    array,
  };
}

export function entriesOf({ array, entrySize }: Gpt): readonly GptEntry[] {
  const all = Array.from({ length: array.length / entrySize }, (_, index) => array.subarray(index * entrySize, (index + 1) * entrySize));
  return all.flatMap((entry, index) =>
    entry.subarray(0, 16).every((byte) => byte === 0)
      ? []
      : {
          number: index + 1,
          type: guidText(entry.subarray(0, 16)),
          guid: guidText(entry.subarray(16, 32)),
          first: Number(entry.readBigUInt64LE(32)),
          last: Number(entry.readBigUInt64LE(40)),
          name: entry.toString('utf16le', 56, 128).split('\0', 1)[0]!,
        },
  );
}

/** Adds a partition in the first free entry. Throws when there is none. */
export function withEntry(gpt: Gpt, entry: Omit<GptEntry, 'number'>): { readonly gpt: Gpt; readonly number: number } {
  const taken = new Set(entriesOf(gpt).map((item) => item.number));
  const number = Array.from({ length: gpt.array.length / gpt.entrySize }, (_, index) => index + 1).find(
    (candidate) => !taken.has(candidate),
  );
  if (number === undefined) throw new Error('The partition table has no free entry');
  const bytes = Buffer.alloc(gpt.entrySize);
  guidBytes(entry.type).copy(bytes, 0);
  guidBytes(entry.guid).copy(bytes, 16);
  bytes.writeBigUInt64LE(BigInt(entry.first), 32);
  bytes.writeBigUInt64LE(BigInt(entry.last), 40);
  bytes.write(entry.name.slice(0, 36), 56, 'utf16le');
  const array = Buffer.from(gpt.array);
  bytes.copy(array, (number - 1) * gpt.entrySize);
  return { gpt: { ...gpt, array }, number };
}

const ENTRIES_SIZE = 128 * 128;
/** A table without partitions. */
export const emptyGpt = ({ sectorSize }: Pick<Device, 'sectorSize'>, diskGuid: string): Gpt => ({
  diskGuid,
  firstUsable: 2 + Math.ceil(ENTRIES_SIZE / sectorSize),
  arrayLba: 2,
  entrySize: 128,
  array: Buffer.alloc(ENTRIES_SIZE),
});
/** Writes the MBR that protects a GPT, in place of any other. `writeGpt` completes it. */
export async function writeProtectiveMbr(device: Device): Promise<void> {
  const protective = Buffer.alloc(device.sectorSize);
  protective.set([0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1], 446);
  protective.writeUInt16LE(0xaa55, 510);
  await device.write(protective, 0);
}
/** Writes a table without partitions to a disk, in place of any other, and returns it. */
export async function createGpt(device: Device, diskGuid: string): Promise<Gpt> {
  const gpt = emptyGpt(device, diskGuid);
  await writeProtectiveMbr(device);
  await writeGpt(device, gpt);
  return gpt;
}

/** The last LBA for partitions on this disk: before the second copy, which is at the disk's end. */
export const lastUsable = (gpt: Gpt, device: Device): number =>
  Math.floor(device.size / device.sectorSize) - 2 - Math.ceil(gpt.array.length / device.sectorSize);

/** Writes both copies, adapted to the disk's size, the second copy first. Also writes the size into the protective MBR. */
export async function writeGpt(device: Device, gpt: Gpt): Promise<void> {
  const { sectorSize } = device;
  const end = Math.floor(device.size / sectorSize) - 1;
  const arrayAtEnd = end - Math.ceil(gpt.array.length / sectorSize);
  await device.write(gpt.array, arrayAtEnd * sectorSize);
  await device.write(header(gpt, device, end, 1, arrayAtEnd), end * sectorSize);
  await device.write(gpt.array, gpt.arrayLba * sectorSize);
  await device.write(header(gpt, device, 1, end, gpt.arrayLba), sectorSize);
  const mbr = await device.read(0, sectorSize);
  for (let entry = 446; entry < 510; entry += 16) {
    if (mbr[entry + 4] === 0xee) mbr.writeUInt32LE(Math.min(end, 0xffffffff), entry + 12);
  }
  await device.write(mbr, 0);
}

function header(gpt: Gpt, device: Device, own: number, other: number, arrayLba: number): Buffer {
  const bytes = Buffer.alloc(device.sectorSize);
  bytes.write(SIGNATURE, 0, 'latin1');
  bytes.writeUInt32LE(0x00010000, 8);
  bytes.writeUInt32LE(HEADER_SIZE, 12);
  bytes.writeBigUInt64LE(BigInt(own), 24);
  bytes.writeBigUInt64LE(BigInt(other), 32);
  bytes.writeBigUInt64LE(BigInt(gpt.firstUsable), 40);
  bytes.writeBigUInt64LE(BigInt(lastUsable(gpt, device)), 48);
  guidBytes(gpt.diskGuid).copy(bytes, 56);
  bytes.writeBigUInt64LE(BigInt(arrayLba), 72);
  bytes.writeUInt32LE(gpt.array.length / gpt.entrySize, 80);
  bytes.writeUInt32LE(gpt.entrySize, 84);
  bytes.writeUInt32LE(crc32(gpt.array), 88);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEADER_SIZE)), 16);
  return bytes;
}

/** The first three groups are little endian on disk (UEFI 2.10, Appendix A). */
const ORDER = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15] as const;
function guidText(bytes: Buffer): string {
  const hex = Buffer.from(ORDER.map((at) => bytes[at]!)).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
function guidBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
  return Buffer.from(ORDER.map((at) => bytes[at]!));
}
