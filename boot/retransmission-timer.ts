/**
 * The retransmission timeout of TFTP, computed as in TCP (RFC 6298). The usual timeout of seconds makes a boot take minutes on a lossy
 * network. Times are milliseconds.
 */
export interface RetransmissionTimer {
  /** Reports a round-trip time. Packets that were sent twice must not be measured (Karn's algorithm, §3). */
  measured(trip: number): void;
  /** The client acknowledged new data: timeouts are short again. */
  acknowledged(): void;
  /** The timeout expired without an acknowledgment. */
  expired(): void;
  timeout(): number;
}

/** Milliseconds: the initial and the minimal timeout. */
const FIRST = 250;
const LEAST = 10;
/**
 * Some clients restart their own timer at every packet, even one that they discard. They repeat a lost acknowledgment only after a longer
 * silence: 100 ms for busybox, 5 s for atftp. So timeouts grow fast, up to a value above those.
 */
const GROWTH = 4;
const QUICK_RESENDS = 4;
const SILENCE = 6000;

/** @param agreed the client's timeout option (RFC 2349), which is the client's own retransmission timeout */
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
