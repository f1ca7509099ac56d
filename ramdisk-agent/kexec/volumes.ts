/** Mounts the file systems of a disk's partitions. */
import { mkdtemp, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Device } from '../disk/device';
import { pathsOf } from '../disk/efi';
import { readPartitions } from '../disk/partitions';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import type { Volume } from './find-kernel';
import { imageFiles } from './image-files';

/**
 * File system → the bytes that identify it, with their offset, where its UUID is, and what is mounted, so that nothing is written and no
 * journal replayed.
 */
const FILE_SYSTEMS = [
  { type: 'ext4', signatures: [[1080, '\x53\xef']], uuidAt: 1128, options: 'noload' },
  { type: 'xfs', signatures: [[0, 'XFSB']], uuidAt: 32, options: 'norecovery,nouuid' },
  { type: 'btrfs', signatures: [[65600, '_BHRfS_M']], uuidAt: 65568, options: 'rescue=nologreplay' },
  {
    type: 'vfat',
    signatures: [
      [54, 'FAT'],
      [82, 'FAT'],
    ],
    uuidAt: null,
    options: '',
  },
] as const;
const HEAD = 65608;
const MAX_PARTITIONS = 32;
const SAFE = 'nosuid,nodev,noexec';

export interface MountedVolume extends Volume {
  /** Where it is mounted. */
  readonly folder: string;
}
interface Which {
  /** Absent: all partitions. */
  readonly numbers?: readonly number[];
  /** Absent: read-only, and no journal is replayed. */
  readonly isWritable?: boolean;
}
/** Gives `work` the file systems that can be mounted; those of other kinds, and damaged ones, are left out. */
export async function withVolumes<T>(
  device: Device,
  { run, tree, temporary }: { readonly run: Run; readonly tree: Tree; readonly temporary: string },
  work: (volumes: readonly MountedVolume[]) => Promise<T>,
  { numbers, isWritable = false }: Which = {},
): Promise<T> {
  const { partition } = pathsOf(tree, device.path);
  const mounted: { readonly folder: string; readonly volume: Volume }[] = [];
  try {
    for (const { number, start, size } of ((await readPartitions(device))?.partitions ?? []).slice(0, MAX_PARTITIONS)) {
      if (numbers && !numbers.includes(number)) continue;
      const head = await device.read(start, Math.min(HEAD, size));
      const found = FILE_SYSTEMS.find(({ signatures }) =>
        signatures.some(([offset, bytes]) => head.toString('latin1', offset, offset + bytes.length) === bytes),
      );
      if (!found) continue;
      const folder = await mkdtemp(join(temporary, 'volume-'));
      const options = [isWritable ? 'rw' : 'ro', SAFE, isWritable ? '' : found.options].filter((option) => option !== '').join(',');
      try {
        await run('mount', ['-t', found.type, '-o', options, partition(number), folder]);
        const uuid = found.uuidAt === null ? null : uuidIn(head.subarray(found.uuidAt));
        mounted.push({ folder, volume: { name: partition(number), uuid, files: imageFiles(folder) } });
      } catch {
        await rmdir(folder);
      }
    }
    return await work(mounted.map(({ folder, volume }) => ({ ...volume, folder })));
  } finally {
    for (const { folder } of mounted.reverse()) {
      await run('umount', [folder]);
      await rmdir(folder);
    }
  }
}

const uuidIn = (bytes: Buffer): string => bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
