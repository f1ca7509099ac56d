/** Time as an argument: whoever waits or stamps gets a clock, so that tests hold it. */
import { setTimeout as delay } from 'node:timers/promises';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment; nobody puts it. Absent: `now` must do. */
  monotonic?(): number;
  /** Rejects with the signal's reason when it is aborted first. */
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

/** How timestamps look in rows and answers: ISO 8601 with offset and microseconds. */
export const timestamp = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('Z', '000+00:00');
/** How they look in `driver_internal_info` and in messages, as Ironic writes them there: in UTC, which they do not say. */
export const bareTimestamp = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('Z', '000');
/** Milliseconds since the epoch of either; NaN of what is no time. */
export const instantOf = (text: string): number => Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`);
