/** The reset of a BMC: no protocol answers for a while, and all sessions end. */
import type { Clock } from '../../model/clock';
import type { FaultBox } from './faults';

/** Shared by all protocols of a BMC. */
export interface Restart {
  /** Requests in progress still get their answers; new ones get none until the BMC has started. */
  begin(): void;
  isAway(): boolean;
  /** @param forget drops a protocol's sessions; clients receive no message */
  onBegin(forget: () => void): void;
}

/** The default of the fault `restart`. Real BMCs take up to several minutes. */
const RESTART_MS = 5000;

export function createRestart(clock: Pick<Clock, 'now'>, box: FaultBox = { now: {} }): Restart {
  const listeners: (() => void)[] = [];
  let until = -Infinity;
  return {
    begin: () => {
      until = clock.now() + (box.now.restart ?? RESTART_MS);
      for (const forget of listeners) forget();
    },
    isAway: () => clock.now() < until,
    onBegin: (forget) => void listeners.push(forget),
  };
}
