/** Reads /sys and /proc below a root folder, so that tests and the recorder can use another one. Missing files are null. */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

export interface Tree {
  /** The file's text without NULs and surrounding white space; null when it is missing, unreadable or empty. */
  text(path: string): string | null;
  bytes(path: string): Buffer | null;
  /** Names in the directory, sorted; empty when it is missing. */
  list(path: string): readonly string[];
  /** The last part of the symbolic link's target. */
  link(path: string): string | null;
  /** The path, below the root, with symbolic links resolved. */
  real(path: string): string | null;
}

export function tree(root = '/'): Tree {
  const at = (path: string): string => join(root, path);
  const attempt = <T>(read: () => T): T | null => {
    try {
      return read();
    } catch {
      // sysfs answers missing and unreadable attributes alike with an error.
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
