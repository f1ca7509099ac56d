/**
 * Which nodes this process holds, in memory beside the reservations in the database: who waits for a node is woken when it is let
 * go, and a heartbeat that met a held node is remembered until then.
 */
import type { Clock } from '../../model/clock';
import type { Metrics } from '../../model/metrics';

export interface Locks {
  /** Whether this process holds the node, or is about to. */
  has(nodeUuid: string): boolean;
  add(nodeUuid: string): void;
  /** Wakes the waiting, then the remembered. */
  remove(nodeUuid: string): void;
  /** Until this process lets the node go, at most so long. */
  wait(nodeUuid: string, milliseconds: number, signal: AbortSignal): Promise<void>;
  /** Calls `wake` once when the node is let go; a second call before that changes nothing. */
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
      const letGo = new AbortController();
      const waiters = waiting.get(nodeUuid) ?? new Set();
      waiting.set(nodeUuid, waiters.add(letGo));
      await clock.sleep(milliseconds, AbortSignal.any([letGo.signal, signal])).catch(() => {});
      waiters.delete(letGo);
      if (waiters.size === 0) waiting.delete(nodeUuid);
    },
    remember: (nodeUuid, wake) => {
      if (!remembered.has(nodeUuid)) remembered.set(nodeUuid, wake);
    },
  };
}
