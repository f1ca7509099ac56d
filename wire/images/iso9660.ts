/**
 * Writes ISO 9660 images (ECMA-119) with a primary and a Joliet tree over the same files, and with boot entries (El Torito 1.0, without
 * emulation). Names are unchanged in the Joliet tree. In the primary tree, ASCII names are unchanged too: readers without Joliet accept
 * lower case and up to 31 characters. In other names, `_` replaces each character that is not ASCII.
 */

const SECTOR = 2048;
/** The volume descriptors follow the system area (ECMA-119 §6.2.1). */
const SYSTEM_SECTORS = 16;
const DIRECTORY_FLAG = 2;
/** Joliet's escape sequence for UCS-2 level 3. */
const JOLIET_ESCAPE = '%/E';

/** A file's bytes, or its size: then the caller writes the bytes to the file's place in the layout. */
export type IsoContent = Buffer | number;
export interface IsoBoot {
  readonly firmware: 'bios' | 'uefi';
  /** One of `files`. BIOS: a program with known bytes, which loads the rest of itself. UEFI: an image of an EFI system partition. */
  readonly path: string;
}
interface IsoSpecification {
  readonly volume: string;
  readonly publisher?: string;
  /** Path with slashes → content. */
  readonly files: Readonly<Record<string, IsoContent>>;
  readonly boots?: readonly IsoBoot[];
  /** Milliseconds; the date of all files. */
  readonly now: number;
}
interface IsoLayout {
  /** Bytes of the whole image. */
  readonly size: number;
  /** Everything before the first file. */
  readonly head: Buffer;
  /** Sorted by position (bytes). The gaps between them are zeros. */
  readonly files: readonly { readonly path: string; readonly at: number; readonly content: IsoContent }[];
}

interface Leaf {
  readonly path: string;
  readonly size: number;
}
interface Entry {
  readonly name: string;
  /** Has only ASCII characters, and is unique in the folder. */
  readonly primaryName: string;
  /** Folders have children, files are leaves. */
  readonly children?: Folder;
  readonly leaf?: Leaf;
}
type Folder = Map<string, Entry>;

/** A folder with its number in one tree's path table (from 1; the root is its own parent). */
interface NumberedFolder {
  readonly folder: Folder;
  readonly name: string;
  readonly parent: number;
}

/** A tree's notation of names. */
interface Naming {
  readonly nameOf: (entry: Entry) => string;
  readonly text: (value: string) => Buffer;
  readonly escape: string;
  readonly type: 1 | 2;
}
const PRIMARY: Naming = { nameOf: ({ primaryName }) => primaryName, text: (value) => Buffer.from(value, 'latin1'), escape: '', type: 1 };
const JOLIET: Naming = {
  nameOf: ({ name }) => name,
  text: (value) => Buffer.from(value, 'utf16le').swap16(),
  escape: JOLIET_ESCAPE,
  type: 2,
};

/** `files`: path with slashes → content. `now`: milliseconds, the date of all files. */
export function isoImage(volume: string, files: Readonly<Record<string, Buffer>>, now: number): Buffer {
  const layout = isoLayout({ volume, files, now });
  const image = Buffer.alloc(layout.size);
  layout.head.copy(image);
  for (const { at, content } of layout.files) if (Buffer.isBuffer(content)) content.copy(image, at);
  return image;
}

