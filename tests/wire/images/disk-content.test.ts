/** Whole disks and file systems, told apart by their first bytes: made by the programs of Linux where they are here, and by hand. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contentProblem, diskContent } from '../../../wire/images/disk-content';
import { qcow2Start } from '../../../wire/images/qcow2';
import { qcow2 } from '../../ramdisk-agent/qcow2-builder';

const MIB = 2 ** 20;
const changed = (bytes: Buffer, change: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
};
const zeros = Buffer.alloc(128 * 1024);
const written = (text: string, at: number) => changed(zeros, (bytes) => bytes.write(text, at, 'latin1'));
const signed = (from: Buffer) => changed(from, (bytes) => bytes.writeUInt16LE(0xaa55, 510));
/** With a partition from the first MiB. */
const mbr = (from: Buffer, change: (bytes: Buffer) => void = () => {}) =>
  changed(signed(from), (bytes) => {
    bytes.set([0x80, 0, 0, 0, 0x83], 446);
    bytes.writeUInt32LE(2048, 454);
    bytes.writeUInt32LE(4096, 458);
    change(bytes);
  });
const ext = changed(zeros, (bytes) => {
  bytes.writeUInt32LE(1000, 1024);
  bytes.writeUInt16LE(0xef53, 1080);
  bytes.writeUInt32LE(1, 1100);
});
const gpt = (sector: number) =>
  changed(zeros, (bytes) => {
    bytes.write('EFI PART', sector, 'latin1');
    bytes.writeUInt32LE(1, sector + 24);
  });
const ntfs = signed(written('NTFS    ', 3));

describe.each<[string, Buffer, fits: readonly ('whole-disk' | 'partition')[]]>([
  ['zeros', zeros, ['whole-disk', 'partition']],
  ['nothing', Buffer.alloc(0), ['whole-disk', 'partition']],
  ['an MBR', mbr(zeros), ['whole-disk']],
  ['an MBR with GRUB', mbr(changed(zeros, (bytes) => bytes.fill(0x90, 0, 440))), ['whole-disk']],
  ['a GPT', gpt(512), ['whole-disk']],
  ['a GPT on a disk with 4096 bytes a sector', gpt(4096), ['whole-disk']],
  ['a GPT with its protective MBR', mbr(gpt(512), (bytes) => bytes.set([0, 0, 2, 0, 0xee], 446)), ['whole-disk']],
  ['ext4', ext, ['partition']],
  ['XFS', written('XFSB', 0), ['partition']],
  ['Btrfs', written('_BHRfS_M', 65_600), ['partition']],
  ['SquashFS', written('hsqs', 0), ['partition']],
  // A BIOS may start the file system's own sector: SYSLINUX does this.
  ['ext4 with a boot sector', signed(ext), ['whole-disk', 'partition']],
  ['FAT', signed(written('FAT32   ', 82)), ['whole-disk', 'partition']],
  ['NTFS', ntfs, ['whole-disk', 'partition']],
  // Its code is where others have a table.
  ['NTFS with code', changed(ntfs, (bytes) => bytes.fill(0x80, 446, 510)), ['whole-disk', 'partition']],
  // What was on a disk before.
  ['an MBR and ext4', mbr(ext), ['whole-disk', 'partition']],
  ['GRUB that has the signature of ext4', mbr(changed(zeros, (bytes) => bytes.writeUInt16LE(0xef53, 1080))), ['whole-disk']],
  ['a table without entries', signed(zeros), ['whole-disk', 'partition']],
  ['a table with a flag that does not exist', mbr(zeros, (bytes) => (bytes[462] = 1)), ['whole-disk', 'partition']],
  ['a table with an entry of no size', mbr(zeros, (bytes) => bytes.writeUInt32LE(0, 458)), ['whole-disk', 'partition']],
])('%s', (_, head, fits) => {
  it.each(['whole-disk', 'partition'] as const)('as %s', (kind) => {
    expect(contentProblem(diskContent(head), kind) === undefined).toBe(fits.includes(kind));
  });
  it('cut anywhere', () => {
    const cut = (): void => {
      for (let length = 0; length <= 2100; length += 7) diskContent(head.subarray(0, length));
    };
    expect(cut).not.toThrow();
  });
});

/** Programs of the system, which may not be here. */
it.each<[string, readonly string[], string | undefined]>([
  ['mke2fs', ['-q', '-t', 'ext2', 'FILE'], 'ext4'],
  ['mke2fs', ['-q', '-t', 'ext4', 'FILE'], 'ext4'],
  ['mkfs.xfs', ['-q', 'FILE'], 'XFS'],
  ['mkfs.vfat', ['FILE'], 'FAT'],
  ['mkfs.ntfs', ['-q', '-Q', '-F', 'FILE'], 'NTFS'],
  ['mkfs.btrfs', ['-q', 'FILE'], 'Btrfs'],
  ['sfdisk', ['-q', 'FILE'], undefined],
  ['sgdisk', ['-n', '1:0:0', 'FILE'], undefined],
])('what %s %j makes', (program, words, fileSystem) => {
  const environment = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` };
  if (spawnSync(program, ['--version'], { env: environment }).error) return;
  const folder = mkdtempSync(join(tmpdir(), 'disk-content-'));
  try {
    const file = join(folder, 'disk');
    writeFileSync(file, '');
    truncateSync(file, 400 * MIB);
    execFileSync(
      program,
      words.map((word) => (word === 'FILE' ? file : word)),
      { env: environment, input: 'start=2048\n', stdio: ['pipe', 'ignore', 'ignore'] },
    );
    const head = Buffer.alloc(128 * 1024);
    const handle = openSync(file, 'r');
    readSync(handle, head);
    closeSync(handle);
    expect(diskContent(head)).toMatchObject({ fileSystem, hasTable: fileSystem === undefined });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('the beginning of the disk in a qcow2 image', () => {
  const start = (file: Buffer) => qcow2Start(file, async (offset, length) => file.subarray(offset, offset + length));
  const cluster = ext.subarray(0, 4096);
  it.each([
    ['as it is', qcow2({ clusters: { 0: cluster, 3: 1 }, size: 65_536 })],
    ['compressed', qcow2({ clusters: { 0: cluster, 3: 1 }, compressed: [0, 3], size: 65_536 })],
    ['with its tables at the end', qcow2({ clusters: { 0: cluster }, size: 65_536, order: ['data', 'l2', 'l1'] })],
  ])('%s', async (_, file) => {
    expect((await start(file))?.equals(cluster)).toBe(true);
  });
  it.each([
    ['no first cluster', qcow2({ clusters: { 3: 1 }, size: 65_536 })],
    ['no first table', qcow2({ clusters: {}, size: 65_536 })],
    ['zeros', qcow2({ clusters: { 0: 1 }, zeroed: [0], size: 65_536 })],
  ])('%s', async (_, file) => {
    await expect(start(file)).resolves.toBeUndefined();
  });
  it('a truncated file is an error', async () => {
    const file = qcow2({ clusters: { 0: cluster }, compressed: [0], size: 65_536 });
    await expect(start(file.subarray(0, 5000))).rejects.toThrow();
  });
});
