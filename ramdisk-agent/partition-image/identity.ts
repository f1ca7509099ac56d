/** How systems name a partition: by the UUID of its file system, or else by the partition's own. */
import type { Device } from '../disk/device';
import { entriesOf, readGpt } from '../disk/gpt';
import { diskIdentifier, type Partition, readPartitions } from '../disk/partitions';

const HEAD = 66 * 2 ** 10;
const asUuid = (hex: string): string => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
/** A FAT's serial number: `1234-ABCD`. @param hex 8 digits */
export const asSerial = (hex: string): string => hex.toUpperCase().replace(/^(.{4})(.{4})$/, '$1-$2');

interface Place {
  readonly signature: readonly [offset: number, bytes: string];
  readonly uuid: number;
}
/** Kernel documentation: ext4 (super.rst), XFS (xfs_format.h), Btrfs (btrfs_tree.h). */
const LONG: readonly Place[] = [
  { signature: [0x438, '\x53\xef'], uuid: 0x468 },
  { signature: [0, 'XFSB'], uuid: 32 },
  { signature: [0x10040, '_BHRfS_M'], uuid: 0x10020 },
];
/** Microsoft's specification of FAT, 3.1 to 3.3: FAT32, FAT12 and FAT16. */
const FAT: readonly Place[] = [
  { signature: [82, 'FAT32'], uuid: 67 },
  { signature: [54, 'FAT1'], uuid: 39 },
];
const isAt = (head: Buffer, { signature: [offset, bytes] }: Place): boolean =>
  head.toString('latin1', offset, offset + bytes.length) === bytes;

function fileSystemUuid(head: Buffer): string | undefined {
  const long = LONG.find((place) => isAt(head, place));
  if (long) return asUuid(head.toString('hex', long.uuid, long.uuid + 16));
  const fat = FAT.find((place) => isAt(head, place));
  return fat && asSerial(head.readUInt32LE(fat.uuid).toString(16).padStart(8, '0'));
}

type Numbered = Pick<Partition, 'number' | 'start' | 'size'>;
async function ownUuid(device: Device, { number }: Numbered): Promise<string> {
  const gpt = (await readPartitions(device))?.label === 'gpt' ? await readGpt(device) : null;
  const entry = gpt && entriesOf(gpt).find((candidate) => candidate.number === number);
  // Hexadecimal digits, as the kernel's PARTUUID of an MBR.
  return entry?.guid ?? `${(await diskIdentifier(device)).slice(2)}-${String(number).padStart(2, '0')}`;
}

export async function uuidOf(device: Device, partition: Numbered): Promise<string> {
  const head = await device.read(partition.start, Math.min(HEAD, partition.size));
  return fileSystemUuid(head) ?? (await ownUuid(device, partition));
}

/** The first partition with that UUID. */
export async function findByUuid(device: Device, uuid: string): Promise<Partition | undefined> {
  for (const partition of (await readPartitions(device))?.partitions ?? []) {
    const own = [await uuidOf(device, partition), await ownUuid(device, partition)];
    if (own.some((candidate) => candidate.toLowerCase() === uuid.toLowerCase())) return partition;
  }
  return undefined;
}
