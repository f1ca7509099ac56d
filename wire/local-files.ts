/**
 * Local files that users, or rows of the database, name. One function opens all of them: only regular files in the allowed folders, never
 * files of the server itself. The real path decides, and that of the opened file must be the same.
 */
import { constants } from 'node:fs';
import { open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { relative, resolve } from 'node:path';

export interface OpenFile {
  readonly handle: FileHandle;
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch, whole. */
  readonly modified: number;
}
/** What users may name. */
export interface FileRules {
  /** Folders, or single files. */
  readonly allowed: readonly string[];
  /** Files and folders of the server itself. They are refused even inside an allowed folder. */
  readonly own: readonly string[];
  /** False: files of the system, and the keys of users, are not refused. */
  readonly system?: boolean;
}
/** Why a path is refused: it is, or is in, a protected path; or no allowed path contains it. */
type Refusal = { readonly kind: 'protected'; readonly path: string } | { readonly kind: 'outside' };
/** The file is refused, or changed between its check and its opening. */
export class FileRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.kind === 'protected' ? `${refusal.path} is not permitted` : 'it is not in an allowed folder');
  }
}

/** Folders that no option can allow. The first six are Ironic's. */
const SYSTEM = ['/dev', '/sys', '/proc', '/boot', '/etc', '/run', '/root'];
/** Files and folders with the keys of users, wherever a home folder is. */
const KEYS: ReadonlySet<string> = new Set(['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.netrc', '.pgpass', '.config']);

/** Whether the folder, or the file itself, contains the path. Both are absolute. */
export const contains = (folder: string, path: string): boolean => {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith('../');
};

/** Checks a path without access to the disk. */
export function refusalOf(path: string, { allowed, own, system = true }: FileRules): Refusal | undefined {
  const folder = system
    ? (SYSTEM.find((candidate) => contains(candidate, path)) ?? path.split('/').find((name) => KEYS.has(name)))
    : undefined;
  const kept = own.find((candidate) => contains(resolve(candidate), path));
  const found = folder ?? kept;
  if (found !== undefined) return { kind: 'protected', path: found };
  return allowed.some((folder) => contains(resolve(folder), path)) ? undefined : { kind: 'outside' };
}

const realOrSame = (path: string): Promise<string> => realpath(path).catch(() => path);
/** The rules with the paths behind all links, as they are now: certificates of Kubernetes, for example, are links that change. */
async function realRules({ allowed, own, ...others }: FileRules): Promise<FileRules> {
  const real = async (paths: readonly string[]): Promise<readonly string[]> => Promise.all(paths.map(realOrSame));
  return { ...others, allowed: await real(allowed), own: [...own, ...(await real(own))] };
}

/** The path behind all links; undefined: there is no such regular file. Throws FileRefused. */
export async function checkLocalFile(path: string, rules: FileRules): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return undefined;
  const refusal = refusalOf(real, await realRules(rules));
  if (refusal) throw new FileRefused(refusal);
  return (await stat(real).catch(() => undefined))?.isFile() ? real : undefined;
}

/** Opens a file that the rules permit; the caller closes it. Undefined: there is no such regular file. Throws FileRefused. */
export async function openLocalFile(path: string, rules: FileRules): Promise<OpenFile | undefined> {
  const real = await checkLocalFile(path, rules);
  if (real === undefined) return undefined;
  return openReal(real);
}

/** The real path of an opened file, from the kernel: the path may lead elsewhere since. Other systems than Linux look again by the path. */
const openedPath = ({ handle, path }: OpenFile): Promise<string> => readlink(`/proc/self/fd/${handle.fd}`).catch(() => realpath(path));

/** Opens a regular file by its real path, which was checked. Undefined: it is gone. Throws FileRefused if the path leads elsewhere now. */
export async function openReal(real: string): Promise<OpenFile | undefined> {
  const file = await openFile(real, constants.O_NOFOLLOW);
  if (!file) return undefined;
  try {
    // A folder of the path may have become a link since the check.
    if ((await openedPath(file)) === real) return file;
    throw new FileRefused({ kind: 'outside' });
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}

/** Opens a regular file that an option names; undefined for anything else. Does not block on a named pipe. */
export async function openFile(path: string, flags = 0): Promise<OpenFile | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, path, size: stats.size, modified: Math.trunc(stats.mtimeMs) };
    await handle.close();
    return undefined;
  } catch (error) {
    await handle?.close().catch(() => {});
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG', 'EINVAL', 'EISDIR', 'ENXIO'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  );
