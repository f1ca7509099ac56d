/**
 * The pushes of recorders to this process. Pushes of an unchanged record are written in batches, once a second. A process that is killed
 * before it writes loses only the timestamps of the last second. Also limits the pushes of each node per minute.
 */
import { createHash } from 'node:crypto';
import type { Options } from '../../config/options';
import { timestamp, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { measureRows, type Metrics } from '../../model/metrics';
import { isSameSecret } from '../../model/masks';
import type { HardwareToken, HardwareUnchanged, Store } from '../../store/store';

const WRITE_EVERY_MS = 1000;
/** Rows of one statement. */
const BATCH = 1000;
const MINUTE_MS = 60_000;

export interface HardwarePushes {
  /** The node's row if the token belongs to the node. */
  authenticate(nodeUuid: string, token: string): Promise<HardwareToken | undefined>;
  /** Counts a push. Returns whether it is within the node's limit. */
  mayPush(nodeUuid: string): boolean;
  /** Records a push of an unchanged record; written within a second. */
  sign(unchanged: Omit<HardwareUnchanged, 'at'>): void;
}
interface PushServices {
  readonly store: Pick<Store, 'hardware'>;
  readonly clock: Clock;
  readonly options: Options;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}

/** The stored hash of a token. A token is long and random, so it needs neither a salt nor a slow hash. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');
export function createHardwarePushes({ store, clock, options, log, metrics, signal }: PushServices): HardwarePushes {
  if (options['recorder.enabled'])
    measureRows('bloomery_recorder_nodes', clock, metrics, async () => {
      const { fresh, stale } = await store.hardware.counts();
      return [
        [{ state: 'fresh' }, fresh],
        [{ state: 'stale' }, stale],
      ];
    });

  const signs = new Map<string, HardwareUnchanged>();
  let writing = false;
  const write = async (): Promise<void> => {
    while (signs.size > 0) {
      const batch = [...signs.values()].slice(0, BATCH);
      for (const { nodeUuid } of batch) signs.delete(nodeUuid);
      await store.hardware.recordUnchanged(batch, options['conductor.node_history']);
    }
  };
  const writeSoon = async (): Promise<void> => {
    writing = true;
    await clock.sleep(WRITE_EVERY_MS, signal).catch(() => {});
    writing = false;
    // The next pushes write the timestamps again.
    await write().catch((error: unknown) =>
      log.warn('the times of some records of hardware were not written', { reason: reasonOf(error) }),
    );
  };

  let minute = { until: -Infinity, counts: new Map<string, number>() };
  return {
    async authenticate(nodeUuid, token) {
      const hash = hashToken(token);
      const door = await store.hardware.findToken(nodeUuid);
      return door?.token_hash != null && isSameSecret(door.token_hash, hash) ? door : undefined;
    },
    mayPush(nodeUuid) {
      if (clock.now() >= minute.until) minute = { until: clock.now() + MINUTE_MS, counts: new Map() };
      const count = (minute.counts.get(nodeUuid) ?? 0) + 1;
      minute.counts.set(nodeUuid, count);
      return count <= options['recorder.max_pushes_per_minute'];
    },
    sign(unchanged) {
      signs.set(unchanged.nodeUuid, { ...unchanged, at: timestamp(clock.now()) });
      if (!writing) void writeSoon();
    },
  };
}
