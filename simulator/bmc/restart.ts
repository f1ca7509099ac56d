/** A BMC that is reset: it is away for a while, and knows none of its sessions afterwards, of whichever protocol they are. */
import type { Clock } from '../../model/clock';
import type { FaultBox } from './faults';

/** One for all protocols of a BMC. */
export interface Restart {
  /** What is being answered still is; then nothing is heard until the BMC has started. */
  begin(): void;
  isAway(): boolean;
  /** @param forget ends the sessions of a protocol, without a word to those who have them */
  onBegin(forget: () => void): void;
}

/** Real ones take up to minutes. */
const AWAY_MS = 5000;

export function createRestart(clock: Pick<Clock, 'now'>, box: FaultBox = { now: {} }): Restart {
  const forgetful: (() => void)[] = [];
  let until = -Infinity;
  return {
    begin: () => {
      until = clock.now() + (box.now.restart ?? AWAY_MS);
      for (const forget of forgetful) forget();
    },
    isAway: () => clock.now() < until,
    onBegin: (forget) => void forgetful.push(forget),
  };
}
