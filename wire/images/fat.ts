/**
 * Writes FAT12 and FAT16 file systems: EFI system partitions, and small media with parameters for a ramdisk (Microsoft's "FAT32 File System
 * Specification" 1.03, here FAT §). Every file is contiguous.
 */

/** Bytes. */
const USUAL_SECTOR = 512;
const MAX_CLUSTER = 65536;
const FIRST_DATE = Date.UTC(1980, 0, 1);
const RESERVED = 1;
const COPIES = 2;
const ENTRY = 32;
const DIRECTORY = 0x10;
const VOLUME = 0x08;
const LONG_NAME = 0x0f;
/** FAT §4.1: fewer clusters are FAT12; from the second number on it would be FAT32. */
const FAT16_FROM = 4085;
const FAT16_BELOW = 65525;

/** A file's bytes, or its size: then the caller writes the bytes to the file's place in the layout. */
type FatContent = Buffer | number;
interface FatSpecification {
  /** At most 11 characters, written unchanged. */
  readonly label: string;
  /** Path with slashes → content. Names that do not fit into 8.3 get a long one. */
  readonly files: Readonly<Record<string, FatContent>>;
  /** Bytes of a sector: that of the disk, 512 (default) or 4096. */
  readonly sectorSize?: number;
  /** Least size in bytes. */
  readonly atLeast?: number;
  /** Milliseconds; the date of all files. */
  readonly now: number;
}
interface FatLayout {
  readonly size: number;
  readonly head: Buffer;
  readonly files: readonly { readonly path: string; readonly at: number; readonly content: FatContent }[];
}

interface Folder {
  readonly path: string;
  readonly folders: Map<string, Folder>;
  readonly files: Map<string, { readonly path: string; readonly size: number }>;
}
const sizeOf = (content: FatContent): number => (typeof content === 'number' ? content : content.length);

/** The whole file system, of files with known bytes. */
export function fatImage(specification: FatSpecification & { readonly files: Readonly<Record<string, Buffer>> }): Buffer {
  const layout = fatLayout(specification);
  const image = Buffer.alloc(layout.size);
  layout.head.copy(image);
  for (const { at, content } of layout.files) (content as Buffer).copy(image, at);
  return image;
}

export function fatLayout({ label, files, sectorSize: sector = USUAL_SECTOR, atLeast = 0, now }: FatSpecification): FatLayout {
  const root = treeOf(files);
  const folders = [...foldersBelow(root)];
  const folderBytes = (folder: Folder): number => ENTRY * (2 + entriesOf(folder));
  const rootEntries = (Math.ceil((Math.max(224, 1 + entriesOf(root)) * ENTRY) / sector) * sector) / ENTRY;
  const needs = [...folders.map(folderBytes), ...Object.values(files).map(sizeOf)];
  const { perCluster, clusters, wide } = geometry(needs, atLeast - rootEntries * ENTRY, sector);
  const clusterBytes = perCluster * sector;
  const fatSectors = fatSectorsOf(clusters, sector);
  const rootAt = (RESERVED + COPIES * fatSectors) * sector;
  const dataAt = rootAt + rootEntries * ENTRY;
  const totalSectors = dataAt / sector + clusters * perCluster;

  const fat = Buffer.alloc(fatSectors * sector);
  const link = (cluster: number, next: number): void => (wide ? void fat.writeUInt16LE(next, cluster * 2) : write12(fat, cluster, next));
  const LAST = wide ? 0xffff : 0xfff;
  link(0, wide ? 0xfff8 : 0xff8);
  link(1, LAST);
  let free = 2;
  /** Allocates clusters for that many bytes and returns the first; 0: none is needed. */
  const take = (bytes: number): number => {
    const count = Math.ceil(bytes / clusterBytes);
    if (count === 0) return 0;
    const first = free;
    free += count;
    for (let cluster = first; cluster < free; cluster++) link(cluster, cluster + 1 < free ? cluster + 1 : LAST);
    return first;
  };
  const starts = new Map<Folder, number>([[root, 0]]);
  for (const folder of folders) starts.set(folder, take(folderBytes(folder)));
  const headEnd = dataAt + (free - 2) * clusterBytes;
  const places = new Map(Object.entries(files).map(([path, content]) => [path, take(sizeOf(content))]));
  const offset = (cluster: number): number => dataAt + (cluster - 2) * clusterBytes;

  const head = Buffer.alloc(headEnd);
  bootSector({ sector, label, perCluster, rootEntries, totalSectors, fatSectors, wide, now }).copy(head);
  for (let copy = 0; copy < COPIES; copy++) fat.copy(head, (RESERVED + copy * fatSectors) * sector);
  const rows = (folder: Folder): Buffer[] => [
    ...[...folder.folders].flatMap(([name, inner], index) => entries(name, index, DIRECTORY, starts.get(inner)!, 0, now)),
    ...[...folder.files].flatMap(([name, { path, size }], index) =>
      entries(name, folder.folders.size + index, 0, places.get(path)!, size, now),
    ),
  ];
  Buffer.concat([entry(label.padEnd(11), VOLUME, 0, 0, now), ...rows(root)]).copy(head, rootAt);
  const fill = (folder: Folder, parent: Folder): void => {
    for (const inner of folder.folders.values()) fill(inner, folder);
    if (folder === root) return;
    const dots = [
      entry('.'.padEnd(11), DIRECTORY, starts.get(folder)!, 0, now),
      entry('..'.padEnd(11), DIRECTORY, starts.get(parent)!, 0, now),
    ];
    Buffer.concat([...dots, ...rows(folder)]).copy(head, offset(starts.get(folder)!));
  };
  fill(root, root);
  const placed = Object.entries(files).map(([path, content]) => ({ path, at: offset(places.get(path)!), content }));
  return { size: Math.max(totalSectors * sector, atLeast), head, files: placed.filter(({ content }) => sizeOf(content) > 0) };
}

