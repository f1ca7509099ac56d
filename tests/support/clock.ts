/** A clock that a test advances. Short waits pass by themselves, so that the code under test continues; longer ones wait for `advance`. */
import type { Clock } from '../../model/clock';

export interface TestClock extends Clock {
  /** Advances the clock by so many seconds. Sleepers whose time comes on the way wake in order. */
  advance(seconds: number): Promise<void>;
  /** The number of sleepers. */
  sleeping(): number;
}
interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** @param shortMs waits up to this long pass by themselves (and advance the clock) */
export function testClock(start = Date.parse('2026-03-01T00:00:00Z'), shortMs = 5000): TestClock {
  let now = start;
  const sleepers = new Set<Sleeper>();
  /** Lets the work run that a sleeper's end has started. */
  const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    now: () => now,
    sleeping: () => sleepers.size,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason as Error);
          return;
        }
        if (milliseconds <= shortMs) {
          setImmediate(() => {
            if (signal?.aborted) {
              reject(signal.reason as Error);
              return;
            }
            now += milliseconds;
            resolve();
          });
          return;
        }
        const end = (): void => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', abort);
        };
        const abort = (): void => {
          end();
          reject(signal!.reason as Error);
        };
        const sleeper: Sleeper = {
          at: now + milliseconds,
          wake: () => {
            end();
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', abort);
      }),
    advance: async (seconds) => {
      const until = now + seconds * 1000;
      for (;;) {
        const [first] = [...sleepers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
        if (!first) break;
        now = Math.max(now, first.at);
        first.wake();
        await nextTurn();
      }
      now = Math.max(now, until);
      await nextTurn();
    },
  };
}
