/** cpio archives in the format "newc", as the Linux kernel unpacks them (Documentation/driver-api/early-userspace/buffer-format.rst). */

/** Headers and contents begin at multiples of it. */
export const CPIO_ALIGNMENT = 4;
const FILE = 0o100644;
const FOLDER = 0o040755;

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(-bytes.length & (CPIO_ALIGNMENT - 1))]);
function entry(name: string, mode: number, content: Buffer, inode: number): Buffer {
  const path = Buffer.from(`${name}\0`);
  const links = mode === FOLDER ? 2 : 1;
  // inode, mode, uid, gid, links, mtime, size, device (2), device of a special file (2), length of the name, checksum
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, 0, 0, path.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return Buffer.concat([padded(Buffer.concat([Buffer.from(header), path])), padded(content)]);
}

/** An archive of files that root owns, with their folders. @param files path without a leading slash → content */
export function cpioArchive(files: Readonly<Record<string, Buffer>>): Buffer {
  const folders = new Set(
    Object.keys(files).flatMap((path) => {
      const parts = path.split('/').slice(0, -1);
      return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
    }),
  );
  const entries = [
    ...[...folders].map((path) => [path, FOLDER, Buffer.alloc(0)] as const),
    ...Object.entries(files).map(([path, content]) => [path, FILE, content] as const),
  ];
  return Buffer.concat([
    ...entries.map(([path, mode, content], at) => entry(path, mode, content, at + 1)),
    entry('TRAILER!!!', 0, Buffer.alloc(0), 0),
  ]);
}
