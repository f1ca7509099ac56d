/**
 * How long to wait before a packet is sent again: as TCP does it (RFC 6298), since the seconds that TFTP servers usually wait make
 * a boot take minutes on a bad wire. Times are milliseconds.
 */
export interface RetransmissionTimer {
  /** The answer to what was sent once took so long. What was sent twice says nothing (Karn's rule, §3). */
  measured(trip: number): void;
  /** The client went on: waits are short again. */
  acknowledged(): void;
  /** The wait ended in vain. */
  expired(): void;
  timeout(): number;
}

/** Before anything is measured; at least; after resends in vain. */
const FIRST = 250;
const LEAST = 10;
/**
 * Some clients start their own timer anew whenever a packet comes, even one that they throw away, and so repeat a lost acknowledgment
 * only in a silence longer than that: 100 ms for busybox, 5 s for atftp. So waits grow fast, and soon become longer than any.
 */
const GROWTH = 4;
const QUICK_RESENDS = 4;
const SILENCE = 6000;

/** @param agreed the client's timeout option (RFC 2349): it waits so long itself */
export function createRetransmissionTimer(agreed?: number): RetransmissionTimer {
  const silence = Math.max(agreed ?? 0, SILENCE);
  let smoothed: number | undefined;
  let variation = 0;
  let inVain = 0;
  return {
    measured: (trip) => {
      variation = smoothed === undefined ? trip / 2 : 0.75 * variation + 0.25 * Math.abs(smoothed - trip);
      smoothed = smoothed === undefined ? trip : 0.875 * smoothed + 0.125 * trip;
    },
    acknowledged: () => {
      inVain = 0;
    },
    expired: () => {
      inVain += 1;
    },
    timeout: () => {
      const once = smoothed === undefined ? FIRST : Math.max(smoothed + 4 * variation, LEAST);
      return inVain < QUICK_RESENDS ? Math.min(once * GROWTH ** inVain, silence) : silence;
    },
  };
}
