/** Work that goes on beside its caller. Its owner waits for all of it before it closes. */
export interface BackgroundWork {
  /** @param signal once aborted, a rejection is the expected end and is not reported */
  start(work: Promise<void>, signal: AbortSignal): void;
  ended(): Promise<void>;
}
export function backgroundWork(report: (error: unknown) => void): BackgroundWork {
  const running = new Set<Promise<void>>();
  return {
    start: (work, signal) => {
      const tracked = work
        .catch((error: unknown) => {
          if (!signal.aborted) report(error);
        })
        .finally(() => running.delete(tracked));
      running.add(tracked);
    },
    ended: async () => {
      await Promise.all(running);
    },
  };
}
