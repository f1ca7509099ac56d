/**
 * Writes a small ISO 9660 image (ECMA-119) with a Joliet tree beside the primary one, both over the same files. Names stay as given in
 * both: readers without Joliet take the relaxed primary names (lower case, up to 31 characters) as they are.
 */

const SECTOR = 2048;
/** The volume descriptors begin after the system area (ECMA-119 §6.2.1). */
const SYSTEM_SECTORS = 16;
const DIRECTORY_FLAG = 2;
/** UCS-2 level 3, what Joliet's escape sequence says. */
const JOLIET_ESCAPE = '%/E';

interface Entry {
  readonly name: string;
  /** Folders have children, files have bytes. */
  readonly children?: Folder;
  readonly bytes?: Buffer;
}
type Folder = Map<string, Entry>;

/** A folder with its place in one tree's path table (from 1; the root's parent is the root). */
interface Placed {
  readonly folder: Folder;
  readonly name: string;
  readonly parent: number;
}

/** How a tree writes names. */
interface Naming {
  readonly text: (value: string) => Buffer;
  readonly escape: string;
  readonly type: 1 | 2;
}
const PRIMARY: Naming = { text: (value) => Buffer.from(value, 'latin1'), escape: '', type: 1 };
const JOLIET: Naming = { text: (value) => Buffer.from(value, 'utf16le').swap16(), escape: JOLIET_ESCAPE, type: 2 };

/** `files`: path with slashes → content. `now`: milliseconds, the date of everything inside. */
export function isoImage(volume: string, files: Readonly<Record<string, Buffer>>, now: number): Buffer {
  const root = treeOf(files);
  const folders = placed(root);
  const date = new Date(now);

  // What comes after the descriptors: two path tables and the folders, for each tree; then the files.
  let next = SYSTEM_SECTORS + 3;
  const take = (bytes: number): number => {
    const at = next;
    next += Math.max(1, Math.ceil(bytes / SECTOR));
    return at;
  };
  const trees = [PRIMARY, JOLIET].map((naming) => {
    const tableSize = pathTable(folders, naming, () => 0, false).length;
    const tables = [take(tableSize), take(tableSize)] as const;
    const sizes = folders.map((one) => records(one, naming, date, () => [0, 0]).length);
    return { naming, tableSize, tables, sizes, sectors: sizes.map(take) };
  });
  const contents = new Map<Buffer, number>();
  for (const { folder } of folders) for (const { bytes } of folder.values()) if (bytes) contents.set(bytes, take(bytes.length));

  const image = Buffer.alloc(next * SECTOR);
  const put = (bytes: Buffer, sector: number) => bytes.copy(image, sector * SECTOR);
  trees.forEach(({ naming, tableSize, tables, sizes, sectors }, index) => {
    const extent = (entry: Folder | Buffer): readonly [number, number] => {
      if (Buffer.isBuffer(entry)) return [contents.get(entry)!, entry.length];
      const at = folders.findIndex(({ folder }) => folder === entry);
      return [sectors[at]!, sizes[at]!];
    };
    const sectorOf = (at: number) => sectors[at]!;
    const top = record(Buffer.from([0]), extent(root), date, DIRECTORY_FLAG);
    put(descriptor({ naming, volume, sectors: next, tableSize, tables, top, date }), SYSTEM_SECTORS + index);
    put(pathTable(folders, naming, sectorOf, false), tables[0]);
    put(pathTable(folders, naming, sectorOf, true), tables[1]);
    folders.forEach((one, at) => put(records(one, naming, date, extent, folders[one.parent - 1]!.folder), sectors[at]!));
  });
  // Volume descriptor set terminator (ECMA-119 §8.3).
  put(Buffer.from('\xffCD001\x01', 'latin1'), SYSTEM_SECTORS + 2);
  for (const [bytes, sector] of contents) put(bytes, sector);
  return image;
}

function treeOf(files: Readonly<Record<string, Buffer>>): Folder {
  const root: Folder = new Map();
  for (const [path, bytes] of Object.entries(files)) {
    const names = path.split('/');
    const last = names.pop()!;
    let folder = root;
    for (const name of names) {
      const entry = folder.get(name) ?? { name, children: new Map<string, Entry>() };
      folder.set(name, entry);
      folder = entry.children!;
    }
    // A copy, so that two files with the same content are two extents all the same.
    folder.set(last, { name: last, bytes: Buffer.from(bytes) });
  }
  return root;
}