function treeOf(files: Readonly<Record<string, FatContent>>): Folder {
  const root: Folder = { path: '', folders: new Map(), files: new Map() };
  for (const [path, content] of Object.entries(files)) {
    const names = path.split('/');
    const last = names.pop()!;
    let folder = root;
    for (const name of names) {
      const inner: Folder = folder.folders.get(name) ?? { path: `${folder.path}/${name}`, folders: new Map(), files: new Map() };
      folder.folders.set(name, inner);
      folder = inner;
    }
    folder.files.set(last, { path, size: sizeOf(content) });
  }
  return root;
}
function* foldersBelow(folder: Folder): Generator<Folder> {
  for (const inner of folder.folders.values()) {
    yield inner;
    yield* foldersBelow(inner);
  }
}

const isWide = (clusters: number): boolean => clusters >= FAT16_FROM;
const fatSectorsOf = (clusters: number, sector: number): number => Math.ceil(((clusters + 2) * (isWide(clusters) ? 4 : 3)) / 2 / sector);

/**
 * The smallest cluster size with which the number of clusters is allowed.
 * @param needs bytes of each file and folder
 * @param atLeast bytes of all but the root folder
 */
function geometry(
  needs: readonly number[],
  atLeast: number,
  sector: number,
): { readonly perCluster: number; readonly clusters: number; readonly wide: boolean } {
  for (let perCluster = 1; perCluster * sector <= MAX_CLUSTER; perCluster *= 2) {
    const used = needs.reduce((sum, need) => sum + Math.ceil(need / (perCluster * sector)), 0) + 1;
    const sectors = Math.floor(atLeast / sector) - RESERVED;
    let clusters = Math.floor(sectors / perCluster);
    while (clusters > used && COPIES * fatSectorsOf(clusters, sector) + clusters * perCluster > sectors) clusters--;
    clusters = Math.max(clusters, used);
    if (clusters < FAT16_BELOW) return { perCluster, clusters, wide: isWide(clusters) };
  }
  throw new Error('The files are too large for a FAT16 file system');
}

function write12(fat: Buffer, cluster: number, value: number): void {
  const at = cluster + (cluster >> 1);
  const now = fat.readUInt16LE(at);
  fat.writeUInt16LE(cluster % 2 === 0 ? (now & 0xf000) | value : (now & 0x000f) | (value << 4), at);
}

