/** GET /v1/events/stream and GET /v1/events: events of nodes, as server-sent events and as pages. Extensions. */
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import { EVENT_KINDS, isPosition, streamName, type EventKind, type EventRecord } from '../../model/events';
import { isLogicalName, isUuid } from '../../model/idents';
import type { Operations } from '../schema/operations';
import { STATES } from '../../model/states';
import { projectOfList } from '../pipeline/access';
import { pageAfter } from '../pipeline/event-feed';
import type { OperationTypes, Request, SomeHandlers, ApiContext } from '../pipeline/handler';
import { Unauthenticated } from '../http/errors';
import type { Sink } from '../http/streaming';
import { targetOf } from '../http/target';

/** `node`, `kind` and `state` are lists with commas. */
type EventQuery = Operations['listEvents']['query'];
type EventRequest = Request<OperationTypes & { readonly query: EventQuery }>;
/** The items of a comma-separated list; undefined if it is absent. */
function wordsOf(name: keyof EventQuery, text: string | undefined, isRight: (word: string) => boolean): readonly string[] | undefined {
  const words = text?.split(',').map((word) => word.trim());
  const wrong = words?.find((word) => !isRight(word));
  if (wrong !== undefined) throw invalidParameter(`Invalid ${name}: "${wrong}"`);
  return words;
}

/** The policies that these kinds of events need besides `node:get`. Everybody who sees the node sees what events of other kinds show. */
const POLICIES: Readonly<Partial<Record<EventKind, string>>> = {
  error: 'node:get:last_error',
  hardware: 'node:hardware:get',
  health: 'node:health:machine',
  recorder: 'node:hardware:get',
};

/** The filter of the request, and of the events that the caller may see. */
function filterOf(
  { query: filter, caller }: Pick<EventRequest, 'query' | 'caller'>,
  { auth }: ApiContext,
): (event: EventRecord) => boolean {
  const nodes = wordsOf('node', filter.node, (word) => isUuid(word) || isLogicalName(word));
  const states = wordsOf('state', filter.state, (word) => Object.hasOwn(STATES, word));
  const kinds = wordsOf('kind', filter.kind, (word) => Object.hasOwn(EVENT_KINDS, word)) ?? (states ? ['state'] : undefined);
  return ({ node_uuid: uuid, node_name: name, owner, lessee, kind, payload }) =>
    (!nodes || nodes.includes(uuid) || (name !== null && nodes.includes(name))) &&
    (!kinds || kinds.includes(kind)) &&
    (!states || kind !== ('state' satisfies EventKind) || states.includes(String(payload['provision_state']))) &&
    auth.allowed(caller, 'node:get', { owner, lessee }) &&
    (POLICIES[kind] === undefined || auth.allowed(caller, POLICIES[kind], { owner, lessee }));
}

/** The start position. The header of a reconnecting browser wins, because its URL does not change. */
function sinceOf({ query, headers }: EventRequest): string | undefined {
  const since = headers['last-event-id'] ?? query.since;
  if (since === undefined || since === '') return undefined;
  if (typeof since !== 'string' || !isPosition(since)) throw invalidParameter('The position is not one of this stream');
  return since;
}

const shown = ({ position, at, kind, node_uuid, node_name, payload }: EventRecord): object => ({
  id: position,
  at,
  kind,
  node_uuid,
  node_name,
  payload,
});
/** One event in the stream (WHATWG HTML §9.2.6). JSON text contains no line breaks. */
const framed = (id: string | undefined, event: string, data: object): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Text of the events in memory: all listeners get the same. */
const frames = new WeakMap<EventRecord, string>();
function framedEvent(event: EventRecord): string {
  let text = frames.get(event);
  if (text === undefined) {
    text = framed(event.position, streamName(event.kind), shown(event));
    frames.set(event, text);
  }
  return text;
}

