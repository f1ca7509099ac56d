/**
 * Fills the EFI system partition of a partition image: with the folder EFI that the image has where its system mounts the partition, or else with
 * the GRUB of the image's packages. No program of the image runs.
 */
import { constants, createWriteStream } from 'node:fs';
import { lstat, mkdir, open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { hasLoader, mounted, pathsOf } from '../disk/efi';
import { EFI_SYSTEM, type Partition, readPartitions } from '../disk/partitions';
import type { ImageFiles } from '../kexec/image-files';
import type { RaidHost } from '../raid/arrays';
import { rootPartition, withRoot } from './boot-loader';
import { grubCommands } from './grub-commands';
import { uuidOf } from './identity';

/** Where systems mount their EFI system partition. */
const SYSTEM_FOLDERS = ['boot/efi/EFI', 'efi/EFI', 'boot/EFI'];
/** Of Debian's packages: a loader with a signature starts GRUB, which has one too; GRUB without. By the machine's architecture. */
const PACKAGED: Readonly<Record<string, { readonly name: string; readonly shim: string; readonly grubs: readonly string[] }>> = {
  x64: {
    name: 'X64',
    shim: 'usr/lib/shim/shimx64.efi.signed',
    grubs: ['usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed', 'usr/lib/grub/x86_64-efi/monolithic/grubx64.efi'],
  },
  arm64: {
    name: 'AA64',
    shim: 'usr/lib/shim/shimaa64.efi.signed',
    grubs: ['usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed', 'usr/lib/grub/arm64-efi/monolithic/grubaa64.efi'],
  },
};

const MiB = 2 ** 20;
/** Of the copied files: less than the partition has. */
const MOST = { bytes: 500 * MiB, entries: 2000, depth: 8 };
/** A GRUB is much smaller. */
const MAX_LOADER = 32 * MiB;

interface Copying {
  readonly files: ImageFiles;
  readonly folder: string;
  bytes: number;
  entries: number;
}
const GRUB = /^grub\w{0,8}\.efi$/i;

const checkSize = (path: string, size: number, most: number): void => {
  if (size > most) throw new Error(`the file ${path.slice(-200)} of the image has ${size} bytes, and ${most} are allowed`);
};
async function readLoader({ files }: Copying, path: string): Promise<Buffer | null> {
  const file = await files.open(path);
  if (!file) return null;
  try {
    const { size } = await file.stat();
    checkSize(path, size, MAX_LOADER);
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await file.read(bytes, 0, size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
/** In pieces: kernels and initial ramdisks may be there. */
async function copyFile(copying: Copying, from: string, to: string): Promise<void> {
  const source = await copying.files.open(from);
  if (!source) return;
  try {
    const { size } = await source.stat();
    checkSize(from, size, MOST.bytes - copying.bytes);
    copying.bytes += size;
    await mkdir(dirname(join(copying.folder, to)), { recursive: true });
    await pipeline(source.createReadStream({ autoClose: false, start: 0 }), createWriteStream(join(copying.folder, to)));
  } finally {
    await source.close();
  }
}
async function put({ folder }: Copying, path: string, content: Buffer | string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), content);
}

/** The names of all files below a folder of the image. Links lead to files of the image. */
async function filesBelow(copying: Copying, from: string, depth = 0): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of await copying.files.names(from)) {
    if (++copying.entries > MOST.entries || depth > MOST.depth)
      throw new Error(`the folder ${from.slice(-200)} of the image has too many files`);
    const path = `${from}/${name}`;
    const file = await copying.files.open(path);
    await file?.close();
    found.push(...(file ? [path] : await filesBelow(copying, path, depth + 1)));
  }
  return found;
}

/** Returns the folders, below the partition's root, that have a GRUB and no configuration for it. Undefined: the image has no loader there. */
async function copyFolder(copying: Copying, from: string): Promise<readonly string[] | undefined> {
  const paths = await filesBelow(copying, from);
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
  if (!hasLoader(paths.map(nameOf))) return undefined;
  const to = (path: string): string => `EFI${path.slice(from.length)}`;
  for (const path of paths) await copyFile(copying, path, to(path));
  const folders = new Set(paths.filter((path) => GRUB.test(nameOf(path))).map((path) => dirname(to(path))));
  return [...folders].filter((folder) => !paths.some((path) => to(path).toLowerCase() === `${folder}/grub.cfg`.toLowerCase()));
}

