/**
 * What file systems say of their free blocks. The superblock counts them, and a program of the ramdisk lists them. A file system counts only
 * if it was unmounted cleanly: a journal that was not replayed knows of blocks that are listed as free.
 */
import { refuse, type Facts } from './facts';
import { ntfsFacts } from './ntfs';

interface FileSystem {
  readonly name: string;
  readonly facts: Facts;
  /** Of partclone; it writes a list of ranges. Absent: everything after the first page is free. */
  readonly lister?: string;
}
/** Bytes at the beginning that `identify` needs. */
export const HEAD_BYTES = 128 * 2 ** 10;
/** Bytes of a swap area that have content: its header. A page of 4 KiB. */
export const SWAP_HEADER = 4096;

/** Linux Documentation/filesystems/ext4/super.rst: the superblock is at 1024. */
const extFacts: Facts = async (read) => {
  const block = await read(1024, 1024);
  const [state, incompatible, readOnly] = [block.readUInt16LE(0x3a), block.readUInt32LE(0x60), block.readUInt32LE(0x64)];
  refuse((incompatible & 0x4) !== 0, 'its journal has not been replayed');
  refuse((incompatible & 0x8) !== 0, 'it is the journal of another file system');
  refuse((state & 1) === 0, 'it was not unmounted');
  refuse((state & 2) !== 0, 'it has errors');
  refuse((readOnly & 0x200) !== 0, 'it has clusters of blocks');
  const scale = block.readUInt32LE(0x18);
  refuse(scale > 6, 'its superblock makes no sense');
  const high = (incompatible & 0x80) === 0 ? [0, 0] : [block.readUInt32LE(0x150), block.readUInt32LE(0x158)];
  const bytes = (at: number, more: number): number => (more * 2 ** 32 + block.readUInt32LE(at)) * 1024 * 2 ** scale;
  return { size: bytes(0x04, high[0]!), free: bytes(0x0c, high[1]!) };
};

/** Fewer than a terabyte has in the smallest groups. */
const MAX_GROUPS = 2 ** 16;
/** The kernel's fs/xfs/libxfs/xfs_format.h: xfs_dsb, and in each allocation group xfs_agf. Numbers are big-endian. */
const xfsFacts: Facts = async (read, run) => {
  const block = await read(0, 512);
  const [blockSize, sectorSize, groupBlocks, groups] = [
    block.readUInt32BE(4),
    block.readUInt16BE(102),
    block.readUInt32BE(84),
    block.readUInt32BE(88),
  ];
  refuse(block.readUInt8(126) !== 0, 'it is being made');
  refuse(block.readBigUInt64BE(48) === 0n, 'its journal is elsewhere');
  refuse((block.readUInt16BE(100) & 0xf) === 5 && (block.readUInt32BE(216) & 0x10) !== 0, 'it needs a repair');
  refuse(groups > MAX_GROUPS || blockSize > 65_536 || sectorSize < 512 || sectorSize > 32_768, 'its superblock makes no sense');
  refuse(!/state: <CLEAN>/.test(await run('xfs_logprint', ['-t'])), 'its journal has not been replayed');
  let free = 0;
  for (let group = 0; group < groups; group++) {
    const header = await read(group * groupBlocks * blockSize + sectorSize, 64);
    refuse(header.length < 64 || header.toString('latin1', 0, 4) !== 'XAGF', 'a group of its blocks cannot be read');
    // Free blocks, and those that are kept for its own trees.
    free += header.readUInt32BE(52) + header.readUInt32BE(48);
  }
  const size = Number(block.readBigUInt64BE(8)) * blockSize;
  refuse(free * blockSize > Number(block.readBigUInt64BE(144)) * blockSize, 'its groups have more free blocks than it has');
  return { size, free: free * blockSize };
};

/** The kernel's include/linux/swap.h: union swap_header, with pages of 4 KiB. A swap area with a saved system has another signature. */
const swapFacts: Facts = async (read) => {
  const header = await read(1024, 8);
  refuse(header.readUInt32LE(0) !== 1, 'it has an unknown version');
  const size = (header.readUInt32LE(4) + 1) * SWAP_HEADER;
  return { size, free: size - SWAP_HEADER };
};

const EXT: FileSystem = { name: 'ext', facts: extFacts, lister: 'partclone.extfs' };
const XFS: FileSystem = { name: 'xfs', facts: xfsFacts, lister: 'partclone.xfs' };
const NTFS: FileSystem = { name: 'ntfs', facts: ntfsFacts, lister: 'partclone.ntfs' };
const SWAP: FileSystem = { name: 'swap', facts: swapFacts };
/** Bytes with their offset, and what they identify: a text is something of which all is read. */
const SIGNATURES: readonly (readonly [offset: number, bytes: string, what: FileSystem | string])[] = [
  [1080, '\x53\xef', EXT],
  [0, 'XFSB', XFS],
  [4086, 'SWAPSPACE2', SWAP],
  [3, 'NTFS    ', NTFS],
  [3, '-FVE-FS-', 'bitlocker'],
  [54, 'FAT', 'vfat'],
  [82, 'FAT32', 'vfat'],
  [65_600, '_BHRfS_M', 'btrfs'],
  [512, 'LABELONE', 'lvm'],
  [0, 'LUKS\xba\xbe', 'luks'],
  [0, '\xfc\x4e\x2b\xa9', 'raid'],
  [4096, '\xfc\x4e\x2b\xa9', 'raid'],
  [4120, '\xc6\x85\x73\xf6\x4e\x1a\x45\xca', 'bcache'],
];
/** The file system of which a partition has the signature. A text: the name of another content. Undefined: it has no known one, or several. */
export function identify(head: Buffer): FileSystem | string | undefined {
  const found = new Set(
    SIGNATURES.filter(([at, bytes]) => head.toString('latin1', at, at + bytes.length) === bytes).map(([, , what]) => what),
  );
  return found.size === 1 ? [...found][0] : undefined;
}