const sorted = (folder: Folder): readonly Entry[] => [...folder.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Folders in the order of the path table: by level, then by parent, then by name (ECMA-119 §9.4). */
function placed(root: Folder): readonly Placed[] {
  const list: Placed[] = [{ folder: root, name: '', parent: 1 }];
  for (let at = 0; at < list.length; at++) {
    for (const { name, children } of sorted(list[at]!.folder)) if (children) list.push({ folder: children, name, parent: at + 1 });
  }
  return list;
}

/** ECMA-119 §9.4; `big`: the type M table. */
function pathTable(folders: readonly Placed[], naming: Naming, sectorOf: (at: number) => number, big: boolean): Buffer {
  return Buffer.concat(
    folders.map(({ name, parent }, at) => {
      const id = at === 0 ? Buffer.from([0]) : naming.text(name);
      const row = Buffer.alloc(8 + id.length + (id.length % 2));
      row.writeUInt8(id.length, 0);
      if (big) {
        row.writeUInt32BE(sectorOf(at), 2);
        row.writeUInt16BE(parent, 6);
      } else {
        row.writeUInt32LE(sectorOf(at), 2);
        row.writeUInt16LE(parent, 6);
      }
      id.copy(row, 8);
      return row;
    }),
  );
}

/** A folder's extent: itself, its parent, its entries; no record crosses the end of a sector (ECMA-119 §6.8.1.1). */
function records(
  { folder }: Placed,
  naming: Naming,
  date: Date,
  extent: (entry: Folder | Buffer) => readonly [number, number],
  parent: Folder = folder,
): Buffer {
  const rows = [
    record(Buffer.from([0]), extent(folder), date, DIRECTORY_FLAG),
    record(Buffer.from([1]), extent(parent), date, DIRECTORY_FLAG),
    ...sorted(folder).map(({ name, children, bytes }) =>
      children
        ? record(naming.text(name), extent(children), date, DIRECTORY_FLAG)
        : record(naming.text(`${name};1`), extent(bytes!), date, 0),
    ),
  ];
  const parts: Buffer[] = [];
  let used = 0;
  for (const row of rows) {
    const left = SECTOR - (used % SECTOR);
    const filler = row.length > left ? left : 0;
    parts.push(Buffer.alloc(filler), row);
    used += filler + row.length;
  }
  return Buffer.concat([...parts, Buffer.alloc((SECTOR - (used % SECTOR)) % SECTOR)]);
}

/** Directory record (ECMA-119 §9.1). */
function record(id: Buffer, [sector, size]: readonly [number, number], date: Date, flags: number): Buffer {
  const length = 33 + id.length;
  const row = Buffer.alloc(length + (length % 2));
  row.writeUInt8(row.length, 0);
  both32(row, sector, 2);
  both32(row, size, 10);
  row.set(
    [
      date.getUTCFullYear() - 1900,
      date.getUTCMonth() + 1,
      date.getUTCDate(),
      date.getUTCHours(),
      date.getUTCMinutes(),
      date.getUTCSeconds(),
      0,
    ],
    18,
  );
  row.writeUInt8(flags, 25);
  both16(row, 1, 28);
  row.writeUInt8(id.length, 32);
  id.copy(row, 33);
  return row;
}

/** Primary or supplementary volume descriptor (ECMA-119 §8.4, §8.5). */
function descriptor(parts: {
  readonly naming: Naming;
  readonly volume: string;
  readonly sectors: number;
  readonly tableSize: number;
  readonly tables: readonly [number, number];
  readonly top: Buffer;
  readonly date: Date;
}): Buffer {
  const { naming, top } = parts;
  const block = Buffer.alloc(SECTOR);
  const text = (value: string, at: number, length: number) => {
    const filled = naming.text(value.padEnd(naming.type === 1 ? length : Math.floor(length / 2)));
    filled.copy(block, at);
  };
  block.writeUInt8(naming.type, 0);
  block.write('CD001\x01', 1, 'latin1');
  text('', 8, 32);
  text(parts.volume, 40, 32);
  both32(block, parts.sectors, 80);
  block.write(naming.escape, 88, 'latin1');
  both16(block, 1, 120);
  both16(block, 1, 124);
  both16(block, SECTOR, 128);
  both32(block, parts.tableSize, 132);
  block.writeUInt32LE(parts.tables[0], 140);
  block.writeUInt32BE(parts.tables[1], 148);
  top.copy(block, 156);
  // Volume set, publisher, preparer, application; copyright, abstract and bibliographic files.
  for (const at of [190, 318, 446, 574]) text('', at, 128);
  for (const at of [702, 739, 776]) text('', at, 37);
  const stamp = `${parts.date.toISOString().replace(/\D/g, '').slice(0, 14)}00`;
  for (const at of [813, 830]) block.write(`${stamp}\0`, at, 'latin1');
  for (const at of [847, 864]) block.write(`${'0'.repeat(16)}\0`, at, 'latin1');
  block.writeUInt8(1, 881);
  return block;
}

function both32(block: Buffer, value: number, at: number): void {
  block.writeUInt32LE(value, at);
  block.writeUInt32BE(value, at + 4);
}
function both16(block: Buffer, value: number, at: number): void {
  block.writeUInt16LE(value, at);
  block.writeUInt16BE(value, at + 2);
}
