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

/** A file that its user closes. */
interface SharedFile {
  readonly file: OpenFile;
  close(): Promise<void>;
}
/** A file that was replaced is sent as it was for so long. */
const SHARED_MS = 1000;
/** Opens a file once for all who want it within a second: a flood of requests does not cost a flood of system calls. */
export function shareFiles(
  open: (name: string) => Promise<OpenFile | undefined>,
  now: () => number,
): (name: string) => Promise<SharedFile | undefined> {
  interface Shared {
    readonly file: Promise<OpenFile | undefined>;
    readonly openedAt: number;
    users: number;
  }
  /** Those with users. */
  const files = new Map<string, Shared>();
  const leave = async (name: string, shared: Shared): Promise<void> => {
    shared.users -= 1;
    if (shared.users > 0) return;
    if (files.get(name) === shared) files.delete(name);
    await (await shared.file)?.handle.close();
  };
  return async (name) => {
    const recent = files.get(name);
    const shared = recent && now() - recent.openedAt < SHARED_MS ? recent : { file: open(name), openedAt: now(), users: 0 };
    files.set(name, shared);
    shared.users += 1;
    const file = await shared.file.catch(async (error: unknown) => {
      files.delete(name);
      throw error;
    });
    if (file) return { file, close: () => leave(name, shared) };
    await leave(name, shared);
    return undefined;
  };
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
