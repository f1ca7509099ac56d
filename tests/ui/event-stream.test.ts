/** The page's connection to the server's event stream, with an EventSource as browsers have it (WHATWG HTML §9.2). */
import { randomUUID } from 'node:crypto';
import { EventSource } from 'undici';
import { EVENT_KINDS, streamName, type EventKind } from '../../model/events';
import { listenToEvents } from '../../ui/lib/event-stream';
import { useApi } from '../support/api';
import { until } from '../support/until';

const api = useApi();
const nodes = () => api.database.store().nodes;
const opened: { readonly path: string; readonly source: EventSource }[] = [];
/** What the listener was told: `began`, `resumed`, `gap`, `lost`, and the kinds of events. */
let heard: string[] = [];
let hasPosition = false;
let listening: ReturnType<typeof listenToEvents>;
function listen(): void {
  opened.length = 0;
  heard = [];
  hasPosition = false;
  const hears = (what: string) => (): void => void heard.push(what);
  listening = listenToEvents(
    (path) => {
      const source = new EventSource(`${api.url()}/${path}`);
      opened.push({ path, source });
      source.addEventListener('start', () => (hasPosition = true));
      return source;
    },
    {
      began: hears('began'),
      resumed: hears('resumed'),
      gap: hears('gap'),
      lost: hears('lost'),
      event: ({ kind, payload }) => void heard.push(`${kind} ${(payload['last_error'] as string | undefined) ?? ''}`.trim()),
    },
  );
}
afterEach(() => listening.stop());
const began = (): Promise<void> => until('the stream', async () => heard.includes('began'));
const make = () => nodes().create({ uuid: randomUUID(), driver: 'fake-hardware' });

it('failures of nodes are events, and leave the connection open', async () => {
  const { uuid } = await make();
  listen();
  await began();
  for (const reason of ['no fan', 'no disk', 'no BMC']) await nodes().update(uuid, { last_error: reason });
  await until('the failures', async () => heard.includes('error no BMC'));
  expect(heard.filter((what) => what !== 'created')).toEqual(['began', 'error no fan', 'error no disk', 'error no BMC']);
  expect(opened).toHaveLength(1);
});

it('a lost connection resumes at its position, even if no event has come before', async () => {
  const { uuid } = await make();
  listen();
  await began();
  await until('the position', async () => hasPosition);
  opened[0]!.source.dispatchEvent(new Event('error'));
  await nodes().update(uuid, { last_error: 'meanwhile' });
  await until('the missed event', async () => heard.includes('error meanwhile'));
  expect(heard.filter((what) => !what.startsWith('created'))).toEqual(['began', 'lost', 'resumed', 'error meanwhile']);
  expect(opened[1]!.path).toMatch(/^v1\/events\/stream\?since=\d+-\d+$/);
});

it('reports a gap, and resumes after it', async () => {
  listen();
  await began();
  opened[0]!.source.dispatchEvent(new MessageEvent('gap', { data: '{"since":"1-0"}', lastEventId: '2-0' }));
  opened[0]!.source.dispatchEvent(new Event('error'));
  await until('the next connection', async () => opened.length === 2);
  expect(heard).toEqual(expect.arrayContaining(['began', 'gap', 'lost']));
  expect(opened[1]!.path).toBe('v1/events/stream?since=2-0');
});

it('no event has a name that EventSource uses itself', () => {
  const names = (Object.keys(EVENT_KINDS) as EventKind[]).map(streamName);
  expect(new Set(names).size).toBe(names.length);
  expect(names).not.toContain('error');
  expect(names).not.toContain('open');
});