/** Characters that are written before the client has read them. A client that reads nothing takes about this much memory. */
const WRITTEN_AT_ONCE = 64 * 1024;
function* framedTogether(events: readonly EventRecord[]): Generator<string> {
  let text = '';
  for (const event of events) {
    text += framedEvent(event);
    if (text.length < WRITTEN_AT_ONCE) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** The reconnection time of clients, in milliseconds. */
const RETRY_MS = 2000;

function reasonToEnd(error: unknown): string {
  if (error instanceof Unauthenticated) return 'The credentials of the request are not valid any more.';
  return error instanceof Fault ? error.message : 'Events cannot be sent now.';
}

/** A token may expire, and a role may be taken away, while the stream is open. */
const IDENTIFY_EVERY_MS = 30_000;
/**
 * The filter for the caller as it is now.
 * @returns undefined: it cannot be checked now
 * @throws Unauthenticated, Fault HTTPForbidden
 */
async function currentFilter(request: EventRequest, context: ApiContext): Promise<((event: EventRecord) => boolean) | undefined> {
  const { headers, path, source } = request;
  try {
    const caller = await context.auth.identify(headers, targetOf(path).bare, 'GET', source);
    projectOfList({ ...request, caller }, context, 'node');
    return filterOf({ ...request, caller }, context);
  } catch (error) {
    if (error instanceof Unauthenticated && error.status === 503) return undefined;
    throw error;
  }
}

async function listen(request: EventRequest, context: ApiContext) {
  projectOfList(request, context, 'node');
  let isWanted = filterOf(request, context);
  const since = sinceOf(request);
  const listener = context.feed.join(request.source);
  if (!listener)
    throw new Fault('TemporaryFailure', {
      message: 'The limit [events]max_listeners or max_listeners_per_source is reached.',
    });
  const { store, clock, options, log } = context;
  const stream = async (sink: Sink): Promise<void> => {
    const reportGap = (from: string, at: string): Promise<void> =>
      sink.write(framed(at, 'gap', { since: from, reason: 'Events after this position are not kept any more.' }));
    const writeTogether = async (events: readonly EventRecord[]): Promise<void> => {
      let isFirst = true;
      for (const text of framedTogether(events)) {
        if (!isFirst) await listener.turn();
        isFirst = false;
        await sink.write(text);
      }
    };
    try {
      let at = since ?? (await store.events.endPosition());
      await sink.write(`retry: ${RETRY_MS}\n${framed(at, 'start', { position: at })}`);
      if (since !== undefined && !(await store.events.isReachable(since))) {
        at = await store.events.endPosition();
        await reportGap(since, at);
      }
      let lastWrite = clock.now();
      let identifiedAt = clock.now();
      while (!sink.signal.aborted) {
        const { events, reached, gap } = await listener.next(at, sink.signal);
        if (sink.signal.aborted) break;
        if (gap) await reportGap(at, reached);
        at = reached;
        if (clock.now() - identifiedAt >= IDENTIFY_EVERY_MS) {
          isWanted = (await currentFilter(request, context)) ?? isWanted;
          identifiedAt = clock.now();
        }
        const shownEvents = events.filter(isWanted);
        const isQuiet = shownEvents.length === 0 && clock.now() - lastWrite >= options['events.keep_alive_interval'] * 1000;
        // A position without an event, so that a listener without events does not fall behind the retention.
        if (isQuiet) await sink.write(`: alive\nid: ${at}\n\n`);
        else if (shownEvents.length > 0) await writeTogether(shownEvents);
        else continue;
        lastWrite = clock.now();
      }
      await sink.end(framed(undefined, 'end', { reason: 'The server stops.' }));
    } catch (error) {
      if (sink.signal.aborted) return;
      log.warn('an event stream was closed', { reason: reasonOf(error) });
      await sink.end(framed(undefined, 'end', { reason: reasonToEnd(error) }));
    } finally {
      listener.leave();
    }
  };
  return { status: 200, stream };
}

export const eventStreamHandlers = {
  streamEvents: listen,
  listEvents: async (request, context) => {
    const isWanted = filterOf(request, context);
    const maxLimit = context.options['api.max_limit'];
    const limit = Math.min(request.query.limit || maxLimit, maxLimit);
    if (limit < 0) throw invalidParameter('Limit must be positive');
    const since = sinceOf(request);
    const project = projectOfList(request, context, 'node');
    const { store } = context;
    const page = since === undefined ? await store.events.read('0-0', limit, project) : await pageAfter(store, since, limit, project);
    const { events, reached, gap = false } = { gap: undefined, ...page };
    const body = { events: events.filter(isWanted).map(shown), resume: reached, more: events.length === limit, gap };
    return { status: 200, body };
  },
} satisfies SomeHandlers;