/** FAT §3.1, §3.2. */
function bootSector(parts: {
  readonly sector: number;
  readonly label: string;
  readonly perCluster: number;
  readonly rootEntries: number;
  readonly totalSectors: number;
  readonly fatSectors: number;
  readonly wide: boolean;
  readonly now: number;
}): Buffer {
  const block = Buffer.alloc(parts.sector);
  block.set([0xeb, 0x3c, 0x90], 0);
  block.write('MSWIN4.1', 3, 'latin1');
  block.writeUInt16LE(parts.sector, 11);
  block.writeUInt8(parts.perCluster, 13);
  block.writeUInt16LE(RESERVED, 14);
  block.writeUInt8(COPIES, 16);
  block.writeUInt16LE(parts.rootEntries, 17);
  if (parts.totalSectors < 0x10000) block.writeUInt16LE(parts.totalSectors, 19);
  else block.writeUInt32LE(parts.totalSectors, 32);
  block.writeUInt8(0xf8, 21);
  block.writeUInt16LE(parts.fatSectors, 22);
  block.writeUInt16LE(18, 24);
  block.writeUInt16LE(2, 26);
  block.writeUInt8(0x80, 36);
  block.writeUInt8(0x29, 38);
  block.writeUInt32LE(parts.now >>> 0, 39);
  block.write(parts.label.padEnd(11), 43, 11, 'latin1');
  block.write(parts.wide ? 'FAT16   ' : 'FAT12   ', 54, 'latin1');
  block.set([0x55, 0xaa], 510);
  return block;
}

const SHORT = /^[A-Z0-9_-]{1,8}(?:\.[A-Z0-9_-]{1,3})?$/;
/** Characters of a long entry. */
const PIECE = 13;
const rowsOf = (name: string): number => 1 + (SHORT.test(name) ? 0 : Math.ceil(name.length / PIECE));
const entriesOf = (folder: Folder): number =>
  [...folder.folders.keys(), ...folder.files.keys()].reduce((sum, name) => sum + rowsOf(name), 0);

/** A file's entry, after the entries of its long name. `index` makes the short name unique among a folder's files, or its folders. */
function entries(name: string, index: number, attributes: number, cluster: number, size: number, now: number): Buffer[] {
  const short = SHORT.test(name)
    ? name
    : `${name
        .toUpperCase()
        .replace(/[^A-Z0-9]/g, '')
        .slice(0, 4)}~${index + 1}`;
  const [base, extension = ''] = short.split('.') as [string, string?];
  const padded = `${base.padEnd(8)}${extension.padEnd(3)}`;
  const own = entry(padded, attributes, cluster, size, now);
  return short === name ? [own] : [...longName(name, padded), own];
}

/** FAT §6.1, §7. */
function entry(name: string, attributes: number, cluster: number, size: number, now: number): Buffer {
  const row = Buffer.alloc(ENTRY);
  row.write(name, 0, 11, 'latin1');
  row.writeUInt8(attributes, 11);
  // FAT §6.1: no date before 1980, which a machine without a battery may have.
  const date = new Date(Math.max(now, FIRST_DATE));
  const day = ((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  for (const at of [16, 18, 24]) row.writeUInt16LE(day, at);
  for (const at of [14, 22]) row.writeUInt16LE(time, at);
  row.writeUInt16LE(cluster, 26);
  row.writeUInt32LE(size, 28);
  return row;
}

/** FAT §7.1: the last piece comes first. Each has the checksum of the short name (§7.2). */
function longName(name: string, short: string): Buffer[] {
  let sum = 0;
  for (const byte of Buffer.from(short, 'latin1')) sum = (((sum & 1) << 7) + (sum >> 1) + byte) & 0xff;
  const count = Math.ceil(name.length / PIECE);
  return Array.from({ length: count }, (_, back) => {
    const at = count - back;
    const text = name.slice((at - 1) * PIECE, at * PIECE);
    const units = Buffer.alloc(PIECE * 2, 0xff);
    units.write(text.length < PIECE ? `${text}\0` : text, 'utf16le');
    const row = Buffer.alloc(ENTRY);
    row.writeUInt8(at | (back === 0 ? 0x40 : 0), 0);
    units.copy(row, 1, 0, 10);
    row.writeUInt8(LONG_NAME, 11);
    row.writeUInt8(sum, 13);
    units.copy(row, 14, 10, 22);
    units.copy(row, 28, 22, 26);
    return row;
  });
}
