/**
 * Events of BMCs make the server read their machines: once for all events of some time, then not again for a while, and few machines at
 * once, whatever the BMCs send. No worker is used.
 */
import type { BmcEvent } from '../../model/rules/bmc-events';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';

/** Milliseconds: events that come together are read together, and a machine rests after a reading. */
const TOGETHER_MS = 1000;
const REST_MS = 10_000;
/** Machines that are read at once. */
const WIDTH = 4;
/** Events of one machine between two readings, and machines that wait. */
const MAX_EVENTS = 64;
const MAX_MACHINES = 20_000;

export interface EventReads {
  /** Returns whether the machine will be read. */
  note(nodeUuid: string, events: readonly BmcEvent[]): boolean;
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
  const queue: string[] = [];
  let lanes = 0;
  const lane = async (): Promise<void> => {
    for (let uuid = queue.shift(); uuid !== undefined && !signal.aborted; uuid = queue.shift()) {
      const events = pending.get(uuid) ?? [];
      pending.delete(uuid);
      await read(uuid, events).catch((error: unknown) => {
        if (!signal.aborted) log.warn(`the machine of node ${uuid} cannot be read after its event`, { reason: reasonOf(error) });
      });
      rests.set(uuid, clock.now() + REST_MS);
    }
  };
  const begin = (uuid: string): void => {
    queue.push(uuid);
    if (lanes >= WIDTH) return;
    lanes++;
    void track(lane().finally(() => lanes--));
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
