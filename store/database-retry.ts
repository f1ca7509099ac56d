/**
 * Work that must not fail when the database is unreachable: its statements are retried until the database responds. A statement
 * may have run before the connection broke. Running it twice is safe, because writes name their fencing number, and history entries have
 * a UUID.
 */
import { retry, type Clock } from '../model/clock';
import { Fault, reasonOf } from '../model/errors';
import type { Log } from '../model/log';

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;

export const isDatabaseDown = (error: unknown): boolean => error instanceof Fault && error.name === 'TemporaryFailure';

/**
 * Runs `work` again while it fails with an error for which `isTemporary` is true (default: the database is unreachable), until `signal`
 * aborts.
 */
export async function retryWhileDatabaseDown<T>(
  { clock, signal, log }: { readonly clock: Clock; readonly signal: AbortSignal; readonly log: Log },
  work: () => Promise<T>,
  isTemporary: (error: unknown) => boolean = isDatabaseDown,
): Promise<T> {
  let isRetried = false;
  const answer = await retry({ clock, signal }, work, (error, attempt) => {
    if (!isTemporary(error) || signal.aborted) return undefined;
    if (!isRetried) log.warn('temporary failure: the work is retried', { reason: reasonOf(error) });
    isRetried = true;
    return Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), MAX_PAUSE_MS);
  });
  if (isRetried) log.info('the retried work succeeded');
  return answer;
}

/** Wraps a store so that `retry` runs each of its calls. A transaction is retried as a whole. */
export function retryingStore<S extends object>(store: S, retry: <T>(work: () => Promise<T>) => Promise<T>): S {
  const wrapped = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member === 'function')
          return (...given: unknown[]) => retry(() => (member as (...all: unknown[]) => Promise<unknown>).apply(target, given));
        return typeof member === 'object' && member !== null ? wrapped(member) : member;
      },
    });
  return wrapped(store);
}
