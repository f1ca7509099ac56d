/** File systems that mkfs made, read by the programs that the ramdisk has: what they do not use is left out, and their own checks pass. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../model/log';
import { compressionFor } from '../../../ramdisk-agent/disk/compression';
import { openDevice } from '../../../ramdisk-agent/disk/device';
import { streamedImage } from '../../../ramdisk-agent/disk/qcow2-image';
import { usedBlocks, withoutFree } from '../../../ramdisk-agent/disk/used-blocks';
import { run } from '../../../ramdisk-agent/system/run';

jest.setTimeout(300_000);
const MiB = 2 ** 20;
const SIZE = 128 * MiB;
/** The least that mkfs.xfs takes is 300 MiB. */
const XFS_SIZE = 320 * MiB;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'used-blocks-'));
  mkdirSync(join(folder, 'files'));
  for (let number = 0; number < 40; number++) writeFileSync(join(folder, `files/kept-${number}`), randomBytes(number * 10_000));
  writeFileSync(join(folder, 'removed'), randomBytes(30 * MiB));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sh = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString();
function emptyDisk(name: string, size = SIZE): string {
  const path = join(folder, `${name}.raw`);
  // What was there before a file system is content that nobody wants.
  writeFileSync(path, Buffer.alloc(size, 'old '));
  return path;
}
const debugfs = (path: string, command: string) => sh('debugfs', '-w', '-R', command, path);
/** With files, and with one that was removed, whose content is still there. */
function ext(name: string, ...options: readonly string[]): string {
  const path = emptyDisk(name);
  sh('mkfs.ext4', '-q', '-F', '-E', 'nodiscard', ...options, '-d', join(folder, 'files'), path);
  debugfs(path, `write ${join(folder, 'removed')} removed`);
  debugfs(path, 'rm removed');
  return path;
}
/** Files of XFS by mkfs alone: a list of them. */
function xfs(name: string): string {
  const path = emptyDisk(name, XFS_SIZE);
  const rows = Array.from({ length: 40 }, (_, number) => `kept-${number} ---644 0 0 ${join(folder, `files/kept-${number}`)}`);
  writeFileSync(join(folder, 'proto'), ['/dev/null', '0 0', 'd--755 0 0', ...rows, '$', ''].join('\n'));
  sh('mkfs.xfs', '-q', '-f', '-K', '-p', join(folder, 'proto'), path);
  return path;
}

/** With files; what was there before is in the free clusters. */
function ntfs(name: string, ...options: readonly string[]): string {
  const path = emptyDisk(name);
  sh('mkntfs', '-F', '-Q', '-q', ...options, path);
  for (let number = 0; number < 40; number++) sh('ntfscp', '-q', path, join(folder, `files/kept-${number}`), `kept-${number}`);
  return path;
}

/** Saves a disk, and writes the image to another one. */
async function copied(path: string) {
  const device = await openDevice({ path, size: statSync(path).size, sectorSize: 512, mode: 'read' });
  const { signal } = new AbortController();
  try {
    const used = await usedBlocks(device, { run, log: silentLog, signal, temporary: folder, partition: () => '' });
    writeFileSync(`${path}.qcow2`, '');
    const file = await openDevice({ path: `${path}.qcow2`, size: 2 ** 40, sectorSize: 512, mode: 'write' });
    const making = { compression: await compressionFor(silentLog), signal, progress: () => {} };
    for await (const [at, bytes] of streamedImage(withoutFree(device, used.free), making)) await file.write(bytes, at);
    await file.close();
    expect(sh('qemu-img', 'check', `${path}.qcow2`)).toContain('No errors');
    sh('qemu-img', 'convert', '-O', 'raw', `${path}.qcow2`, `${path}.copy`);
    return { ...used, copy: `${path}.copy`, bytes: statSync(`${path}.qcow2`).size };
  } finally {
    await device.close();
  }
}
/** All bytes that are not free are the same. */
function sameUsed(path: string, copy: string, free: readonly { readonly start: number; readonly end: number }[]): boolean {
  const [before, after] = [readFileSync(path), readFileSync(copy)];
  for (const { start, end } of free) before.fill(0, start, end);
  return before.equals(after);
}
const sum = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

