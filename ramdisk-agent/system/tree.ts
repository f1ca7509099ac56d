/** Reads /sys and /proc below a root, so that tests read the same files from a tree of their own. What is not there is null. */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

export interface Tree {
  /** The file's text without its last line end and NULs; null when it is not there, cannot be read, or is empty. */
  text(path: string): string | null;
  bytes(path: string): Buffer | null;
  /** Names in the directory, sorted; none when it is not there. */
  list(path: string): readonly string[];
  /** The last part of where the symbolic link points. */
  link(path: string): string | null;
  /** The path, below the root, with its symbolic links followed. */
  real(path: string): string | null;
}

export function tree(root = '/'): Tree {
  const at = (path: string): string => join(root, path);
  const attempt = <T>(read: () => T): T | null => {
    try {
      return read();
    } catch {
      // sysfs answers missing and unreadable attributes alike with an error: there is nothing to know then.
      return null;
    }
  };
  return {
    text: (path) => attempt(() => readFileSync(at(path), 'utf8').replaceAll('\0', '').trim()) || null,
    bytes: (path) => attempt(() => readFileSync(at(path))),
    list: (path) => attempt(() => readdirSync(at(path)).sort()) ?? [],
    link: (path) => attempt(() => basename(readlinkSync(at(path)))),
    real: (path) => attempt(() => `/${relative(realpathSync(root), realpathSync(at(path)))}`),
  };
}

export function numberIn(text: string | null): number | null {
  const value = text === null || text === '' ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}
