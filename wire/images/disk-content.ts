/** Whether the bytes of a disk are those of a whole disk or of one file system: the beginning of an image that is raw, or was unpacked. */

const SECTOR = 512;

type Test = (head: Buffer) => boolean;
const has =
  (offset: number, signature: string): Test =>
  (head) =>
    head.toString('latin1', offset, offset + signature.length) === signature;
/** Little-endian. */
const hasNumber =
  (offset: number, bytes: 2 | 4, value: number): Test =>
  (head) =>
    head.length >= offset + bytes && head.readUIntLE(offset, bytes) === value;
/** Its other members too: two bytes of a boot loader at this place may be the signature. */
const hasExt: Test = (head) =>
  head.length >= 2048 &&
  hasNumber(1024 + 56, 2, 0xef53)(head) &&
  head.readUInt32LE(1024) > 0 &&
  head.readUInt32LE(1024 + 24) <= 6 &&
  head.readUInt32LE(1024 + 76) <= 1;
const hasBootSignature: Test = hasNumber(510, 2, 0xaa55);

/** File systems by their superblocks (libblkid has the same places). */
const FILE_SYSTEMS: readonly (readonly [name: string, matches: Test])[] = [
  ['ext4', hasExt],
  ['XFS', has(0, 'XFSB')],
  ['Btrfs', has(64 * 2 ** 10 + 64, '_BHRfS_M')],
  ['F2FS', hasNumber(1024, 4, 0xf2f52010)],
  ['EROFS', hasNumber(1024, 4, 0xe0f5e1e2)],
  ['SquashFS', has(0, 'hsqs')],
  ['NTFS', has(3, 'NTFS    ')],
  ['exFAT', has(3, 'EXFAT   ')],
  ['FAT', (head) => has(54, 'FAT1')(head) || has(82, 'FAT32   ')(head)],
];

/** A GPT has its header in the second sector (UEFI 2.10 §5.3.2), and sectors may have 4096 bytes. */
const hasGpt: Test = (head) => [SECTOR, 4096].some((at) => has(at, 'EFI PART')(head) && hasNumber(at + 24, 4, 1)(head));
/** An MBR whose entries make sense, at least one of which is in use. Boot sectors of file systems have code or zeros there. */
function hasMbr(head: Buffer): boolean {
  if (!hasBootSignature(head)) return false;
  const entries = [446, 462, 478, 494].map((at) => head.subarray(at, at + 16));
  const used = entries.filter((entry) => entry[4] !== 0);
  const isSound = (entry: Buffer): boolean => entry.readUInt32LE(8) > 0 && entry.readUInt32LE(12) > 0;
  return used.length > 0 && used.every(isSound) && entries.every(([flag]) => flag === 0 || flag === 0x80);
}

export interface DiskContent {
  readonly hasTable: boolean;
  /** Undefined: none that is known. */
  readonly fileSystem: string | undefined;
  /** A BIOS may start it. */
  readonly isBootSector: boolean;
}
export const diskContent = (head: Buffer): DiskContent => ({
  hasTable: hasGpt(head) || hasMbr(head),
  fileSystem: FILE_SYSTEMS.find(([, matches]) => matches(head))?.[0],
  isBootSector: hasBootSignature(head),
});

/**
 * Why bytes cannot be deployed as that kind of image; undefined: they can, or nobody knows. Where a table and a file system are seen, one
 * of them may be a rest. Without a table, a boot sector may start a whole disk.
 */
export function contentProblem({ hasTable, fileSystem, isBootSector }: DiskContent, kind: 'whole-disk' | 'partition'): string | undefined {
  if (hasTable && fileSystem === undefined && kind === 'partition') return 'it has a partition table, so it is the image of a whole disk';
  if (!hasTable && fileSystem !== undefined && !isBootSector && kind === 'whole-disk')
    return `it is a file system (${fileSystem}) without a partition table and without a boot sector, so it is a partition image`;
  return undefined;
}
