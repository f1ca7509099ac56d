/** Finds what the boot loader of a written image would start, on the file systems of its partitions. */
import type { FileHandle } from 'node:fs/promises';
import { partitionNumber } from '../disk/partitions';
import { type BootEntry, newestFirst, NotUnderstood } from './boot-entry';
import { defaultEntry, expanded, type GrubEnvironment, grubEntry, grubVariables, parseGrubEnvironment, readsLoaderEntries } from './grub';
import type { ImageFiles } from './image-files';
import { loaderDefault, loaderEntry } from './loader-entries';
import { type Piece, unifiedKernel } from './unified-kernel';

/** A mounted file system of the image. */
export interface Volume {
  /** /dev/sda1 */
  readonly name: string;
  /** Of the file system; null: it has none. */
  readonly uuid: string | null;
  readonly files: ImageFiles;
}
/** What is to be started. The caller closes the files. */
export interface FoundKernel {
  /** For the log: the configuration and the kernel. */
  readonly from: string;
  readonly path: string;
  readonly kernel: Piece;
  /** Their content, one after the other, is the initial ramdisk. */
  readonly initrds: readonly Piece[];
  readonly commandLine: string;
  readonly files: readonly FileHandle[];
}

const LOADERS = 'loader/entries';
const GRUB_FOLDERS = ['boot/grub', 'boot/grub2', 'grub', 'grub2'];
const UNIFIED = 'EFI/Linux';
const MAX_VENDORS = 16;

interface Candidate {
  readonly volume: Volume;
  readonly from: string;
  readonly entry: BootEntry;
}

/** Of Grub's folders; those of vendors on an EFI system partition usually only refer to the others. */
async function grubFolders({ files }: Volume): Promise<readonly string[]> {
  const vendors = (await files.names('EFI')).slice(0, MAX_VENDORS);
  return [...GRUB_FOLDERS, ...vendors.map((vendor) => `EFI/${vendor}`)];
}

async function environmentOf(volumes: readonly Volume[], folder: string): Promise<GrubEnvironment> {
  for (const place of [folder, ...GRUB_FOLDERS]) {
    for (const { files } of volumes) {
      const text = await files.text(`${place}/grubenv`);
      if (text !== null) return parseGrubEnvironment(text);
    }
  }
  return new Map();
}

/** The entries of files `loader/entries`, which GRUB reads with its own variables. */
async function entriesForGrub(volumes: readonly Volume[], text: string, environment: GrubEnvironment): Promise<readonly Candidate[]> {
  const valueOf = grubVariables(text, environment);
  const wanted = defaultEntry(text, environment);
  const found: Candidate[] = [];
  for (const volume of volumes) {
    for (const folder of [LOADERS, `boot/${LOADERS}`]) {
      const entry = await loaderEntry(volume.files, folder, /^\d+$/.test(wanted) ? undefined : wanted, (line) => expanded(line, valueOf));
      if (entry) found.push({ volume, from: `${volume.name}:/${folder}`, entry });
    }
  }
  return found;
}

async function grubCandidates(volumes: readonly Volume[]): Promise<readonly Candidate[]> {
  const found: Candidate[] = [];
  for (const volume of volumes) {
    for (const folder of await grubFolders(volume)) {
      const text = await volume.files.text(`${folder}/grub.cfg`);
      if (text === null) continue;
      const environment = await environmentOf([volume, ...volumes], folder);
      if (readsLoaderEntries(text)) {
        found.push(...(await entriesForGrub(volumes, text, environment)));
        continue;
      }
      const entry = grubEntry(text, environment);
      if (entry) found.push({ volume, from: `${volume.name}:/${folder}/grub.cfg`, entry });
    }
  }
  return found;
}

interface ConfiguredVolume {
  /** Of the partition. */
  readonly number: number;
  /** boot/grub */
  readonly folder: string;
  /** The folder of the entries of the Boot Loader Specification that it reads; null: it has its own. */
  readonly entries: string | null;
}
/**
 * Where GRUB's configuration is that a boot loader of a BIOS reads. Throws NotUnderstood if there is none that any GRUB understands.
 * @param rootUuid of the root file system, which comes before the others; null: unknown
 */