export function isoLayout({ volume, publisher = '', files, boots = [], now }: IsoSpecification): IsoLayout {
  const root = treeOf(files);
  const date = new Date(now);
  // El Torito §2.0 requires its descriptor in sector 17.
  const descriptors = boots.length > 0 ? (['primary', 'boot', 'joliet', 'end'] as const) : (['primary', 'joliet', 'end'] as const);

  // After the descriptors: two path tables and the folders of each tree, the boot catalog, then the files.
  let next = SYSTEM_SECTORS + descriptors.length;
  const take = (bytes: number): number => {
    const at = next;
    next += Math.max(1, Math.ceil(bytes / SECTOR));
    return at;
  };
  const trees = [PRIMARY, JOLIET].map((naming) => {
    const folders = placed(root, naming);
    const tableSize = pathTable(folders, naming, () => 0, false).length;
    const tables = [take(tableSize), take(tableSize)] as const;
    const sizes = folders.map((folder) => records(folder, naming, date, () => [0, 0]).length);
    return { naming, folders, tableSize, tables, sizes, sectors: sizes.map(take) };
  });
  const catalog = boots.length > 0 ? take(SECTOR) : 0;
  const headSectors = next;
  const places = new Map(Object.entries(files).map(([path, content]) => [path, take(sizeOf(content))]));

  const head = Buffer.alloc(headSectors * SECTOR);
  const put = (bytes: Buffer, sector: number) => bytes.copy(head, sector * SECTOR);
  const sectorOfDescriptor = (name: string): number => SYSTEM_SECTORS + (descriptors as readonly string[]).indexOf(name);
  trees.forEach(({ naming, folders, tableSize, tables, sizes, sectors }) => {
    const indexes = new Map(folders.map(({ folder }, at) => [folder, at]));
    const extent = (entry: Folder | Leaf): readonly [number, number] => {
      if (!(entry instanceof Map)) return [places.get(entry.path)!, entry.size];
      const at = indexes.get(entry)!;
      return [sectors[at]!, sizes[at]!];
    };
    const sectorOf = (at: number) => sectors[at]!;
    const top = record(Buffer.from([0]), extent(root), date, DIRECTORY_FLAG);
    const place = sectorOfDescriptor(naming.type === 1 ? 'primary' : 'joliet');
    put(descriptor({ naming, volume, publisher, sectors: next, tableSize, tables, top, date }), place);
    put(pathTable(folders, naming, sectorOf, false), tables[0]);
    put(pathTable(folders, naming, sectorOf, true), tables[1]);
    folders.forEach((folder, at) => put(records(folder, naming, date, extent, folders[folder.parent - 1]!.folder), sectors[at]!));
  });
  if (boots.length > 0) {
    put(bootRecord(catalog), sectorOfDescriptor('boot'));
    put(bootCatalog(boots.map(({ firmware, path }) => ({ firmware, sector: places.get(path)!, size: sizeOf(files[path]!) }))), catalog);
  }
  // Volume descriptor set terminator (ECMA-119 §8.3).
  put(Buffer.from('\xffCD001\x01', 'latin1'), sectorOfDescriptor('end'));
  const loader = boots.find(({ firmware }) => firmware === 'bios')?.path;
  return {
    size: next * SECTOR,
    head,
    files: [...places].map(([path, sector]) => {
      const content = files[path]!;
      const withTable = path === loader && Buffer.isBuffer(content) ? withBootInformation(content, sector) : content;
      return { path, at: sector * SECTOR, content: withTable };
    }),
  };
}

const sizeOf = (content: IsoContent): number => (typeof content === 'number' ? content : content.length);

/** El Torito §2.0. */
function bootRecord(catalog: number): Buffer {
  const block = Buffer.alloc(SECTOR);
  block.write('\0CD001\x01EL TORITO SPECIFICATION', 0, 'latin1');
  block.writeUInt32LE(catalog, 0x47);
  return block;
}

/** El Torito §2.1; platform 0xef: UEFI 2.10 §13.3.2.1. */
const PLATFORMS = { bios: 0, uefi: 0xef } as const;
/** A BIOS loads the first 2048 bytes, which load the rest. */
const BIOS_LOAD_SECTORS = 4;
/** §2.1 to §2.4: the first entry is the default, and each further one has its own section. */
function bootCatalog(boots: readonly { readonly firmware: IsoBoot['firmware']; readonly sector: number; readonly size: number }[]): Buffer {
  const rows = boots.flatMap(({ firmware, sector, size }, index) => {
    const header = Buffer.alloc(32);
    if (index === 0) {
      header.set([1, PLATFORMS[firmware]], 0);
      header.set([0x55, 0xaa], 30);
      let sum = 0;
      for (let at = 0; at < 32; at += 2) sum += header.readUInt16LE(at);
      header.writeUInt16LE((0x10000 - (sum & 0xffff)) & 0xffff, 28);
    } else {
      header.set([index === boots.length - 1 ? 0x91 : 0x90, PLATFORMS[firmware], 1, 0], 0);
    }
    const entry = Buffer.alloc(32);
    entry.writeUInt8(0x88, 0);
    // Sectors of 512 bytes. 0 if the field is too small: UEFI then reads up to the end of the medium.
    const sectors = Math.ceil(size / 512);
    entry.writeUInt16LE(firmware === 'bios' ? BIOS_LOAD_SECTORS : sectors > 0xffff ? 0 : sectors, 6);
    entry.writeUInt32LE(sector, 8);
    return [header, entry];
  });
  return Buffer.concat(rows);
}

