/**
 * Events of BMCs make the server read their machines: once for all events of some time, then not again for a while, and few machines at
 * once, whatever the BMCs send. Slow BMCs keep no others waiting. No worker is used.
 */
import type { BmcEvent } from '../../model/rules/bmc-events';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';

/** Milliseconds: events that come together are read together, and a machine rests after a reading. */
const TOGETHER_MS = 1000;
const REST_MS = 10_000;
/** Machines that are read at once, and how many slow ones may be read beside them. */
const WIDTH = 4;
const SLOW_WIDTH = 16;
/** Milliseconds after which a machine is slow: it gives its place to others, and waits behind them the next time. */
const SLOW_MS = 5000;
/** Events of one machine between two readings, and machines that wait. */
const MAX_EVENTS = 64;
const MAX_MACHINES = 20_000;

export interface EventReads {
  /** Returns whether the machine will be read. */
  note(nodeUuid: string, events: readonly BmcEvent[]): boolean;
}
/** Machines that wait, and how many are read at a time. */
interface Lanes {
  readonly queue: string[];
  busy: number;
  readonly width: number;
}
interface Parts {
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly track: (work: Promise<unknown>) => Promise<unknown>;
  readonly read: (nodeUuid: string, events: readonly BmcEvent[]) => Promise<void>;
}
export function createEventReads({ clock, log, signal, track, read }: Parts): EventReads {
  const pending = new Map<string, BmcEvent[]>();
  /** Until when machines rest. */
  const rests = new Map<string, number>();
  /** Machines whose last reading was slow. */
  const slow = new Set<string>();
  const fast: Lanes = { queue: [], busy: 0, width: WIDTH };
  const slower: Lanes = { queue: [], busy: 0, width: SLOW_WIDTH };
  const readOne = async (uuid: string, lanes: Lanes): Promise<void> => {
    let own = lanes;
    own.busy++;
    const over = new AbortController();
    const began = clock.now();
    void clock.sleep(SLOW_MS, AbortSignal.any([over.signal, signal])).then(
      () => {
        // Without room among the slow ones it keeps its place, so that there is a limit.
        if (own === slower || slower.busy >= SLOW_WIDTH) return;
        own.busy--;
        own = slower;
        own.busy++;
        next();
      },
      () => {},
    );
    const events = pending.get(uuid) ?? [];
    pending.delete(uuid);
    await read(uuid, events).catch((error: unknown) => {
      if (!signal.aborted) log.warn(`the machine of node ${uuid} cannot be read after its event`, { reason: reasonOf(error) });
    });
    over.abort();
    const now = clock.now();
    if (now - began < SLOW_MS) slow.delete(uuid);
    else if (slow.size < MAX_MACHINES) slow.add(uuid);
    rests.set(uuid, now + REST_MS);
    own.busy--;
    next();
  };
  const next = (): void => {
    for (const lanes of [fast, slower])
      while (lanes.busy < lanes.width && !signal.aborted) {
        const uuid = lanes.queue.shift();
        if (uuid === undefined) break;
        void track(readOne(uuid, lanes));
      }
  };
  const begin = (uuid: string): void => {
    (slow.has(uuid) ? slower : fast).queue.push(uuid);
    next();
  };
  return {
    note(uuid, events) {
      const known = pending.get(uuid);
      if (known) {
        known.push(...events.slice(0, MAX_EVENTS - known.length));
        return true;
      }
      if (pending.size >= MAX_MACHINES || signal.aborted) return false;
      const now = clock.now();
      if (rests.size >= MAX_MACHINES) for (const [rested, until] of rests) if (until <= now) rests.delete(rested);
      pending.set(uuid, events.slice(0, MAX_EVENTS));
      const pause = Math.max(TOGETHER_MS, (rests.get(uuid) ?? 0) - now);
      void clock.sleep(pause, signal).then(
        () => begin(uuid),
        () => {},
      );
      return true;
    },
  };
}