export async function grubConfiguration(volumes: readonly Volume[], rootUuid: string | null): Promise<ConfiguredVolume> {
  const isRoot = ({ uuid }: Volume): boolean => uuid !== null && uuid === rootUuid?.toLowerCase();
  const places = [volumes.filter(isRoot), volumes.filter((volume) => !isRoot(volume))].flatMap((group) =>
    GRUB_FOLDERS.flatMap((folder) => group.map((volume) => ({ folder, volume }))),
  );
  for (const { folder, volume } of places) {
    const text = await volume.files.text(`${folder}/grub.cfg`);
    if (text === null) continue;
    const entries = readsLoaderEntries(text) ? await loaderEntriesOf(volume, folder) : null;
    return { number: partitionNumber(volume.name), folder, entries };
  }
  throw new NotUnderstood('the image has no configuration of GRUB');
}

/**
 * The entries that `blscfg` reads, a command of some distributions' own GRUB. Our GRUB reads them instead of grub.cfg (build/bls.cfg), so that
 * a password would not count.
 */
async function loaderEntriesOf({ name, files }: Volume, grub: string): Promise<string> {
  const configuration = `${name}:/${grub}/grub.cfg`;
  if ((await files.text(`${grub}/user.cfg`)) !== null)
    throw new NotUnderstood(`${configuration} has a password (user.cfg), and uses blscfg`);
  const folder = [...grub.split('/').slice(0, -1), LOADERS].join('/');
  const entry = await loaderEntry(files, folder, undefined, (line) => line);
  const kernel = entry && (await files.open(entry.kernel));
  await kernel?.close();
  if (!kernel) throw new NotUnderstood(`${configuration} reads its entries by blscfg, and ${name}:/${folder} has none with a kernel`);
  return folder;
}

async function systemdBootCandidates(volumes: readonly Volume[]): Promise<readonly Candidate[]> {
  const found: Candidate[] = [];
  for (const volume of volumes) {
    const entry = await loaderEntry(volume.files, LOADERS, await loaderDefault(volume.files), (line) => line);
    if (entry) found.push({ volume, from: `${volume.name}:/${LOADERS}`, entry });
  }
  return found;
}

/** The same entry, found in several ways, is one. */
const distinct = (candidates: readonly Candidate[]): readonly Candidate[] =>
  candidates.filter(({ entry }, at) => candidates.findIndex((other) => JSON.stringify(other.entry) === JSON.stringify(entry)) === at);

async function openIn(volumes: readonly Volume[], first: Volume, path: string): Promise<FileHandle> {
  for (const { files } of [first, ...volumes.filter((volume) => volume !== first)]) {
    const file = await files.open(path);
    if (file) return file;
  }
  throw new NotUnderstood(`the image has no file ${path.slice(0, 200)}`);
}
const wholeOf = async (file: FileHandle): Promise<Piece> => ({ file, start: 0, length: (await file.stat()).size });

async function openCandidate(volumes: readonly Volume[], { volume, from, entry }: Candidate): Promise<FoundKernel> {
  const files: FileHandle[] = [];
  try {
    for (const path of [entry.kernel, ...entry.initrds.slice(0, MAX_INITRDS)]) files.push(await openIn(volumes, volume, path));
    const [kernel, ...initrds] = await Promise.all(files.map(wholeOf));
    return { from, path: entry.kernel, kernel: kernel!, initrds, commandLine: entry.commandLine, files };
  } catch (error) {
    for (const file of files) await file.close();
    throw error;
  }
}
const MAX_INITRDS = 16;

async function unifiedIn(volumes: readonly Volume[]): Promise<FoundKernel | undefined> {
  for (const { name, files } of volumes) {
    for (const program of newestFirst((await files.names(UNIFIED)).filter((file) => file.toLowerCase().endsWith('.efi')))) {
      const path = `/${UNIFIED}/${program}`;
      const file = await files.open(path);
      const found = file && (await unifiedKernel(file));
      if (file && found) {
        const { kernel, initrd, commandLine } = found;
        return { from: `${name}:${path}`, path, kernel, initrds: initrd ? [initrd] : [], commandLine, files: [file] };
      }
      await file?.close();
    }
  }
  return undefined;
}

/**
 * GRUB's entry, else systemd-boot's, else the newest unified kernel image. Throws NotUnderstood if there is none, or if several
 * configurations differ: then only the firmware and the boot loader know.
 */
export async function findKernel(volumes: readonly Volume[]): Promise<FoundKernel> {
  for (const candidatesOf of [grubCandidates, systemdBootCandidates]) {
    const found = distinct(await candidatesOf(volumes));
    if (found.length > 1) throw new NotUnderstood(`it has several boot loader configurations: ${found.map(({ from }) => from).join(', ')}`);
    if (found[0]) return openCandidate(volumes, found[0]);
  }
  const unified = await unifiedIn(volumes);
  if (unified) return unified;
  throw new NotUnderstood('it has no GRUB or systemd-boot configuration that names a kernel, and no unified kernel image');
}
