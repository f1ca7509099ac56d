/** Small files of users and roles, which the server reads again when they have changed. */
import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';

/** Room for tens of thousands of users. */
const MOST_BYTES = 4 * 2 ** 20;

/** Never waits: opening a pipe would. */
function readSmall(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (found.size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

type Outcome<T> = { readonly content: T } | { readonly error: unknown };

/**
 * The content of a file, as it is now. While the file stays as it is, the same object (or the same error) comes back.
 * @param parse throws an error for a text that it cannot use
 */
export function watchedFile<T>(path: string, parse: (text: string) => T): () => T {
  let last: { readonly version: string; readonly outcome: Outcome<T> } | undefined;
  const attempt = (): Outcome<T> => {
    try {
      return { content: parse(readSmall(path)) };
    } catch (error) {
      return { error };
    }
  };
  return () => {
    const found = statSync(path, { throwIfNoEntry: false });
    const version = found === undefined ? '' : [found.dev, found.ino, found.size, found.mtimeMs, found.ctimeMs].join(' ');
    if (last?.version !== version) last = { version, outcome: attempt() };
    if ('error' in last.outcome) throw last.outcome.error;
    return last.outcome.content;
  };
}
