/** Small files that the server reads again when they have changed, such as those of users and roles. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { versionOf } from './watch-files';

/** Never blocks; without O_NONBLOCK, opening a named pipe would. */
function readSmall(path: string, mostBytes: number): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (found.size > mostBytes) throw new Error(`it has more than ${mostBytes} bytes`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

type Outcome<T> = { readonly content: T } | { readonly error: unknown };

/**
 * Returns a function for the current content of a file. While the file is unchanged, it returns the same object, or throws the same error.
 * @param mostBytes of a file that is read
 * @param parse throws an error for a text that it cannot use
 */
export function watchedFile<T>(path: string, mostBytes: number, parse: (text: string) => T): () => T {
  let last: { readonly version: string; readonly outcome: Outcome<T> } | undefined;
  const attempt = (): Outcome<T> => {
    try {
      return { content: parse(readSmall(path, mostBytes)) };
    } catch (error) {
      return { error };
    }
  };
  return () => {
    const version = versionOf(path);
    if (last?.version !== version) last = { version, outcome: attempt() };
    if ('error' in last.outcome) throw last.outcome.error;
    return last.outcome.content;
  };
}