it.each([
  ['ext2', ['-O', '^has_journal,^extent,^64bit,^metadata_csum', '-b', '1024']],
  ['ext3', ['-O', '^extent,^64bit,^metadata_csum']],
  ['ext4', []],
])('saves what %s uses', async (name, options) => {
  const path = ext(name, ...options);
  const { partitions, free, copy, bytes } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'ext', blocks: 'used', reason: null }]);
  expect(partitions[0]!.left_out).toBeGreaterThan(SIZE * 0.75);
  expect(bytes).toBeLessThan(40 * MiB);
  sh('e2fsck', '-f', '-n', copy);
  const target = join(folder, `read-${name}`);
  mkdirSync(target);
  sh('debugfs', '-R', `rdump / ${target}`, copy);
  for (let number = 0; number < 40; number++)
    expect(sum(readFileSync(join(target, `kept-${number}`)))).toBe(sum(readFileSync(join(folder, `files/kept-${number}`))));
  expect(sameUsed(path, copy, free)).toBe(true);
});

it('saves what XFS uses', async () => {
  const path = xfs('xfs');
  const { partitions, free, copy, bytes } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'xfs', blocks: 'used', reason: null }]);
  expect(partitions[0]!.left_out).toBeGreaterThan(XFS_SIZE * 0.5);
  expect(bytes).toBeLessThan(40 * MiB);
  sh('xfs_repair', '-n', '-f', copy);
  expect(sameUsed(path, copy, free)).toBe(true);
});

it.each([
  ['NTFS', []],
  ['NTFS with large clusters', ['-c', '65536']],
  ['NTFS with small clusters', ['-c', '512', '-s', '512']],
])('saves what %s uses', async (name, options) => {
  const path = ntfs(name.replaceAll(' ', '-'), ...options);
  const { partitions, free, copy, bytes } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'ntfs', blocks: 'used', reason: null }]);
  expect(partitions[0]!.left_out).toBeGreaterThan(SIZE * 0.75);
  expect(bytes).toBeLessThan(40 * MiB);
  sh('ntfsinfo', '-m', copy);
  for (const number of [1, 20, 39]) {
    const content = execFileSync('ntfscat', [copy, `kept-${number}`], { maxBuffer: MiB });
    expect(sum(content)).toBe(sum(readFileSync(join(folder, `files/kept-${number}`))));
  }
  expect(sameUsed(path, copy, free)).toBe(true);
});

it.each<[string, (bytes: Buffer) => void, string]>([
  [
    'that was not unmounted',
    (bytes) => {
      // The flags of the volume, in record 3 of the table that mkntfs puts into the fourth cluster.
      const record = bytes.subarray(4 * 4096 + 3 * 1024);
      let at = record.readUInt16LE(0x14);
      while (record.readUInt32LE(at) !== 0x70) at += record.readUInt32LE(at + 4);
      record[at + record.readUInt16LE(at + 0x14) + 10]! |= 1;
    },
    'it was not unmounted',
  ],
  [
    'whose journal is in use',
    (bytes) => {
      const empty = bytes.indexOf(Buffer.alloc(8192, 0xff));
      bytes.fill(0, empty, empty + 8192).write('RSTR', empty, 'latin1');
      bytes.writeUInt16LE(0x30, empty + 0x18);
    },
    'its journal has not been replayed',
  ],
])('reads all of an NTFS %s', async (_, spoil, reason) => {
  const path = emptyDisk('spoilt');
  sh('mkntfs', '-F', '-Q', '-q', path);
  const bytes = readFileSync(path);
  spoil(bytes);
  writeFileSync(path, bytes);
  const { partitions, copy } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'ntfs', blocks: 'all', left_out: 0, reason }]);
  expect(sameUsed(path, copy, [])).toBe(true);
});

it('saves the header of a swap area', async () => {
  const path = emptyDisk('swap');
  sh('mkswap', path);
  const { partitions, copy } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'swap', blocks: 'used', left_out: SIZE - 4096 }]);
  expect(readFileSync(copy).subarray(0, 4096).equals(readFileSync(path).subarray(0, 4096))).toBe(true);
});

it.each<[string, () => string, string]>([
  ['with a journal that was not replayed', () => changed('feature needs_recovery'), 'its journal has not been replayed'],
  ['that was not unmounted', () => changed('ssv state 0'), 'it was not unmounted'],
  ['whose superblock counts more', () => changed('ssv free_blocks_count 20000'), 'partclone.extfs cannot list its blocks'],
  ['whose bitmap has more', () => changed('freeb 300 100'), 'partclone.extfs cannot list its blocks'],
  [
    'that is shorter than its file system',
    () => {
      const path = ext('short');
      truncateSync(path, SIZE - MiB);
      return path;
    },
    'the file system is larger than its partition',
  ],
])('reads all of a file system %s', async (_, make, reason) => {
  const path = make();
  const { partitions, copy } = await copied(path);
  expect(partitions).toMatchObject([{ file_system: 'ext', blocks: 'all', left_out: 0, reason }]);
  expect(sameUsed(path, copy, [])).toBe(true);
});
function changed(command: string): string {
  const path = ext('changed');
  debugfs(path, command);
  return path;
}
