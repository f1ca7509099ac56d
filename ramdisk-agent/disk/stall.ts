/** Ends the wait for a disk that hangs: some controllers never answer, and the kernel then waits for ever. Says when a disk is gone. */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';

export interface StallLimit {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Milliseconds without any work of the disk after which it counts as hanging. */
  readonly limitMs: number;
  /** /sys/block/…/stat; null: the machine has no such disk. */
  readonly stat: () => string | null;
}
export interface Limited {
  /** The signal tells the operation that nobody waits any more. */
  run<T>(operation: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** The disk is closed. */
  end(): void;
}

/** The disk is looked at so often within its limit: one timer for all operations, since an image has many small ones. */
const LOOKS = 10;
/** Numbers of requests and sectors that are complete (Documentation/block/stat.rst). Others change while requests are pending. */
const COMPLETE: readonly number[] = [0, 2, 4, 6, 11, 13, 15];
function complete(stat: string | null): string {
  const fields = (stat ?? '').split(/\s+/);
  return COMPLETE.map((index) => fields[index]).join(' ');
}

export class DiskHangs extends Error {}

/** A flush may write for long: as long as the disk works, nothing ends. */
export function limited({ clock, limitMs, stat }: StallLimit): Limited {
  const isKnown = stat() !== null;
  const waiting = new Set<(error: unknown) => void>();
  const [closed, unwanted] = [new AbortController(), new AbortController()];
  let [started, done, isWatched] = [0, 0, false];
  let stalled: DiskHangs | undefined;

  async function watch(): Promise<void> {
    const progress = (): string => `${started} ${done} ${complete(stat())}`;
    let before = progress();
    for (let quiet = 0; quiet < LOOKS;) {
      await clock.sleep(limitMs / LOOKS, closed.signal);
      const now = progress();
      quiet = waiting.size > 0 && now === before ? quiet + 1 : 0;
      before = now;
    }
    stalled = new DiskHangs(`the disk hangs: it has done nothing for ${limitMs / 1000} s (ipa-disk-timeout)`);
    unwanted.abort();
    for (const fail of waiting) fail(stalled);
  }
  const explained = (error: unknown): Error => {
    if (isKnown && error !== stalled && stat() === null)
      return new Error(`the disk is gone: it was removed, or its controller lost it (${reasonOf(error)})`, { cause: error });
    return error instanceof Error ? error : new Error(reasonOf(error), { cause: error });
  };
  return {
    end: () => closed.abort(),
    run: (operation) =>
      new Promise((resolve, reject) => {
        // What hangs cannot be taken back. Nothing may follow it.
        if (stalled) {
          reject(stalled);
          return;
        }
        started += 1;
        const fail = (error: unknown): void => {
          waiting.delete(fail);
          reject(explained(error));
        };
        waiting.add(fail);
        operation(unwanted.signal).then((value) => {
          done += 1;
          waiting.delete(fail);
          resolve(value);
        }, fail);
        if (isWatched) return;
        isWatched = true;
        // Ends with the last operation.
        watch().catch(() => {});
      }),
  };
}
const { signal: never } = new AbortController();
export const unlimited: Limited = { run: (operation) => operation(never), end: () => {} };