/** Adds the table that ISOLINUX and GRUB read in themselves: the volume's start, their own position, and their checksum. */
function withBootInformation(program: Buffer, sector: number): Buffer {
  const patched = Buffer.from(program);
  patched.fill(0, 8, 64);
  patched.writeUInt32LE(SYSTEM_SECTORS, 8);
  patched.writeUInt32LE(sector, 12);
  patched.writeUInt32LE(program.length, 16);
  let sum = 0;
  for (let at = 64; at + 4 <= patched.length; at += 4) sum = (sum + patched.readUInt32LE(at)) >>> 0;
  patched.writeUInt32LE(sum, 20);
  return patched;
}

/** @throws Error when a file and a folder have one name */
function treeOf(files: Readonly<Record<string, IsoContent>>): Folder {
  const root: Folder = new Map();
  const primaryNames = new Map<Folder, (name: string) => string>();
  const add = (folder: Folder, name: string, content: Pick<Entry, 'children' | 'leaf'>): void => {
    const primaryName = primaryNames.get(folder) ?? primaryNaming();
    primaryNames.set(folder, primaryName);
    folder.set(name, { name, primaryName: primaryName(name), ...content });
  };
  for (const [path, content] of Object.entries(files)) {
    const names = path.split('/');
    const last = names.pop()!;
    let folder = root;
    for (const name of names) {
      if (!folder.has(name)) add(folder, name, { children: new Map<string, Entry>() });
      const { children } = folder.get(name)!;
      if (!children) throw new Error(`${path}: ${name} is a file already`);
      folder = children;
    }
    if (folder.has(last)) throw new Error(`${path} is a folder already`);
    add(folder, last, { leaf: { path, size: sizeOf(content) } });
  }
  return root;
}

/** Names that look like a replacement are replaced too, so that no two names are the same. */
const isKept = (name: string, ascii: string): boolean => ascii === name && !(name.includes('_') && /~\d{1,9}$/.test(name));
/** Makes the names of one folder's entries: `größe` is `gr__e~1`, and the next name of that shape `gr__e~2`. */
function primaryNaming(): (name: string) => string {
  const numbers = new Map<string, number>();
  return (name) => {
    const ascii = name.replace(/[^\x20-\x7e]/g, '_');
    if (isKept(name, ascii)) return name;
    const number = (numbers.get(ascii) ?? 0) + 1;
    numbers.set(ascii, number);
    return `${ascii}~${number}`;
  };
}

const sorted = (folder: Folder, { nameOf }: Naming): readonly Entry[] =>
  [...folder.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

/** Folders in the order of the path table: by level, parent and name (ECMA-119 §9.4). */
function placed(root: Folder, naming: Naming): readonly NumberedFolder[] {
  const list: NumberedFolder[] = [{ folder: root, name: '', parent: 1 }];
  for (let at = 0; at < list.length; at++) {
    for (const entry of sorted(list[at]!.folder, naming))
      if (entry.children) list.push({ folder: entry.children, name: naming.nameOf(entry), parent: at + 1 });
  }
  return list;
}

/** ECMA-119 §9.4; `big`: the type M table. */
function pathTable(folders: readonly NumberedFolder[], naming: Naming, sectorOf: (at: number) => number, big: boolean): Buffer {
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

/** A folder's extent: itself, its parent, its entries. No record crosses a sector's end (ECMA-119 §6.8.1.1). */
function records(
  { folder }: NumberedFolder,
  naming: Naming,
  date: Date,
  extent: (entry: Folder | Leaf) => readonly [number, number],
  parent: Folder = folder,
): Buffer {
  const rows = [
    record(Buffer.from([0]), extent(folder), date, DIRECTORY_FLAG),
    record(Buffer.from([1]), extent(parent), date, DIRECTORY_FLAG),
    ...sorted(folder, naming).map((entry) =>
      entry.children
        ? record(naming.text(naming.nameOf(entry)), extent(entry.children), date, DIRECTORY_FLAG)
        : record(naming.text(`${naming.nameOf(entry)};1`), extent(entry.leaf!), date, 0),
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
  readonly publisher: string;
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
  for (const [at, value] of [
    [190, ''],
    [318, parts.publisher],
    [446, ''],
    [574, ''],
  ] as const)
    text(value, at, 128);
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
