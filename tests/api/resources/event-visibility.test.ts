/** Which events a stream shows to projects, and that it ends when its caller has no access any more. */
import { Unauthenticated } from '../../../api/http/errors';
import type { Sink, Stream } from '../../../api/http/streaming';
import type { ApiContext, Request } from '../../../api/pipeline/handler';
import { eventStreamHandlers } from '../../../api/resources/event-stream';
import { streamName, type EventKind, type EventRecord } from '../../../model/events';
import { silentLog } from '../../../model/log';
import { NOBODY, type Caller } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { testClock } from '../../support/clock';
import { optionsOf } from '../../support/options';

const reader = (project: string): Caller => ({ ...NOBODY, user: 'u', roles: ['reader'], project });
const event = (number: number, kind: EventKind): EventRecord => ({
  position: `7-${number}`,
  at: '2026-03-01T00:00:00+00:00',
  node_uuid: 'n',
  node_name: null,
  owner: 'red',
  lessee: 'blue',
  kind,
  payload: { last_error: 'secret' },
});

/** The kinds of events that a stream shows. It gets one event of each kind, after `wait` seconds each. */
async function kindsShown(
  caller: Caller,
  kinds: readonly EventKind[],
  identify: () => Promise<Caller>,
  wait: number,
): Promise<readonly string[]> {
  const clock = testClock();
  const stopping = new AbortController();
  let text = '';
  const sink: Sink = {
    signal: stopping.signal,
    write: async (more) => void (text += more),
    end: async (more) => void (text += more),
  };
  const events = kinds.map((kind, index) => event(index + 1, kind));
  const listener = {
    next: async (after: string) => {
      await clock.advance(wait);
      const next = events.shift();
      if (!next) stopping.abort();
      return { events: next ? [next] : [], reached: next?.position ?? after };
    },
    leave: () => {},
  };
  const request = {
    query: {},
    caller,
    permission: { policy: null, isGranted: true },
    headers: {},
    path: '/v1/events/stream',
    source: 's',
  } as unknown as Request;
  const context = {
    clock,
    log: silentLog,
    options: optionsOf({}),
    feed: { join: () => listener },
    store: { events: { endPosition: async () => '7-0', isReachable: async () => true } },
    auth: { identify, ...createEnforcer(optionsOf({})) },
  } as unknown as ApiContext;
  const { stream } = (await eventStreamHandlers.streamEvents(request, context)) as { stream?: Stream };
  await stream!(sink);
  return [...text.matchAll(/^event: (\w+)$/gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== 'start' && (name !== 'end' || !stopping.signal.aborted));
}
const KINDS = ['state', 'error', 'hardware', 'recorder', 'power'] as const;

it.each<[string, string, readonly EventKind[]]>([
  ['the owner', 'red', KINDS],
  ['the lessee', 'blue', ['state', 'power']],
  ['another project', 'green', []],
])('the stream shows to %s the events that it may read', async (_, project, expected) => {
  const caller = reader(project);
  expect(await kindsShown(caller, KINDS, async () => caller, 1)).toEqual(expected.map(streamName));
});

const refusal = (status: number) => async (): Promise<Caller> => {
  throw new Unauthenticated(status, 'no');
};
it.each<[string, () => Promise<Caller>, readonly string[]]>([
  ['ends when the token is not valid any more', refusal(401), ['state', 'end']],
  ['ends when the caller has lost its role', async () => ({ ...reader('red'), roles: [] }), ['state', 'end']],
  ['shows what the caller may see now', async () => reader('green'), ['state']],
  ['continues while tokens cannot be checked', refusal(503), ['state', 'power', 'state']],
])('the stream %s', async (_, identify, expected) => {
  expect(await kindsShown(reader('red'), ['state', 'power', 'state'], identify, 20)).toEqual(expected);
});
