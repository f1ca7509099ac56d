/** BMCs are slow, and some fail under two requests at once: background work sends one request at a time to each BMC. */
export interface BmcTurns {
  /** Waits for earlier work under the same name. Throws the signal's reason if it is aborted before the work begins. */
  alone<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createBmcTurns(): BmcTurns {
  /** By name: the work that was queued last. */
  const last = new Map<string, Promise<unknown>>();
  return {
    alone: async (name, signal, work) => {
      const before = last.get(name);
      const queued = (async () => {
        await before?.catch(() => {});
        signal.throwIfAborted();
        return work();
      })();
      last.set(name, queued);
      try {
        return await queued;
      } finally {
        if (last.get(name) === queued) last.delete(name);
      }
    },
  };
}
