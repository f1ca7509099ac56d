/** Counts the nodes by state each minute, for the page's picture of the last day. */
import { timestamp } from '../../model/clock';
import { STATE_COUNTS_KEPT_MS } from '../../model/records';
import type { Context } from '../core/context';

export async function recordStateCounts({ clock, store }: Context): Promise<void> {
  const now = clock.now();
  await store.stateCounts.record(timestamp(now), timestamp(now - STATE_COUNTS_KEPT_MS));
}
