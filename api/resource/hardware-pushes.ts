/**
 * What this process remembers of recorders' pushes: that all is as it was is written many together, each second; a process that is killed
 * in between loses only that the records are a second younger. And how often each came in the last minute.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Options } from '../../config/options';
import { timestamp, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics, Sample } from '../../model/metrics';
import type { HardwareToken, HardwareUnchanged, Store } from '../../store/store';

const WRITE_EVERY_MS = 1000;
/** In one statement. */
const MOST_SIGNS = 1000;
const MINUTE_MS = 60_000;
/** What is told to scrapes is not asked for again within so long. */
const COUNTS_FRESH_MS = 5000;

export interface HardwarePushes {
  /** The node's row, when the token is its own. */
  authenticate(nodeUuid: string, token: string): Promise<HardwareToken | undefined>;
  /** Whether the node may push once more; counts it. */
  mayPush(nodeUuid: string): boolean;
  /** Written within a second. */
  sign(nodeUuid: string, digest: string, bootId: string | null): void;
}
interface Given {
  readonly store: Pick<Store, 'hardware'>;
  readonly clock: Clock;
  readonly options: Options;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}

/** What is kept of a token. It is random and long: it needs no salt, and no slow hash. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');
/** In constant time, so that answers do not tell how much of a guess was right. */
const isSame = (hash: string, other: string): boolean =>
  hash.length === other.length && timingSafeEqual(Buffer.from(hash), Buffer.from(other));

function measure({ store, clock, metrics }: Given): void {
  let kept: { readonly until: number; readonly samples: Promise<readonly Sample<'bloomery_recorder_nodes'>[]> } | undefined;
  const ask = async (): Promise<readonly Sample<'bloomery_recorder_nodes'>[]> => {
    const { fresh, stale } = await store.hardware.counts();
    return [
      [{ state: 'fresh' }, fresh],
      [{ state: 'stale' }, stale],
    ];
  };
  metrics.read('bloomery_recorder_nodes', () => {
    if (kept && kept.until > clock.now()) return kept.samples;
    const samples = ask();
    kept = { until: clock.now() + COUNTS_FRESH_MS, samples };
    samples.catch(() => (kept = undefined));
    return samples;
  });
}

export function createHardwarePushes(given: Given): HardwarePushes {
  const { store, clock, options, log, signal } = given;
  if (options['recorder.enabled']) measure(given);

  const signs = new Map<string, HardwareUnchanged>();
  let writing = false;
  const write = async (): Promise<void> => {
    while (signs.size > 0) {
      const batch = [...signs.values()].slice(0, MOST_SIGNS);
      for (const { nodeUuid } of batch) signs.delete(nodeUuid);
      await store.hardware.recordUnchanged(batch, options['conductor.node_history']);
    }
  };
  const writeSoon = async (): Promise<void> => {
    writing = true;
    await clock.sleep(WRITE_EVERY_MS, signal).catch(() => {});
    writing = false;
    // They come again.
    await write().catch((error: unknown) =>
      log.warn('the times of some records of hardware were not written', { reason: reasonOf(error) }),
    );
  };

  let minute = { until: -Infinity, counts: new Map<string, number>() };
  return {
    async authenticate(nodeUuid, token) {
      const hash = hashToken(token);
      const door = await store.hardware.findToken(nodeUuid);
      return door?.token_hash != null && isSame(door.token_hash, hash) ? door : undefined;
    },
    mayPush(nodeUuid) {
      if (clock.now() >= minute.until) minute = { until: clock.now() + MINUTE_MS, counts: new Map() };
      const count = (minute.counts.get(nodeUuid) ?? 0) + 1;
      minute.counts.set(nodeUuid, count);
      return count <= options['recorder.max_pushes_per_minute'];
    },
    sign(nodeUuid, digest, bootId) {
      signs.set(nodeUuid, { nodeUuid, digest, bootId, at: timestamp(clock.now()) });
      if (!writing) void writeSoon();
    },
  };
}
