/** Work that may succeed later. */
import type { Clock } from './clock';

interface RetryParts {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Absent: only `pauseAfter` ends the retries. */
  readonly signal?: AbortSignal;
}
/**
 * Runs the work again after each error for which `pauseAfter` gives a pause.
 * @param pauseAfter milliseconds after this error of this attempt, of which the first is 1; undefined: the error is final. It bounds the
 * number of attempts or their time
 * @throws the last error, or the reason of the signal that aborts a pause
 */
export async function retry<T>(
  { clock, signal }: RetryParts,
  work: (attempt: number) => Promise<T>,
  pauseAfter: (error: unknown, attempt: number) => number | undefined | Promise<number | undefined>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      const pause = await pauseAfter(error, attempt);
      if (pause === undefined) throw error;
      await clock.sleep(pause, signal);
    }
  }
}
