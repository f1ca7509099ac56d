/**
 * A signal that aborts after a time (with a TimeoutError), or as soon as one of `signals` does.
 *
 * Use it to combine a timeout with other signals. AbortSignal.any references its sources weakly, so a bare AbortSignal.timeout in it can be
 * garbage collected, and the wait never ends (observed with Node 20.20).
 */
export function timeoutSignal(milliseconds: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const late = AbortSignal.timeout(milliseconds);
  // The listener keeps it alive until it aborts.
  late.addEventListener('abort', () => {}, { once: true });
  return AbortSignal.any([late, ...signals]);
}

/** Rejects with the signal's reason if it aborts before the work is done. The work goes on, since others may wait for it too. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, fail) => {
    stop = () => fail(signal.reason as Error);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
