/** Slows down who guesses tokens: each answer to a wrong token comes later than the one before. Right tokens are never delayed. */
import type { Clock } from '../../model/clock';

const FIRST_MS = 250;
const MAX_MS = 10_000;
/** After this time without a wrong token, the next one is the first again. */
const FORGET_MS = 60_000;

export function createBrake(clock: Clock): { readonly refused: (signal: AbortSignal) => Promise<void> } {
  let failures = 0;
  let last = -Infinity;
  return {
    refused: async (signal) => {
      failures = clock.now() - last > FORGET_MS ? 1 : failures + 1;
      last = clock.now();
      await clock.sleep(Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)), signal).catch(() => {});
    },
  };
}