/** Of a GRUB: where its configuration is, which it has in its last section. */
const PREFIX = /\0\/(EFI\/[\w.-]{1,32})\0/g;
/** As `copyFolder`. */
async function copyPackaged(copying: Copying): Promise<readonly string[] | undefined> {
  const row = PACKAGED[process.arch];
  if (!row) return undefined;
  for (const path of row.grubs) {
    const grub = await readLoader(copying, path);
    if (!grub) continue;
    const shim = path.endsWith('.signed') ? await readLoader(copying, row.shim) : null;
    await put(copying, `EFI/BOOT/BOOT${row.name}.EFI`, shim ?? grub);
    if (shim) await put(copying, `EFI/BOOT/grub${row.name.toLowerCase()}.efi`, grub);
    return ['EFI/BOOT', ...[...grub.toString('latin1').matchAll(PREFIX)].slice(0, 4).map(([, folder]) => folder!)];
  }
  return undefined;
}

async function fill(copying: Copying, commands: () => Promise<string>): Promise<void> {
  let configured: readonly string[] | undefined;
  for (const from of SYSTEM_FOLDERS) configured ??= await copyFolder(copying, from);
  configured ??= await copyPackaged(copying);
  if (!configured) throw new Error(`the image has no boot loader for UEFI: neither in ${SYSTEM_FOLDERS.join(', ')}, nor GRUB of a package`);
  if (configured.length === 0) return;
  const text = await commands();
  for (const folder of configured) await put(copying, `${folder}/grub.cfg`, text);
}

/** Throws DeviceNotFound without such partitions, CommandExecutionError with the reason otherwise. */
export async function fillSystemPartition(host: RaidHost, device: Device, rootUuid: string): Promise<void> {
  const table = await readPartitions(device);
  const system = table?.partitions.find(({ type }) => type === EFI_SYSTEM[table.label]);
  if (!system) throw new AgentError('DeviceNotFound', `No EFI partition could be detected on device ${device.path}.`);
  const root = await rootPartition(device, rootUuid);
  try {
    const { partition } = pathsOf(host.tree, device.path);
    const hint = `${table!.label === 'gpt' ? 'gpt' : 'msdos'}${root.number}`;
    const setRoot = `search --no-floppy --fs-uuid --set=root --hint=hd0,${hint} ${rootUuid}`;
    await withRoot(device, host, root, ({ files }) =>
      mounted(
        host.run,
        partition(system.number),
        host.temporary,
        (folder) => fill({ files, folder, bytes: 0, entries: 0 }, () => grubCommands(files, setRoot, rootUuid)),
        'rw',
      ),
    );
  } catch (error) {
    throw new AgentError('CommandExecutionError', `Could not configure UEFI boot on device ${device.path}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  await addToFstab(host, device, root, system).catch((error: unknown) =>
    host.log.warn(`The EFI system partition is not in the image's /etc/fstab: ${reasonOf(error)}`),
  );
}

const isMountOfSystem = (line: string): boolean =>
  ['/boot/efi', '/efi'].includes(line.trim().split(/\s+/)[1] ?? '') && !line.trim().startsWith('#');

/** So that the system updates its boot loader where the firmware finds it. An image that has such a line, or no /etc/fstab, stays as it is. */
async function addToFstab(host: RaidHost, device: Device, root: Partition, system: Partition): Promise<void> {
  const line = `UUID=${await uuidOf(device, system)}\t/boot/efi\tvfat\tumask=0077\t0\t1\n`;
  const text = await withRoot(device, host, root, ({ files }) => files.text('etc/fstab'));
  if (text === null || text.split('\n').some(isMountOfSystem)) return;
  const append = async (folder: string): Promise<void> => {
    const path = join(folder, 'etc', 'fstab');
    // No links: they could lead out of the image.
    if (!(await lstat(dirname(path))).isDirectory() || !(await lstat(path)).isFile()) throw new Error('it is a link');
    const file = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW);
    try {
      await file.writeFile(`${text === '' || text.endsWith('\n') ? '' : '\n'}${line}`);
    } finally {
      await file.close();
    }
  };
  await withRoot(device, host, root, ({ folder }) => append(folder), true);
}
