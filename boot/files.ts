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
    const own = served.own.filter((one) => !contains(one, root));
    return await openLocalFile(join(root, path), { allowed: [root], own, system: false });
  } catch (error) {
    if (error instanceof FileRefused || isAbsent(error)) return undefined;
    throw error;
  }
}
