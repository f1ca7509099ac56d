/** The conductor's part of recorders on running hosts: the token of a new instance, and recorders that stop reporting. */
import { createHash } from 'node:crypto';
import { apiUrlOf } from '../../drivers/agent/ramdisk';
import { wantsResidentKexec } from '../../drivers/common/kexec-request';
import { timestamp } from '../../model/clock';
import { newSecret } from '../../model/masks';
import type { JsonObject, NodeRecord } from '../../model/records';
import type { Context } from './context';

/** Rows that one statement removes. */
const BATCH = 10_000;
/** After more missed rounds the watch begins anew: the database was unreachable, or another conductor watched. */
const MISSED_ROUNDS = 3;

/** The keys in the vendor data of the config drive: of the recorder, and of the agent in the deployed system. */
const RECORDER_KEY = 'bloomery-recorder';
const RESIDENT_KEY = 'bloomery-resident';

/**
 * The parts of an instance's config drive for programs of ours in its system, with new tokens that replace earlier ones; undefined: there
 * are none.
 */
export async function recorderData({ options, random, store, connections }: Context, node: NodeRecord): Promise<JsonObject | undefined> {
  const { uuid } = node;
  const identity = async (token: string): Promise<JsonObject> => ({ url: await apiUrlOf({ connections, options }), node: uuid, token });
  const parts: Record<string, JsonObject> = {};
  if (options['recorder.enabled']) {
    const token = newSecret(random);
    await store.hardware.putToken(uuid, createHash('sha256').update(token).digest('hex'), 'deployment');
    parts[RECORDER_KEY] = { ...(await identity(token)), interval: options['recorder.interval'] };
  }
  if (wantsResidentKexec(node, options)) {
    const token = newSecret(random);
    await store.residentAgents.putToken(uuid, token, 'deployment');
    parts[RESIDENT_KEY] = await identity(token);
  }
  return Object.keys(parts).length === 0 ? undefined : parts;
}

/** When this conductor began to watch without a break, and when it checked last; milliseconds. */
export interface RecorderWatch {
  since: number;
  last: number;
}
export const recorderWatch = (): RecorderWatch => ({ since: 0, last: -Infinity });

/** Nothing is stale during the first [recorder]stale_after seconds of a watch, since reports before the watch may have been lost. */
export async function markStale({ options, clock, store, log }: Context, watch: RecorderWatch): Promise<number> {
  const now = clock.now();
  const after = options['recorder.stale_after'] * 1000;
  if (now - watch.last > MISSED_ROUNDS * options['recorder.check_interval'] * 1000) watch.since = now;
  const stale = now - watch.since < after ? 0 : await store.hardware.markStale(timestamp(now - after), options['conductor.node_history']);
  watch.last = now;
  if (stale > 0) log.warn(`${stale} recorders pushed nothing for ${options['recorder.stale_after']} s: their hardware records are stale`);
  return stale;
}

export async function trimChanges({ options, clock, store, signal }: Context): Promise<void> {
  const before = timestamp(clock.now() - options['recorder.history_max_age'] * 86_400_000);
  let gone: number;
  do gone = await store.hardware.trimChanges(before, BATCH);
  while (gone === BATCH && !signal.aborted);
}
