/**
 * A signal that aborts after a time (with a TimeoutError), or as soon as one of `signals` does.
 *
 * To be used wherever a time limit is put beside other signals: AbortSignal.any holds what it is made of weakly, so that a bare
 * AbortSignal.timeout in it is collected as garbage before its time, and nothing ever ends the wait (seen with Node 20.20).
 */
export function timeoutSignal(milliseconds: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const late = AbortSignal.timeout(milliseconds);
  // With a listener, it lives until it aborts.
  late.addEventListener('abort', () => {}, { once: true });
  return AbortSignal.any([late, ...signals]);
}
