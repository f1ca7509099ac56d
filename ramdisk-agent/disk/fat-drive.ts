/**
 * A config drive for disks with sectors of more than 2048 bytes. The kernel mounts no ISO 9660 volume there, and no FAT volume whose sectors
 * are smaller: the files are copied into a FAT volume with the disk's sectors.
 */
import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { fatImage } from '../../wire/images/fat';
import type { Run } from '../system/run';

const MAX_ISO_SECTOR = 2048;
const MAX_FILES = 10_000;
const LABEL = 'CONFIG-2';

export interface DriveConversion {
  readonly run: Run;
  /** The folder for temporary directories. */
  readonly temporary: string;
  /** Milliseconds; the date of the files. */
  readonly now: number;
}

/** The volume itself, or a FAT volume with its files if the disk needs one. Throws DeploymentError. */
export async function volumeFor(sectorSize: number, volume: Buffer, { run, temporary, now }: DriveConversion): Promise<Buffer> {
  if (sectorSize <= MAX_ISO_SECTOR) return volume;
  const folder = await mkdtemp(join(temporary, 'drive-'));
  const [file, mounted] = [`${folder}.img`, folder];
  try {
    await writeFile(file, volume);
    await mount(run, file, mounted);
    try {
      return fatImage({ label: LABEL, files: await filesBelow(mounted, volume.length), sectorSize, now });
    } finally {
      await run('umount', [mounted]);
    }
  } catch (error) {
    const text = `The config drive cannot be converted for a disk with sectors of ${sectorSize} bytes: ${reasonOf(error)}`;
    throw new AgentError('DeploymentError', text, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await rm(file, { force: true });
  }
}

/** The kernel loads the driver of a file system only for its name. */
const KINDS = ['iso9660', 'vfat'];
async function mount(run: Run, file: string, folder: string): Promise<void> {
  const failures: string[] = [];
  for (const kind of KINDS) {
    try {
      await run('mount', ['-t', kind, '-o', 'loop,ro', file, folder]);
      return;
    } catch (error) {
      failures.push(reasonOf(error));
    }
  }
  throw new Error(failures.join('; '));
}

/** Path with slashes → content. Links are left out, since FAT has none. */
async function filesBelow(root: string, mostBytes: number): Promise<Readonly<Record<string, Buffer>>> {
  const found: Record<string, Buffer> = {};
  let [count, bytes] = [0, 0];
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (++count > MAX_FILES) throw new Error(`it has more than ${MAX_FILES} files`);
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    // Entries may share their data: the files may be larger than the volume.
    bytes += (await lstat(path)).size;
    if (bytes > 2 * mostBytes) throw new Error('its files are larger than the volume');
    found[relative(root, path)] = await readFile(path);
  }
  return found;
}
