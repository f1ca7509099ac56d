/** UEFI: an entry in the firmware's boot order for the image's boot loader. */
import { mkdtemp, readdir, readFile, rmdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import type { Device } from './device';
import { EFI_SYSTEM, partitionPath, readPartitions } from './partitions';

export interface Loader {
  /** In the firmware notation: \EFI\BOOT\BOOTX64.EFI */
  readonly path: string;
  readonly label: string;
}

/** File names of loaders, the best first. A .csv contains loader and label (as for shim's fallback.efi). */
const LOADERS = [
  'bootx64.csv',
  'bootaa64.csv',
  'boot.csv',
  'bootx64.efi',
  'bootaa64.efi',
  'bootriscv64.efi',
  'bootia32.efi',
  'grubaa64.efi',
  'winload.efi',
  // Where only a distribution's own folder has loaders
  'shimx64.efi',
  'shimaa64.efi',
  'grubx64.efi',
];

/**
 * Makes the image's loader the first entry of the boot order. Throws DeviceNotFound without an EFI system partition, and
 * CommandExecutionError when the firmware refuses. `temporary`: a folder for temporary directories.
 */
export async function installBootEntry(device: Device, run: Run, tree: Tree, temporary: string): Promise<Loader> {
  const table = await readPartitions(device);
  const system = table?.partitions.find((partition) => partition.type === EFI_SYSTEM[table.label]);
  if (!system) {
    const text = `No EFI partition could be detected on device ${device.path}. Are you using a UEFI-compatible image?`;
    throw new AgentError('DeviceNotFound', text);
  }
  const { partition, disk } = pathsOf(tree, device.path);
  try {
    const loader = await mounted(run, partition(system.number), temporary, findLoader);
    if (!loader) throw new Error(NO_LOADER);
    await makeBootEntry(run, loader, { disk, partition: system.number });
    return loader;
  } catch (error) {
    throw new AgentError('CommandExecutionError', `Could not configure UEFI boot on device ${device.path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

export const NO_LOADER = 'its EFI system partition has no boot loader';

/** Makes the loader the first entry of the boot order, in place of older entries with the same label. */
export async function makeBootEntry(
  run: Run,
  { label, path }: Loader,
  { disk, partition }: { readonly disk: string; readonly partition: number },
): Promise<void> {
  for (const [, entry, other] of (await run('efibootmgr', [])).matchAll(/^Boot([0-9A-F]{4})\*? +([^\t\n]*)/gm)) {
    if (other === label) await run('efibootmgr', ['--quiet', '--delete-bootnum', '--bootnum', entry!]);
  }
  const which = ['--disk', disk, '--part', String(partition), '--label', label, '--loader', path];
  await run('efibootmgr', ['--quiet', '--create', ...which]);
}

interface Paths {
  readonly partition: (number: number) => string;
  /** The disk that the firmware knows. */
  readonly disk: string;
}
/** The partitions of a multipath device are devices by themselves, and the firmware knows only its paths. */
export function pathsOf(tree: Tree, disk: string): Paths {
  const base = `/sys/block/${disk.slice('/dev/'.length)}`;
  const [name, path] = [tree.text(`${base}/dm/name`), tree.list(`${base}/slaves`)[0]];
  if (name === null || path === undefined) return { disk, partition: (number) => partitionPath(disk, number) };
  return { disk: `/dev/${path}`, partition: (number) => `/dev/mapper/${name}-part${number}` };
}

/** Gives `work` the folder where an EFI system partition is mounted. */
export async function mounted<T>(
  run: Run,
  partition: string,
  temporary: string,
  work: (directory: string) => Promise<T>,
  mode: 'ro' | 'rw' = 'ro',
): Promise<T> {
  const directory = await mkdtemp(join(temporary, 'esp-'));
  await run('mount', ['-t', 'vfat', '-o', mode, partition, directory]);
  try {
    return await work(directory);
  } finally {
    await run('umount', [directory]);
    await rmdir(directory);
  }
}

/** Whether a loader may be among files with these names. */
export const hasLoader = (names: readonly string[]): boolean => names.some((name) => LOADERS.includes(name.toLowerCase()));

/** The best loader below the directory; null when there is none. */
export async function findLoader(directory: string): Promise<Loader | null> {
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const found = LOADERS.flatMap((name) => files.filter((file) => file.name.toLowerCase() === name))[0];
  if (!found) return null;
  const below = relative(directory, found.parentPath);
  const firmwarePath = (name: string): string => `\\${join(below, name).replaceAll('/', '\\')}`;
  if (!found.name.toLowerCase().endsWith('.csv')) return { path: firmwarePath(found.name), label: 'bloomery' };
  const text = (await readFile(join(found.parentPath, found.name))).toString('utf16le').replace(/^\ufeff/, '');
  const [file, label] = text.split(',');
  return file ? { path: firmwarePath(file), label: label?.trim() || 'bloomery' } : null;
}
