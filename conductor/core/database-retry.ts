/**
 * Work that nobody waits for does not fail because the database is away: what it asks waits until the database answers again. It has
 * happened or not, as the database says then; asked twice, it is the same (writes carry their fencing number, history entries their UUID).
 */
import type { Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;

export const isDatabaseDown = (error: unknown): boolean => error instanceof Fault && error.name === 'TemporaryFailure';

/** Runs `ask` until it ends otherwise than by what passes (a database that is away), or until `signal`. */
export async function retryWhileDatabaseDown<T>(
  { clock, signal, log }: { readonly clock: Clock; readonly signal: AbortSignal; readonly log: Log },
  ask: () => Promise<T>,
  passes: (error: unknown) => boolean = isDatabaseDown,
): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      const answer = await ask();
      if (pause > FIRST_PAUSE_MS) log.info('the work goes on');
      return answer;
    } catch (error) {
      if (!passes(error) || signal.aborted) throw error;
      if (pause === FIRST_PAUSE_MS) log.warn('the work waits', { reason: reasonOf(error) });
      await clock.sleep(pause, signal);
    }
  }
}

/** The store, of which everything is asked by `ask`. A whole transaction is asked again, not what is done within. */
export function retryingStore(store: Store, ask: <T>(work: () => Promise<T>) => Promise<T>): Store {
  const asking = <T extends object>(room: T): T =>
    new Proxy(room, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member === 'function')
          return (...given: unknown[]) => ask(() => (member as (...all: unknown[]) => Promise<unknown>).apply(target, given));
        return typeof member === 'object' && member !== null ? asking(member) : member;
      },
    });
  return asking(store);
}
