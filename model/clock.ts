/** Time as an argument, so that tests control it. */
import { setTimeout as delay } from 'node:timers/promises';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a monotonic clock. Absent: callers use `now`. */
  monotonic?(): number;
  /** Rejects with the signal's reason if it aborts first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (milliseconds, signal) => {
    try {
      await delay(milliseconds, undefined, signal ? { signal } : {});
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    }
  },
};

/** Of work that may succeed later. */
interface RetryParts {
  readonly clock: Pick<Clock, 'sleep'>;
  /** Absent: only `pauseAfter` ends the retries. */
  readonly signal?: AbortSignal | undefined;
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
/**
 * Runs the check again until it holds.
 * @param pauseAfter milliseconds after this check, of which the first is 1; undefined: the wait is over
 * @returns whether it holds
 * @throws the error of a check, or the reason of the signal that aborts a pause
 */
export async function waitUntil(
  { clock, signal }: RetryParts,
  check: () => boolean | Promise<boolean>,
  pauseAfter: (checks: number) => number | undefined,
): Promise<boolean> {
  for (let checks = 1; !(await check()); checks++) {
    const pause = pauseAfter(checks);
    if (pause === undefined) return false;
    await clock.sleep(pause, signal);
  }
  return true;
}

/** The format of times in rows and responses: ISO 8601 with offset and microseconds. */
export const timestamp = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('Z', '000+00:00');
/** The format of times in `driver_internal_info` and in messages, as in Ironic: UTC, without offset. */
export const bareTimestamp = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('Z', '000');
/** Date.parse accepts 2026-02-30. */
const isDay = (day: string): boolean => day.slice(8) <= '28' || new Date(`${day}T00:00Z`).getUTCDate() === Number(day.slice(8));
/**
 * Parses both formats, and other times in ISO 8601 that begin with year, month and day, to milliseconds since the epoch; NaN for other texts
 * and for days that do not exist.
 */
export const instantOf = (text: string): number =>
  isDay(text.slice(0, 10)) ? Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`) : NaN;
