/**
 * What this process remembers of agents' signs of life, so that a storm of them costs little: the times of those that said nothing new are
 * written many together, and a step that was just seen running is looked at again a moment later, once.
 */
import type { Clock } from '../../model/clock';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';

export interface HeartbeatBuffer {
  /** The agent spoke and said nothing new: its time stands on the node within a second. */
  stamp(nodeUuid: string, agentUrl: string): void;
  /** A look found the running step as it was. */
  stepChecked(nodeUuid: string): void;
  /** Whether the node was seen a moment ago; then `look` is called when that moment is over, however often it was asked for. */
  postpone(nodeUuid: string, look: () => void): boolean;
  /** Writes what is left. */
  close(): Promise<void>;
}
interface Rooms {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const STAMPS_EVERY_MS = 500;
/** In one statement. */
const MOST_STAMPS = 500;
/** An agent speaks every minute or less often, and when a step is over, which follows a look so closely only by chance. */
const LOOK_EVERY_MS = 1000;

export function createHeartbeatBuffer({ store, clock, log, signal }: Rooms): HeartbeatBuffer {
  const stamps = new Map<string, { readonly nodeUuid: string; readonly agentUrl: string; readonly at: string }>();
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    while (stamps.size > 0) {
      const batch = [...stamps.values()].slice(0, MOST_STAMPS);
      for (const { nodeUuid } of batch) stamps.delete(nodeUuid);
      await store.nodes.stampBeats(batch);
    }
  };
  const writeSoon = async (): Promise<void> => {
    await clock.sleep(STAMPS_EVERY_MS, signal).catch(() => {});
    writing = undefined;
    // The agents speak again.
    await write().catch((error: unknown) => log.warn('the times of some heartbeats were not written', { reason: reasonOf(error) }));
  };

  /** When each node was seen last, the earliest first. */
  const times = new Map<string, number>();
  const waiting = new Set<string>();
  return {
    stamp: (nodeUuid, agentUrl) => {
      stamps.set(nodeUuid, { nodeUuid, agentUrl, at: bareTimestamp(clock.now()) });
      writing ??= writeSoon();
    },
    stepChecked: (nodeUuid) => {
      const now = clock.now();
      for (const [old, at] of times) {
        if (now - at < LOOK_EVERY_MS) break;
        times.delete(old);
      }
      times.delete(nodeUuid);
      times.set(nodeUuid, now);
    },
    postpone: (nodeUuid, look) => {
      if (waiting.has(nodeUuid)) return true;
      const wait = (times.get(nodeUuid) ?? -Infinity) + LOOK_EVERY_MS - clock.now();
      if (wait <= 0) return false;
      waiting.add(nodeUuid);
      void clock
        .sleep(wait, signal)
        .catch(() => {})
        .finally(() => {
          waiting.delete(nodeUuid);
          if (!signal.aborted) look();
        });
      return true;
    },
    close: async () => {
      await writing;
      await write().catch(() => {});
    },
  };
}
