/**
 * Events for all listeners of this process. While there is a listener, one query polls for new events and caches the latest.
 * Listeners read the cache at their own pace. A listener that is behind the cache reads the table page by page.
 */
import type { Options } from '../../config/options';
import { reasonOf } from '../../model/errors';
import { isBehind, type EventRecord } from '../../model/events';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import type { Store } from '../../store/store';
import { createShares, shareLimits, type ShareLimits } from '../../wire/shares';
import { createTurns } from '../../wire/turns';
import { createFairTurns } from '../http/fair-turns';

interface EventPage {
  readonly events: readonly EventRecord[];
  /** The position at which the next page begins. */
  readonly reached: string;
  /** Events were removed before the listener read them. */
  readonly gap?: true;
}
export interface EventFeed {
  /** Undefined: [events]max_listeners or max_listeners_per_source is reached. */
  join(source: string): Listener | undefined;
}
interface Listener {
  /** The events after a position. Empty after [events]keep_alive_interval, or when the signal is aborted. */
  next(after: string, signal: AbortSignal): Promise<EventPage>;
  /** Resolves when the listener may write more in this turn of the event loop. */
  turn(): Promise<void>;
  leave(): void;
}

/** The number of events that a query reads, and that a listener gets in a turn of the event loop. */
const PAGE = 200;
const CACHE_SIZE = 2000;
/** How many listeners behind the cache read the table at once. The others wait. */
const CATCHING_UP: ShareLimits = { inAll: 4, ofSource: 2 };
/** The most listeners that get events in a turn of the event loop (wire/turns.ts): each filters and writes up to a page. */
const IN_A_TURN = 8;
/** The pause after a failed query. */
const RETRY_MS = 2000;

/** The events after a position, from the table. `project`: as in `Events.read`. */
export async function pageAfter(store: Store, after: string, atMost: number, project?: string): Promise<EventPage> {
  const page = await store.events.read(after, atMost, project);
  // Checked after the query: a position that is reachable now was reachable during the query.
  return (await store.events.isReachable(after)) ? page : { events: [], reached: await store.events.endPosition(), gap: true };
}

/** `ring` wakes all callers that wait in `next`. A caller also wakes when its signal is aborted. */
function createBell(): { readonly ring: () => void; readonly next: (signal: AbortSignal) => Promise<void> } {
  const wakers = new Set<() => void>();
  return {
    ring: () => [...wakers].forEach((wake) => wake()),
    next: (signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          wakers.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        wakers.add(wake);
        signal.addEventListener('abort', wake);
        if (signal.aborted) wake();
      }),
  };
}

export function createEventFeed(store: Store, clock: Clock, options: Options, log: Log, metrics: Metrics): EventFeed {
  const listeners = createShares(shareLimits(options['events.max_listeners'], options['events.max_listeners_per_source']));
  metrics.read('bloomery_event_listeners', () => [[{}, listeners.taken]]);
  /** The latest events; complete after the position `from`. Undefined: there is no listener. */
  let cache: { readonly from: string; readonly events: readonly EventRecord[]; readonly reached: string } | undefined;
  let following: AbortController | undefined;
  const batches = createBell();

  const addToCache = ({ events, reached }: EventPage): void => {
    const all = [...(cache?.events ?? []), ...events];
    const dropped = all.slice(0, -CACHE_SIZE).at(-1);
    cache = { from: dropped?.position ?? cache?.from ?? reached, events: all.slice(-CACHE_SIZE), reached };
  };
  async function follow(signal: AbortSignal): Promise<void> {
    let lastWoken = clock.now();
    while (!signal.aborted) {
      let pause = options['events.poll_interval'] * 1000;
      try {
        const page = cache ? await store.events.read(cache.reached, PAGE) : { events: [], reached: await store.events.endPosition() };
        if (signal.aborted) return;
        if (page.events.length > 0 || !cache) lastWoken = 0;
        addToCache(page);
        if (page.events.length === PAGE) pause = 0;
      } catch (error) {
        log.warn('events cannot be read', { reason: reasonOf(error) });
        pause = Math.max(pause, RETRY_MS);
      }
      if (clock.now() - lastWoken >= options['events.keep_alive_interval'] * 1000) {
        lastWoken = clock.now();
        batches.ring();
      }
      await clock.sleep(pause, signal).catch(() => {});
    }
  }
  const turn = createFairTurns({
    running: CATCHING_UP,
    waiting: { inAll: Infinity, ofSource: Infinity },
    refusal: () => new Error('too many listeners catch up'),
  });
  const nextTurn = createTurns(IN_A_TURN);
  /** Pages that are being read, by source and position: listeners at the same position share one. */
  const reading = new Map<string, Promise<EventPage>>();
  function readPage(after: string, source: string): Promise<EventPage> {
    const key = `${source} ${after}`;
    const known = reading.get(key);
    if (known) return known;
    const page = turn(source, () => pageAfter(store, after, PAGE)).finally(() => reading.delete(key));
    reading.set(key, page);
    return page;
  }
  async function next(source: string, after: string, signal: AbortSignal): Promise<EventPage> {
    if (!cache) await batches.next(signal);
    if (!cache || signal.aborted) return { events: [], reached: after };
    if (isBehind(cache.from, after)) {
      const page = await readPage(after, source);
      const isInCache = page.events.length === 0 && !page.gap && !isBehind(cache.from, page.reached);
      return isInCache ? next(source, page.reached, signal) : page;
    }
    const newer = (): readonly EventRecord[] => {
      const { events } = cache!;
      return events.slice(events.findLastIndex(({ position }) => !isBehind(position, after)) + 1);
    };
    if (newer().length === 0) await batches.next(signal);
    // The cache has moved on meanwhile: the caller reads the table next.
    if (!cache || isBehind(cache.from, after)) return { events: [], reached: after };
    const events = newer().slice(0, PAGE);
    return { events, reached: events.at(-1)?.position ?? (isBehind(cache.reached, after) ? cache.reached : after) };
  }

  return {
    join(source) {
      if (!listeners.take(source, 1)) return undefined;
      if (!following) {
        following = new AbortController();
        void follow(following.signal);
      }
      let hasJoined = true;
      return {
        async next(after, signal) {
          const page = await next(source, after, signal);
          await nextTurn();
          return page;
        },
        turn: nextTurn,
        leave() {
          if (!hasJoined) return;
          hasJoined = false;
          listeners.give(source, 1);
          if (listeners.taken > 0) return;
          following?.abort();
          following = undefined;
          cache = undefined;
        },
      };
    },
  };
}
