/** Waits until a condition holds, however slow the machine is. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Milliseconds. Only a condition that never holds reaches this limit. It is below jest's own limit, so that the error names the condition.
 */
export const NEVER_MS = 240_000;

/** @throws with `what` when the condition does not hold within that time */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, everyMs = 10, neverMs = NEVER_MS): Promise<void> {
  const end = Date.now() + neverMs;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not within ${neverMs / 1000} s: ${what}`);
    await delay(everyMs);
  }
}
