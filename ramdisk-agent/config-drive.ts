/** Reads a file of a config drive (ISO 9660), mounted or not. Never writes the device. */
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SECTOR = 2048;
/** Limits for folders and files, since the drive's content is not trusted. */
const MAX = 4 << 20;

interface Extent {
  readonly at: number;
  readonly size: number;
  readonly isFolder: boolean;
}
/** A directory record (ECMA-119 §9.1): position, length, and whether it is a folder. */
const extentOf = (record: Buffer): Extent => ({
  at: record.readUInt32LE(2) * SECTOR,
  size: record.readUInt32LE(10),
  isFolder: (record[25]! & 2) !== 0,
});
/** The entry with this name in a folder. The name on the drive may have a version suffix (;1). The comparison is case-sensitive. */
function entryOf(folder: Buffer, name: string): Extent | undefined {
  for (let at = 0; at + 33 < folder.length;) {
    const length = folder[at]!;
    // Records do not cross a sector's end; the rest of the sector is zeros.
    if (length === 0) at = (Math.floor(at / SECTOR) + 1) * SECTOR;
    else if (length < 34 || at + length > folder.length) return undefined;
    else {
      const record = folder.subarray(at, at + length);
      const own = record.toString('latin1', 33, 33 + record[32]!).replace(/;\d+$/, '');
      if (own === name) return extentOf(record);
      at += length;
    }
  }
  return undefined;
}

function readImage(path: string, names: readonly string[]): string | null {
  const file = openSync(path, 'r');
  try {
    const read = (at: number, size: number): Buffer => {
      if (size > MAX) throw new Error(`${path} has a folder or file of ${size} bytes`);
      const bytes = Buffer.alloc(size);
      return bytes.subarray(0, readSync(file, bytes, 0, size, at));
    };
    const descriptor = read(16 * SECTOR, SECTOR);
    if (descriptor.toString('latin1', 1, 6) !== 'CD001' || descriptor[0] !== 1) return null;
    let found: Extent | undefined = extentOf(descriptor.subarray(156, 190));
    for (const name of names) found = found?.isFolder ? entryOf(read(found.at, found.size), name) : undefined;
    return found && !found.isFolder ? read(found.at, found.size).toString('utf8') : null;
  } finally {
    closeSync(file);
  }
}

/**
 * @param path of the device, an image, or the folder where it is mounted
 * @returns null: there is no such file
 */
export function readConfigDrive(path: string, file: string): string | null {
  if (!statSync(path).isDirectory()) return readImage(path, file.split('/'));
  try {
    return readFileSync(join(path, file), 'utf8');
  } catch {
    return null;
  }
}
