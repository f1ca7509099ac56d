/** Opens files by the names that machines request: configured single files, else files below the root. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { contains, FileRefused, isAbsent, openFile, openLocalFile, type OpenFile } from '../wire/local-files';

export interface ServedFiles {
  /** Name → path of single files outside the root ([pxe]loader_file_paths). */
  readonly named: Readonly<Record<string, string>>;
  readonly root: string;
  /** Files and folders of the server itself. Those in the root are not served. */
  readonly own: readonly string[];
}

/** Opens a file by name; the caller closes it. Undefined if it does not exist or must not be served. */
export async function openServedFile(served: ServedFiles, name: string): Promise<OpenFile | undefined> {
  const path = name.replace(/^\/+/, '');
  if (Object.hasOwn(served.named, path)) return openFile(served.named[path]!);
  if (path === '' || path.includes('\0') || path.split('/').includes('..')) return undefined;
  try {
    const root = await realpath(served.root);
    // The operator chose the root. It may be in a folder of the server, such as the state directory.
    const own = served.own.filter((candidate) => !contains(candidate, root));
    return await openLocalFile(join(root, path), { allowed: [root], own, system: false });
  } catch (error) {
    if (error instanceof FileRefused || isAbsent(error)) return undefined;
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
