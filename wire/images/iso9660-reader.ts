/** Reads the files of an ISO 9660 image by its Joliet tree, which has their whole names. The image comes from a user: it is not trusted. */

const SECTOR = 2048;
const FIRST_DESCRIPTOR = 16;
/** Bounds the search; a volume has three. */
const MAX_DESCRIPTORS = 64;
const SUPPLEMENTARY = 2;
const SET_END = 255;
/** UCS-2 of level 1, 2 and 3. */
const JOLIET_ESCAPES = ['%/@', '%/C', '%/E'];
const DIRECTORY_FLAG = 2;
/** The file has more parts than this record. */
const MULTI_EXTENT_FLAG = 0x80;
/** Length of a directory record without its name. */
const RECORD_HEAD = 33;
const MAX_ENTRIES = 10_000;
/** Characters. mkisofs writes no longer names (-joliet-long). */
const MAX_NAME = 103;
/** ECMA-119 §6.8.2.1 has 8; Joliet has no limit. */
const DEEPEST = 32;

class Unreadable extends Error {}

interface Extent {
  readonly at: number;
  readonly size: number;
}
interface Entry extends Extent {
  readonly name: string;
  readonly isFolder: boolean;
}

/** Descriptor of the Joliet tree; undefined: there is none. */
function jolietDescriptor(image: Buffer): Buffer | undefined {
  for (let index = 0; index < MAX_DESCRIPTORS; index++) {
    const at = (FIRST_DESCRIPTOR + index) * SECTOR;
    const descriptor = image.subarray(at, at + SECTOR);
    if (descriptor.length < SECTOR || descriptor.toString('latin1', 1, 6) !== 'CD001' || descriptor[0] === SET_END) return undefined;
    const escape = descriptor.toString('latin1', 88, 91);
    if (descriptor[0] === SUPPLEMENTARY && JOLIET_ESCAPES.includes(escape))
      return descriptor.readUInt16LE(128) === SECTOR ? descriptor : undefined;
  }
  return undefined;
}

/** Where a record's data is (ECMA-119 §9.1). */
function extentOf(image: Buffer, record: Buffer): Extent {
  const at = (record.readUInt32LE(2) + record[1]!) * SECTOR;
  const size = record.readUInt32LE(10);
  const isInterleaved = record[26] !== 0 || record[27] !== 0;
  if (at + size > image.length || isInterleaved || (record[25]! & MULTI_EXTENT_FLAG) !== 0) throw new Unreadable();
  return { at, size };
}

/** The entries of a folder, without itself and its parent. */
function entriesOf(image: Buffer, { at: start, size }: Extent): readonly Entry[] {
  const entries: Entry[] = [];
  for (let at = start; at < start + size;) {
    const length = image[at]!;
    if (length === 0) {
      // No record crosses a sector's end.
      at = (Math.floor(at / SECTOR) + 1) * SECTOR;
      continue;
    }
    const record = image.subarray(at, at + length);
    const idLength = record[32] ?? 0;
    if (record.length < RECORD_HEAD + idLength) throw new Unreadable();
    at += length;
    const id = record.subarray(RECORD_HEAD, RECORD_HEAD + idLength);
    if (id.length === 1 && id[0]! <= 1) continue;
    const name = Buffer.from(id.subarray(0, id.length - (id.length % 2)))
      .swap16()
      .toString('utf16le')
      .replace(/;\d{1,5}$/, '');
    if (name === '' || name.length > MAX_NAME || name === '.' || name === '..' || /[/\0]/.test(name)) throw new Unreadable();
    entries.push({ ...extentOf(image, record), name, isFolder: (record[25]! & DIRECTORY_FLAG) !== 0 });
    if (entries.length > MAX_ENTRIES) throw new Unreadable();
  }
  return entries;
}

/**
 * Path with slashes → content, which shares the image's memory. Undefined: the image is malformed, or has no Joliet tree.
 * @param mostBytes of all files and folders together: entries may share their data
 */
export function filesOfIso(image: Buffer, mostBytes: number): Readonly<Record<string, Buffer>> | undefined {
  const descriptor = jolietDescriptor(image);
  if (descriptor === undefined) return undefined;
  const files = new Map<string, Buffer>();
  /** Of files and folders. */
  const paths = new Set<string>();
  let [entries, bytes] = [0, 0];
  const walk = (folder: Extent, path: string, depth: number): void => {
    if (depth > DEEPEST) throw new Unreadable();
    for (const { name, isFolder, at, size } of entriesOf(image, folder)) {
      entries++;
      bytes += size;
      if (entries > MAX_ENTRIES || bytes > mostBytes || paths.has(path + name)) throw new Unreadable();
      paths.add(path + name);
      if (isFolder) walk({ at, size }, `${path}${name}/`, depth + 1);
      else files.set(`${path}${name}`, image.subarray(at, at + size));
    }
  };
  try {
    walk(extentOf(image, descriptor.subarray(156, 190)), '', 0);
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
  return Object.fromEntries(files);
}
