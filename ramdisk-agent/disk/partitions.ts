/** Reads a disk's partitions (GPT or MBR), and adds a partition at the disk's end. */
import type { Device } from './device';
import { createGpt, entriesOf, lastUsable, readGpt, withEntry, writeGpt } from './gpt';
import { wipeEdges } from './image';

export interface Partition {
  readonly number: number;
  /** Bytes. */
  readonly start: number;
  readonly size: number;
  /** GUID as text in a GPT, two hexadecimal digits in an MBR. */
  readonly type: string;
  readonly name: string;
}
interface PartitionTable {
  readonly label: 'gpt' | 'dos';
  readonly partitions: readonly Partition[];
}

export const EFI_SYSTEM = { gpt: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b', dos: 'ef' } as const;
/** Of a GPT: the boot loader of a BIOS. */
export const BIOS_BOOT = '21686148-6449-6e6f-744e-656564454649';
const MICROSOFT_BASIC_DATA = 'ebd0a0a2-b9e5-4433-87c0-68b6b72699c7';
const FAT32_LBA = 0x0c;
const EXTENDED = ['05', '0f', '85'];
/** Whether a partition is nothing but the place of others. */
export const isExtended = ({ type }: Pick<Partition, 'type'>): boolean => EXTENDED.includes(type);
const PROTECTIVE = 'ee';
const MAX_EBRS = 128;
const MiB = 2 ** 20;

/** Null when the disk has no readable partition table. */
export async function readPartitions(device: Device): Promise<PartitionTable | null> {
  const primary = await readMbr(device, 0);
  if (!primary) return null;
  if (!primary.some((entry) => entry.type === PROTECTIVE))
    return { label: 'dos', partitions: [...primary, ...(await readLogical(device, primary))] };
  const gpt = await readGpt(device);
  if (!gpt) return null;
  return { label: 'gpt', partitions: partitionsIn(gpt, device) };
}
const partitionsIn = (gpt: NonNullable<Awaited<ReturnType<typeof readGpt>>>, { sectorSize }: Device): readonly Partition[] =>
  entriesOf(gpt).map(({ number, first, last, type, name }) => ({
    number,
    start: first * sectorSize,
    size: (last - first + 1) * sectorSize,
    type,
    name,
  }));

/** Wipes both edges of every partition and of the disk: its tables, and the signatures of volumes, arrays and encryption. */
export async function wipeMetadata(device: Device): Promise<void> {
  for (const { start, size } of (await readPartitions(device))?.partitions ?? []) {
    if (start + size <= device.size) await wipeEdges(device, start, size);
  }
  await wipeEdges(device);
}

/** All partitions that any table on the disk names, also tables that count no longer: a GPT without its protective MBR. */
export async function partitionsForGuard(device: Device): Promise<readonly Partition[]> {
  const counted = (await readPartitions(device))?.partitions ?? [];
  const gpt = await readGpt(device);
  return gpt ? [...counted, ...partitionsIn(gpt, device)] : counted;
}

/** The path of a partition's device: /dev/sda1, or /dev/nvme0n1p1 for a disk whose name ends with a digit. */
export const partitionPath = (disk: string, number: number): string => `${disk}${/\d$/.test(disk) ? 'p' : ''}${number}`;

/** The number of a partition from its path, whose last digits it is. */
export const partitionNumber = (path: string): number => Number(/(?<!\d)\d{1,5}$/.exec(path)?.[0]);

/** `0x12345678`: the MBR's disk identifier. */
export const diskIdentifier = async (device: Device): Promise<string> =>
  `0x${(await device.read(440, 4)).readUInt32LE(0).toString(16).padStart(8, '0')}`;

/** Moves a GPT's second copy to the disk's end. Does nothing for other disks. */
export async function repairGpt(device: Device): Promise<void> {
  const gpt = (await readPartitions(device))?.label === 'gpt' ? await readGpt(device) : null;
  if (gpt) await writeGpt(device, gpt);
}

/**
 * Creates a partition of at most `most` and at least `least` bytes in the free space at the disk's end, in whole MiB. Throws an Error with
 * the reason. `guid`: the new partition's GUID if the disk has a GPT.
 */
export async function addAtEnd(device: Device, most: number, least: number, guid: string): Promise<Partition> {
  const table = await readPartitions(device);
  if (!table) throw new Error('the disk has no partition table');
  const used = Math.max(MiB, ...table.partitions.map((partition) => partition.start + partition.size));
  const gpt = table.label === 'gpt' ? await readGpt(device) : null;
  const limit = gpt ? (lastUsable(gpt, device) + 1) * device.sectorSize : Math.min(device.size, 2 ** 32 * device.sectorSize);
  const end = Math.floor(limit / MiB) * MiB;
  const start = Math.max(end - most, Math.ceil(used / MiB) * MiB);
  const size = end - start;
  if (size < least) throw new Error(`no room: ${Math.max(0, size)} bytes are free at the end of the disk, ${least} are needed`);
  const [first, sectors] = [start / device.sectorSize, size / device.sectorSize];
  if (!gpt)
    return {
      number: await addToMbr(device, first, sectors, FAT32_LBA),
      start,
      size,
      type: FAT32_LBA.toString(16).padStart(2, '0'),
      name: '',
    };
  const added = withEntry(gpt, { type: MICROSOFT_BASIC_DATA, guid, first, last: first + sectors - 1, name: 'config-2' });
  await writeGpt(device, added.gpt);
  return { number: added.number, start, size, type: MICROSOFT_BASIC_DATA, name: 'config-2' };
}

interface NewPartition {
  /** Bytes. */
  readonly start: number;
  readonly size: number;
}
/** Types of partitions with a file system of Linux. */
export const LINUX = { gpt: '0fc63daf-8483-4772-8e79-3d69d8477de4', dos: 0x83 } as const;
/** Types of partitions that are members of arrays. */
export const RAID_MEMBER = { gpt: 'a19d880f-05fc-4d3b-a006-743f0f84911e', dos: 0xfd } as const;
/** Writes a table with members of arrays, in place of any other. */
export async function createPartitions(
  device: Device,
  label: 'gpt' | 'msdos',
  partitions: readonly NewPartition[],
  { newUuid, random }: { readonly newUuid: () => string; readonly random: (bytes: number) => Buffer },
): Promise<void> {
  const inSectors = partitions.map(({ start, size }) => [start / device.sectorSize, size / device.sectorSize] as const);
  if (label === 'msdos') {
    const mbr = Buffer.alloc(device.sectorSize);
    random(4).copy(mbr, 440);
    mbr.writeUInt16LE(0xaa55, 510);
    await device.write(mbr, 0);
    for (const [first, sectors] of inSectors) await addToMbr(device, first, sectors, RAID_MEMBER.dos);
  } else {
    let gpt = await createGpt(device, newUuid());
    for (const [first, sectors] of inSectors)
      ({ gpt } = withEntry(gpt, { type: RAID_MEMBER.gpt, guid: newUuid(), first, last: first + sectors - 1, name: 'primary' }));
    await writeGpt(device, gpt);
  }
  await device.flush();
}

/**
 * Adds a partition of that size to a GPT, in the first space that is free and begins at a whole MiB. Throws an Error with the reason. The
 * kernel does not know it yet.
 */
export async function addToGpt(
  device: Device,
  { size, type, name }: { readonly size: number; readonly type: string; readonly name: string },
  guid: string,
): Promise<Partition> {
  const gpt = await readGpt(device);
  if (!gpt) throw new Error(`${device.path} has no GUID partition table`);
  const end = (lastUsable(gpt, device) + 1) * device.sectorSize;
  const used = partitionsIn(gpt, device);
  const fits = (start: number): boolean =>
    start + size <= end && used.every((other) => other.start + other.size <= start || other.start >= start + size);
  const start = [MiB, ...used.map((other) => Math.ceil((other.start + other.size) / MiB) * MiB)].sort((a, b) => a - b).find(fits);
  if (start === undefined) throw new Error(`${device.path} has no free space of ${size / MiB} MiB for the partition ${name}`);
  const [first, sectors] = [start / device.sectorSize, size / device.sectorSize];
  const added = withEntry(gpt, { type, guid, first, last: first + sectors - 1, name });
  await writeGpt(device, added.gpt);
  await device.flush();
  return { number: added.number, start, size, type, name };
}

/** The used entries of the MBR or EBR at that sector, with their index; null without its signature. */
async function readMbr(device: Device, sector: number): Promise<readonly Partition[] | null> {
  const bytes = await device.read(sector * device.sectorSize, 512);
  if (bytes.length < 512 || bytes.readUInt16LE(510) !== 0xaa55) return null;
  const entries = [0, 1, 2, 3].map((index) => {
    const entry = bytes.subarray(446 + index * 16, 462 + index * 16);
    return {
      number: index + 1,
      type: entry[4]!.toString(16).padStart(2, '0'),
      start: entry.readUInt32LE(8) * device.sectorSize,
      size: entry.readUInt32LE(12) * device.sectorSize,
      name: '',
    };
  });
  return entries.filter((entry) => entry.type !== '00' && entry.size > 0);
}

/**
 * Logical partitions, from 5: a chain of EBRs. Each names a partition (relative to itself) and the next EBR (relative to the first). The
 * chain ends at an EBR that was read before.
 */
async function readLogical(device: Device, primary: readonly Partition[]): Promise<readonly Partition[]> {
  const extended = primary.find((entry) => EXTENDED.includes(entry.type));
  const found: Partition[] = [];
  const visited = new Set<number>();
  for (let at = extended?.start; extended && at !== undefined && !visited.has(at) && visited.size < MAX_EBRS;) {
    visited.add(at);
    const entries: readonly Partition[] | null = await readMbr(device, at / device.sectorSize);
    const here: Partition | undefined = entries?.find((entry) => !EXTENDED.includes(entry.type));
    if (here) found.push({ ...here, number: 5 + found.length, start: at + here.start });
    const next: Partition | undefined = entries?.find((entry) => EXTENDED.includes(entry.type));
    at = next && extended.start + next.start;
  }
  return found;
}

async function addToMbr(device: Device, first: number, sectors: number, type: number): Promise<number> {
  const bytes = await device.read(0, device.sectorSize);
  const index = [0, 1, 2, 3].find((candidate) => bytes[446 + candidate * 16 + 4] === 0);
  if (index === undefined) throw new Error('the disk uses MBR partitioning and already has 4 primary partitions');
  const entry = bytes.subarray(446 + index * 16, 462 + index * 16);
  entry.fill(0);
  // Maximal cylinder, head and sector numbers: only the LBA is valid.
  entry.set([0, 0xfe, 0xff, 0xff, type, 0xfe, 0xff, 0xff]);
  entry.writeUInt32LE(first, 8);
  entry.writeUInt32LE(sectors, 12);
  await device.write(bytes, 0);
  return index + 1;
}
