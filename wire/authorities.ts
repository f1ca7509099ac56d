/**
 * Reads certificate authorities from a file, or a folder of files, that a node or an option names. Only regular files are opened, and reads
 * are bounded: a named pipe or a device would block a thread of the pool for ever.
 */
import { constants } from 'node:fs';
import { open, opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Bytes of all files of a folder together. The authorities of a system have 250 KB. */
const MAX_FOLDER_BYTES = 16 * 1024 * 1024;
const MAX_FOLDER_FILES = 2000;

const WORDS: Readonly<Record<string, boolean>> = Object.fromEntries([
  ...['1', 't', 'true', 'on', 'y', 'yes'].map((word) => [word, true]),
  ...['0', 'f', 'false', 'off', 'n', 'no'].map((word) => [word, false]),
]) as Record<string, boolean>;
/** Reads a setting such as `verify_ca`. True: the system's authorities; false: no verification; undefined: another value (a path). */
export const verifies = (setting: string): boolean | undefined => WORDS[setting.trim().toLowerCase()];

/** @throws Error when it is not a regular file, or too large */
export async function readRegularFile(path: string, most = MAX_FILE_BYTES): Promise<string> {
  // Checked before the open, since opening a device may have effects. O_NONBLOCK: a pipe that replaces the file meanwhile must not block.
  if (!(await stat(path)).isFile()) throw new Error(`${path} is not a regular file`);
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a regular file`);
    if (size > most) throw new Error(`${path} is larger than ${most} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/**
 * @param names which files of a folder are read; others, and those that are not regular files, are passed over
 * @returns PEM texts
 * @throws Error
 */
export async function readAuthorities(path: string, names: RegExp): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [await readRegularFile(path)];
  const files: string[] = [];
  for await (const { name } of await opendir(path)) {
    if (!names.test(name)) continue;
    if (files.push(name) > MAX_FOLDER_FILES) throw new Error(`${path} has more than ${MAX_FOLDER_FILES} files`);
  }
  const texts: string[] = [];
  let size = 0;
  // One after another, so that other work has its turn in the pool of threads.
  for (const name of files.sort()) {
    const file = join(path, name);
    if (!(await stat(file)).isFile()) continue;
    const text = await readRegularFile(file);
    size += text.length;
    if (size > MAX_FOLDER_BYTES) throw new Error(`the files of ${path} have more than ${MAX_FOLDER_BYTES} bytes`);
    texts.push(text);
  }
  return texts;
}

/** The least version of TLS as Ironic's options name it → as Node does. */
export const LEAST_TLS = { '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' } as const;
export type TlsVersion = keyof typeof LEAST_TLS;
