/** Opens files by the names that machines request: configured single files, else files below the root. */
import { constants } from 'node:fs';
import { open, realpath, type FileHandle } from 'node:fs/promises';
import { join, sep } from 'node:path';

export interface ServedFiles {
  /** Name → path of single files outside the root ([pxe]loader_file_paths). */
  readonly named: Readonly<Record<string, string>>;
  readonly root: string;
}
export interface OpenFile {
  readonly handle: FileHandle;
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch, whole. */
  readonly modified: number;
}

/** Opens a file by name; the caller closes it. Undefined if it does not exist or must not be served. */
export async function openServedFile(served: ServedFiles, name: string): Promise<OpenFile | undefined> {
  const path = name.replace(/^\/+/, '');
  if (Object.hasOwn(served.named, path)) return openFile(served.named[path]!);
  if (path === '' || path.includes('\0') || path.split('/').includes('..')) return undefined;
  try {
    const root = await realpath(served.root);
    // The real path decides: symbolic links must not lead outside the root.
    const real = await realpath(join(root, path));
    return real.startsWith(root.endsWith(sep) ? root : root + sep) ? await openFile(real, constants.O_NOFOLLOW) : undefined;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Opens a regular file; undefined for anything else. Does not block on a named pipe. */
export async function openFile(path: string, flags = 0): Promise<OpenFile | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
    const { size, mtimeMs, isFile } = await status(handle);
    if (isFile) return { handle, path, size, modified: Math.trunc(mtimeMs) };
    await handle.close();
    return undefined;
  } catch (error) {
    await handle?.close().catch(() => {});
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function status(handle: FileHandle): Promise<{ size: number; mtimeMs: number; isFile: boolean }> {
  const stats = await handle.stat();
  return { size: stats.size, mtimeMs: stats.mtimeMs, isFile: stats.isFile() };
}

const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG', 'EINVAL', 'EISDIR', 'ENXIO'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  );
