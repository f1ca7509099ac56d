/** Work that continues in the background after its caller has returned. The owner waits for all of it before the owner closes. */
export interface BackgroundWork {
  /** @param signal after it is aborted, a rejection of `work` is expected and not reported */
  start(work: Promise<void>, signal: AbortSignal): void;
  /** Resolves when all work has ended. */
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
