/** Serializes the requests to one BMC. */
import type { Bounds } from './session';

export interface RequestQueue {
  /** Settles when the last request has ended. */
  end: Promise<void>;
  waiting: number;
}
export const createRequestQueue = (): RequestQueue => ({ end: Promise.resolve(), waiting: 0 });

/** Rejects with the reason when the time is over or the signal aborts before the promise settles. */
export async function withTimeout<T>(promise: Promise<T>, milliseconds: number, late: () => Error, signal?: AbortSignal): Promise<T> {
  let end = (): void => {};
  const ended = new Promise<never>((_, fail) => {
    const timer = setTimeout(() => fail(late()), Math.max(0, milliseconds));
    const aborted = (): void => fail(signal!.reason as Error);
    signal?.addEventListener('abort', aborted);
    if (signal?.aborted) aborted();
    end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
    };
  });
  try {
    return await Promise.race([promise, ended]);
  } finally {
    end();
  }
}

/** Runs `work` in turn, unless its caller gave up before. @param now milliseconds since the epoch, as the deadline */
export async function runInQueue<T>(
  queue: RequestQueue,
  now: number,
  late: () => Error,
  bounds: Bounds,
  work: () => Promise<T>,
): Promise<T> {
  const before = queue.end;
  let over = (): void => {};
  const mine = new Promise<void>((done) => (over = done));
  queue.end = before.then(() => mine);
  queue.waiting++;
  try {
    await withTimeout(before, bounds.deadline - now, late, bounds.signal);
    return await work();
  } finally {
    queue.waiting--;
    over();
  }
}
