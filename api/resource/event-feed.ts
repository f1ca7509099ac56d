/**
 * Events for all listeners of this process: while there is one, a single query polls for new events, and the latest are cached.
 * Listeners read the cache at their own pace. A listener that is further behind reads the table page by page.
 */
import type { Options } from '../../config/options';
import { reasonOf } from '../../model/errors';
import { isBehind, type EventRecord } from '../../model/events';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import type { Store } from '../../store/store';

export type FeedOptions = Pick<Options, 'events.poll_interval' | 'events.keep_alive_interval' | 'events.max_listeners'>;
export interface EventPage {
  readonly events: readonly EventRecord[];
  /** Where the next page begins. */
  readonly reached: string;
  /** Events were removed before they could be read: what happened in between is not known. */
  readonly gap?: true;
}
export interface EventFeed {
  /** Undefined: [events]max_listeners is reached. */
  join(): Listener | undefined;
}
interface Listener {
  /** What comes after a position; empty after [events]keep_alive_interval, or when the signal is aborted. */
  next(after: string, signal: AbortSignal): Promise<EventPage>;
  leave(): void;
}

/** Events read at once, by the query for all and for those who are behind. */
const PAGE = 500;
const KEPT = 2000;
/** After a query that failed. */
const PAUSE_MS = 2000;

/** What comes after a position, by the table. */
export async function pageAfter(store: Store, after: string, atMost: number): Promise<EventPage> {
  const page = await store.events.read(after, atMost);
  // Asked afterwards: what was there then, was there while the page was read.
  return (await store.events.isReachable(after)) ? page : { events: [], reached: await store.events.endPosition(), gap: true };
}

export function createEventFeed(store: Store, clock: Clock, options: FeedOptions, log: Log, metrics: Metrics): EventFeed {
  let listeners = 0;
  metrics.read('bloomery_event_listeners', () => [[{}, listeners]]);
  /** The last events, and the position after which they are all of them; undefined: nobody follows. */
  let kept: { readonly from: string; readonly events: readonly EventRecord[]; readonly reached: string } | undefined;
  let following: AbortController | undefined;
  const waiting = new Set<() => void>();
  const wakeAll = (): void => [...waiting].forEach((wake) => wake());

  const keep = ({ events, reached }: EventPage): void => {
    const all = [...(kept?.events ?? []), ...events];
    const dropped = all.slice(0, -KEPT).at(-1);
    kept = { from: dropped?.position ?? kept?.from ?? reached, events: all.slice(-KEPT), reached };
  };
  async function follow(signal: AbortSignal): Promise<void> {
    let woken = clock.now();
    while (!signal.aborted) {
      let pause = options['events.poll_interval'] * 1000;
      try {
        const page = kept ? await store.events.read(kept.reached, PAGE) : { events: [], reached: await store.events.endPosition() };
        if (signal.aborted) return;
        if (page.events.length > 0 || !kept) woken = 0;
        keep(page);
        if (page.events.length === PAGE) pause = 0;
      } catch (error) {
        log.warn('events cannot be read', { reason: reasonOf(error) });
        pause = Math.max(pause, PAUSE_MS);
      }
      if (clock.now() - woken >= options['events.keep_alive_interval'] * 1000) {
        woken = clock.now();
        wakeAll();
      }
      await clock.sleep(pause, signal).catch(() => {});
    }
  }
  const nextBatch = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener('abort', wake);
      if (signal.aborted) wake();
    });

  async function next(after: string, signal: AbortSignal): Promise<EventPage> {
    if (!kept) await nextBatch(signal);
    if (!kept || signal.aborted) return { events: [], reached: after };
    if (isBehind(kept.from, after)) {
      const page = await pageAfter(store, after, PAGE);
      const isThere = page.events.length === 0 && !page.gap && !isBehind(kept.from, page.reached);
      return isThere ? next(page.reached, signal) : page;
    }
    const newer = (): readonly EventRecord[] => {
      const { events } = kept!;
      return events.slice(events.findLastIndex(({ position }) => !isBehind(position, after)) + 1);
    };
    if (newer().length === 0) await nextBatch(signal);
    // Behind by more than is kept, meanwhile: the table has it.
    if (!kept || isBehind(kept.from, after)) return { events: [], reached: after };
    const events = newer().slice(0, PAGE);
    return { events, reached: events.at(-1)?.position ?? (isBehind(kept.reached, after) ? kept.reached : after) };
  }

  return {
    join() {
      if (listeners >= options['events.max_listeners']) return undefined;
      listeners++;
      if (!following) {
        following = new AbortController();
        void follow(following.signal);
      }
      let here = true;
      return {
        next,
        leave() {
          if (!here) return;
          here = false;
          if (--listeners > 0) return;
          following?.abort();
          following = undefined;
          kept = undefined;
        },
      };
    },
  };
}
