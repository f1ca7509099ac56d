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
