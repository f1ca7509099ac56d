/**
 * The files of an image that was written to the disk. The image is not trusted: paths never leave its file system, only regular files are
 * read, and everything is limited in number and size.
 */
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open, opendir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

export interface ImageFiles {
  /** The names in a folder, sorted; those after the first MAX_NAMES are left out. Empty when there is no such folder. */
  names(path: string): Promise<readonly string[]>;
  /** The content of a text file; null when it is missing, no regular file, or larger than MAX_TEXT bytes. */
  text(path: string): Promise<string | null>;
  /** Null when there is no such regular file. The caller closes it. */
  open(path: string): Promise<FileHandle | null>;
}

const MAX_NAMES = 256;
const MAX_TEXT = 2 ** 20;
/** Parts of a path and of the links on it. */
const MAX_PARTS = 128;

const partsOf = (path: string): readonly string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * The path on this system, without links: a link of the image means a file of the image. What is missing stays as it is. Undefined: too many
 * links.
 */
export async function resolved(root: string, path: string): Promise<string | undefined> {
  let left = partsOf(path);
  let at: readonly string[] = [];
  for (let steps = 0; left.length > 0; steps++) {
    if (steps > MAX_PARTS || left.length > MAX_PARTS) return undefined;
    const [name, ...rest] = left;
    if (name === '..') {
      at = at.slice(0, -1);
      left = rest;
      continue;
    }
    const here = join(root, ...at, name!);
    const found = await lstat(here).catch(ifMissing);
    const target = found?.isSymbolicLink() ? await readlink(here) : undefined;
    if (target?.startsWith('/')) at = [];
    if (target === undefined) at = [...at, name!];
    left = target === undefined ? rest : [...partsOf(target), ...rest];
  }
  return join(root, ...at);
}

function ifMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

/** @param root where the file system is mounted, read-only */
export function imageFiles(root: string): ImageFiles {
  const openFile = async (path: string): Promise<FileHandle | null> => {
    const file = await attempt(async () => {
      const real = await resolved(root, path);
      // A FIFO or a device of the image is not opened: opening may block, or do something.
      if (real === undefined || !(await lstat(real)).isFile()) return null;
      return open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    });
    return file;
  };
  return {
    open: openFile,
    names: async (path) => {
      const found: string[] = [];
      await attempt(async () => {
        const real = await resolved(root, path);
        if (real === undefined) return null;
        for await (const { name } of (await opendir(real)) as AsyncIterable<Dirent>) {
          found.push(name);
          if (found.length >= MAX_NAMES) break;
        }
        return null;
      });
      return found.sort();
    },
    text: async (path) => {
      const file = await openFile(path);
      if (!file) return null;
      try {
        const { size } = await file.stat();
        if (size > MAX_TEXT) return null;
        const bytes = Buffer.alloc(size);
        const { bytesRead } = await file.read(bytes, 0, size, 0);
        return bytes.toString('utf8', 0, bytesRead);
      } finally {
        await file.close();
      }
    },
  };
}

/** Null for a file system that answers with an error: a missing file, or a damaged image. */
async function attempt<T>(work: () => Promise<T | null>): Promise<T | null> {
  try {
    return await work();
  } catch {
    return null;
  }
}
