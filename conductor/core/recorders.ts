/** Recorders on running hosts, as far as conductors have to do with them: the token of a new instance, and those that fall silent. */
import { createHash } from 'node:crypto';
import { timestamp } from '../../model/clock';
import type { JsonObject, NodeRecord } from '../../model/records';
import type { Context } from './context';

const TOKEN_BYTES = 32;
/** Removed in one statement. */
const BATCH = 10_000;
/** A watch was broken off when it did not look for so many rounds: the database was away, or another conductor watched. */
const MISSED_ROUNDS = 3;

/** What the recorder on the host needs, under the name that it is found by in the vendor data of the config drive. */
const RECORDER_KEY = 'bloomery-recorder';

/**
 * What the config drive of an instance tells its recorder, with a token in the place of an earlier one; undefined: nothing is recorded here.
 */
export async function recorderData({ options, random, store }: Context, { uuid }: NodeRecord): Promise<JsonObject | undefined> {
  if (!options['recorder.enabled']) return undefined;
  const token = random(TOKEN_BYTES).toString('base64url');
  await store.hardware.putToken(uuid, createHash('sha256').update(token).digest('hex'), 'deployment');
  return {
    [RECORDER_KEY]: { url: options['service_catalog.endpoint_override'], node: uuid, token, interval: options['recorder.interval'] },
  };
}

/** Since when this conductor has looked for silence without a break, and when last; milliseconds. */
export interface RecorderWatch {
  since: number;
  last: number;
}
export const recorderWatch = (): RecorderWatch => ({ since: 0, last: -Infinity });

/** What was not heard while nobody listened is no silence: a recorder has the whole time from the beginning of the watch. */
export async function markStale({ options, clock, store, log }: Context, watch: RecorderWatch): Promise<number> {
  const now = clock.now();
  const after = options['recorder.stale_after'] * 1000;
  if (now - watch.last > MISSED_ROUNDS * options['recorder.check_interval'] * 1000) watch.since = now;
  const stale = now - watch.since < after ? 0 : await store.hardware.markStale(timestamp(now - after), options['conductor.node_history']);
  watch.last = now;
  if (stale > 0)
    log.warn(`${stale} recorders were not heard of for ${options['recorder.stale_after']} s: what is known of their hardware is stale`);
  return stale;
}

export async function trimChanges({ options, clock, store, signal }: Context): Promise<void> {
  const before = timestamp(clock.now() - options['recorder.history_max_age'] * 86_400_000);
  let gone: number;
  do gone = await store.hardware.trimChanges(before, BATCH);
  while (gone === BATCH && !signal.aborted);
}
