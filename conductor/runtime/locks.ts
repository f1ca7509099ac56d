/**
 * The nodes that this process holds, in memory beside the reservations in the database. Waiting work is woken when a node is released,
 * and a heartbeat of a held node is remembered until then.
 */
import type { Clock } from '../../model/clock';
import type { Metrics } from '../../model/metrics';

export interface Locks {
  /** Whether this process holds the node, or is about to. */
  has(nodeUuid: string): boolean;
  add(nodeUuid: string): void;
  /** Wakes waiting work, then calls the remembered function. */
  remove(nodeUuid: string): void;
  /** Waits until this process releases the node, the time is over, or the signal is aborted. */
  wait(nodeUuid: string, milliseconds: number, signal: AbortSignal): Promise<void>;
  /** Calls `wake` once when the node is released. A second call before that changes nothing. */
  remember(nodeUuid: string, wake: () => void): void;
  readonly held: ReadonlySet<string>;
}

export function createLocks(clock: Clock, metrics: Metrics): Locks {
  const held = new Set<string>();
  const waiting = new Map<string, Set<AbortController>>();
  const remembered = new Map<string, () => void>();
  metrics.read('bloomery_locks_held', () => [[{}, held.size]]);
  return {
    held,
    has: (nodeUuid) => held.has(nodeUuid),
    add: (nodeUuid) => void held.add(nodeUuid),
    remove: (nodeUuid) => {
      held.delete(nodeUuid);
      for (const waiter of waiting.get(nodeUuid) ?? []) waiter.abort();
      const wake = remembered.get(nodeUuid);
      remembered.delete(nodeUuid);
      wake?.();
    },
    wait: async (nodeUuid, milliseconds, signal) => {
      const released = new AbortController();
      const waiters = waiting.get(nodeUuid) ?? new Set();
      waiting.set(nodeUuid, waiters.add(released));
      await clock.sleep(milliseconds, AbortSignal.any([released.signal, signal])).catch(() => {});
      waiters.delete(released);
      if (waiters.size === 0) waiting.delete(nodeUuid);
    },
    remember: (nodeUuid, wake) => {
      if (!remembered.has(nodeUuid)) remembered.set(nodeUuid, wake);
    },
  };
}
