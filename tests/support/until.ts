/** Waiting for something to be so: for the event, however slow the machine is. */
import { setTimeout as delay } from 'node:timers/promises';

/** Only what never comes is found by it; below jest's own limit, so that the error says what was waited for. */
export const NEVER_MS = 240_000;

/** @throws with `what` when it is not so after that time */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, everyMs = 10, neverMs = NEVER_MS): Promise<void> {
  const end = Date.now() + neverMs;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`it never came: ${what}`);
    await delay(everyMs);
  }
}
