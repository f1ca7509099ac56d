/**
 * Reduces the work for many simultaneous heartbeats. The times of heartbeats that report nothing new are written in batches. A heartbeat
 * right after a check of the running step does not cause a second check at once, but one a second later.
 */
import type { Clock } from '../../model/clock';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';

export interface HeartbeatBuffer {
  /** Records a heartbeat that reports nothing new: its time is written to the node within a second. */
  stamp(nodeUuid: string, agentUrl: string): void;
  /** The running step was checked, and still runs. */
  stepChecked(nodeUuid: string): void;
  /** Whether the step was checked less than a second ago, so that its next check is postponed. */
  isChecked(nodeUuid: string): boolean;
  /** Returns whether the step was checked less than a second ago. Then `check` runs once after that second, for all calls until then. */
  postpone(nodeUuid: string, check: () => void): boolean;
  /** The node does not wait any more: drops its postponed check. */
  forget(nodeUuid: string): void;
  /** Writes the times that are not written yet. */
  close(): Promise<void>;
}
interface BufferParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const WRITE_INTERVAL_MS = 500;
/** Times that one statement writes. */
const BATCH = 500;
/** An agent sends a heartbeat every minute or less often, and when a step is over, which rarely happens right after a check. */
const CHECK_INTERVAL_MS = 1000;

export function createHeartbeatBuffer({ store, clock, log, signal }: BufferParts): HeartbeatBuffer {
  const stamps = new Map<string, { readonly nodeUuid: string; readonly agentUrl: string; readonly at: string }>();
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    while (stamps.size > 0) {
      const batch = [...stamps.values()].slice(0, BATCH);
      for (const { nodeUuid } of batch) stamps.delete(nodeUuid);
      await store.nodes.recordHeartbeats(batch);
    }
  };
  const writeSoon = async (): Promise<void> => {
    await clock.sleep(WRITE_INTERVAL_MS, signal).catch(() => {});
    writing = undefined;
    // Times that were not written are lost; the next heartbeats bring later ones.
    await write().catch((error: unknown) => log.warn('the times of some heartbeats were not written', { reason: reasonOf(error) }));
  };

  /** When each node was checked last, the earliest first. */
  const times = new Map<string, number>();
  const waiting = new Map<string, AbortController>();
  /** Milliseconds until the node's step may be checked again. */
  const untilCheck = (nodeUuid: string): number => (times.get(nodeUuid) ?? -Infinity) + CHECK_INTERVAL_MS - clock.now();
  return {
    stamp: (nodeUuid, agentUrl) => {
      stamps.set(nodeUuid, { nodeUuid, agentUrl, at: bareTimestamp(clock.now()) });
      writing ??= writeSoon();
    },
    stepChecked: (nodeUuid) => {
      const now = clock.now();
      for (const [old, at] of times) {
        if (now - at < CHECK_INTERVAL_MS) break;
        times.delete(old);
      }
      times.delete(nodeUuid);
      times.set(nodeUuid, now);
    },
    isChecked: (nodeUuid) => waiting.has(nodeUuid) || untilCheck(nodeUuid) > 0,
    postpone: (nodeUuid, check) => {
      if (waiting.has(nodeUuid)) return true;
      const wait = untilCheck(nodeUuid);
      if (wait <= 0) return false;
      const dropped = new AbortController();
      waiting.set(nodeUuid, dropped);
      void clock
        .sleep(wait, AbortSignal.any([signal, dropped.signal]))
        .catch(() => {})
        .finally(() => {
          if (dropped.signal.aborted) return;
          waiting.delete(nodeUuid);
          if (!signal.aborted) check();
        });
      return true;
    },
    forget: (nodeUuid) => {
      times.delete(nodeUuid);
      waiting.get(nodeUuid)?.abort();
      waiting.delete(nodeUuid);
    },
    close: async () => {
      await writing;
      await write().catch(() => {});
    },
  };
}
