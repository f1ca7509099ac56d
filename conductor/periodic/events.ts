/** Removes old events. Clients that reconnect need recent events only. */
import { timestamp } from '../../model/clock';
import type { Context } from '../core/context';

/** Rows per statement. */
const BATCH = 10_000;

export async function trimEvents({ options, clock, store, signal }: Context): Promise<void> {
  const before = timestamp(clock.now() - options['events.max_age'] * 1000);
  let gone: number;
  do gone = await store.events.trim({ keep: options['events.max_events'], before, atMost: BATCH });
  while (gone === BATCH && !signal.aborted);
}
