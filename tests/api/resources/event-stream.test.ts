import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { NewNode } from '../../../model/records';
import { useApi } from '../../support/api';
import { listen, type Listening } from '../../support/listen';
import { until } from '../../support/until';
import { NEWEST } from '../../support/newest';

// Open transactions of other tests on the same database server delay events.
const api = useApi();
const nodes = () => api.database.store().nodes;
const make = (more: Partial<NewNode> = {}) => nodes().create({ uuid: randomUUID(), driver: 'fake-hardware', ...more });
const open: Listening[] = [];
/** The server may not have noticed yet that the listeners of earlier tests are gone. */
async function hear(query = '', headers: Readonly<Record<string, string>> = {}): Promise<Listening> {
  let listening: Listening | undefined;
  await until('a listener', async () => {
    listening = await listen(`${api.url()}/v1/events/stream${query}`, headers);
    return listening.status !== 503;
  });
  open.push(listening!);
  return listening!;
}
/** @returns a position after all events written so far, once these are readable: a stream from there has only later events */
async function resume(): Promise<string> {
  const { uuid } = await make();
  for (;;) {
    const { events, resume: at } = (await api.ask('GET', `/v1/events?node=${uuid}`)).body as unknown as {
      events: object[];
      resume: string;
    };
    if (events.length > 0) return at;
    await delay(20);
  }
}
afterEach(async () => {
  for (const listening of open.splice(0)) await listening.stop();
});

it('the stream sends changes as they occur, and resumes after any of them', async () => {
  const listening = await hear();
  expect(listening.status).toBe(200);
  expect(listening.headers.get('content-type')).toBe('text/event-stream');
  expect(listening.headers.get('cache-control')).toBe('no-store');
  expect(listening.headers.get('x-openstack-ironic-api-version')).toBe('1.1');
  expect(listening.headers.get('openstack-request-id')).toMatch(/^req-/);
  const { uuid } = await make({ name: 'one' });
  await nodes().update(uuid, { provision_state: 'manageable' });
  await nodes().update(uuid, { power_state: 'power on' });
  const heard = await listening.next(3);
  expect(heard.map(({ event, data }) => [event, data['payload']])).toEqual([
    ['created', { driver: 'fake-hardware', provision_state: 'enroll' }],
    ['state', { provision_state: 'manageable', target_provision_state: null, previous_provision_state: 'enroll' }],
    ['power', { power_state: 'power on', target_power_state: null, previous_power_state: null }],
  ]);
  for (const { id, event, data } of heard) expect(data).toMatchObject({ id, kind: event, node_uuid: uuid, node_name: 'one' });

  const [first, second, third] = heard.map(({ id }) => id!);
  const byQuery = await hear(`?since=${first!}`);
  expect((await byQuery.next(2)).map(({ id }) => id)).toEqual([second, third]);
  await byQuery.stop();
  // The Last-Event-ID header of a browser that reconnects wins over `since` in the URL.
  const again = await hear(`?since=${first!}`, { 'last-event-id': second! });
  expect((await again.next(1)).map(({ id }) => id)).toEqual([third]);
});

it('the stream sends comments and a position to resume from while nothing happens', async () => {
  const listening = await hear();
  await listening.comment();
  expect(listening.lastId()).toMatch(/^\d+-0$/);
});

it.each([
  ['node=two', ['created two', 'state two', 'failure two', 'state two']],
  ['kind=created,error', ['created one', 'created two', 'failure two']],
  ['state=active', ['state two']],
  ['state=active&kind=state,error&node=one,two', ['failure two', 'state two']],
])('the stream and the list are filtered by %s', async (query, expected) => {
  const start = await resume();
  const [one, two] = [await make({ name: `one-${randomUUID()}` }), await make({ name: `two-${randomUUID()}` })];
  await nodes().update(two.uuid, { provision_state: 'deploying', last_error: 'no' });
  await nodes().update(two.uuid, { provision_state: 'active' });
  const chosen = query.replace('one', one.name!).replace('two', two.uuid);
  const listening = await hear(`?since=${start}&${chosen}`);
  const heard = await listening.next(expected.length);
  expect(heard.map(({ event, data }) => `${event} ${(data['node_name'] as string).split('-')[0]!}`)).toEqual(expected);
  // `GET /v1/events` returns the same events.
  const page = await api.ask('GET', `/v1/events?since=${start}&${chosen}`);
  expect(page.body['events']).toEqual(heard.map(({ data }) => data));
});

it.each([
  ['since=x', /position/],
  ['since=1-99999999999999999999', /position/],
  ['node=a b', /Invalid node: "a b"/],
  ['kind=nothing', /Invalid kind: "nothing"/],
  ['state=nothing', /Invalid state: "nothing"/],
  ['other=1', /Unexpected arguments: other/],
])('the stream and the list refuse %s', async (query, why) => {
  for (const path of ['/v1/events/stream', '/v1/events']) {
    const { status, fault } = await api.ask('GET', `${path}?${query}`);
    expect(status).toBe(400);
    expect(fault).toMatch(why);
  }
});
it('the stream refuses other media types, methods and versions', async () => {
  expect((await api.ask('GET', '/v1/events/stream', NEWEST, { headers: { accept: 'application/json' } })).status).toBe(406);
  expect((await api.ask('POST', '/v1/events/stream')).status).toBe(405);
  expect((await api.ask('HEAD', '/v1/events/stream')).status).toBe(405);
  expect((await api.ask('GET', '/v1/events/stream', 999)).status).toBe(406);
  expect((await api.ask('GET', '/v1/events', NEWEST, { headers: { accept: 'text/html' } })).status).toBe(406);
});

it('the stream refuses more listeners than [events]max_listeners', async () => {
  const first = await hear();
  const second = await hear();
  const refused = await api.ask('GET', '/v1/events/stream');
  expect([first.status, second.status, refused.status]).toEqual([200, 200, 503]);
  expect(refused.fault).toContain('[events]max_listeners');
  await second.stop();
  expect((await hear()).status).toBe(200);
});

it('the stream reports a gap to a listener whose position is gone, and continues with new events', async () => {
  const start = await resume();
  for (let index = 0; index < 3; index++) await make();
  await api.database.store().events.trim({ keep: 0, before: '2100-01-01T00:00:00Z', atMost: 1000 });
  for (const since of [start, '999999999999-1']) {
    const page = (await api.ask('GET', `/v1/events?since=${since}`)).body;
    expect(page).toMatchObject({ events: [], gap: true, more: false });
    const listening = await hear(`?since=${since}`);
    const [gap] = await listening.next(1);
    expect(gap).toMatchObject({ event: 'gap', data: { since } });
    const { uuid } = await make();
    const later = await listening.next(1);
    expect(later[0]!.data).toMatchObject({ kind: 'created', node_uuid: uuid });
    await listening.stop();
  }
});

it('the list returns events in pages', async () => {
  const start = await resume();
  const made = [await make(), await make(), await make()];
  let page;
  const found: string[] = [];
  let since = start;
  for (let tries = 0; found.length < 3 && tries < 500; tries++) {
    page = (await api.ask('GET', `/v1/events?since=${since}&limit=2`)).body;
    found.push(...(page['events'] as { node_uuid: string }[]).map(({ node_uuid: uuid }) => uuid));
    since = page['resume'] as string;
  }
  expect(found).toEqual(made.map(({ uuid }) => uuid));
});

it('the stream sends thousands of past events in order and without gaps', async () => {
  const start = await resume();
  await api.database.query(
    `INSERT INTO events (at, node_uuid, kind, payload)
     SELECT now(), '${randomUUID()}', 'progress', json_build_object('done', n) FROM generate_series(1, 6000) AS n ORDER BY n`,
  );
  const listening = await hear(`?since=${start}&kind=progress`);
  const heard = await listening.next(6000);
  expect(heard.map(({ data }) => (data['payload'] as { done: number }).done)).toEqual(
    Array.from({ length: 6000 }, (_, index) => index + 1),
  );
});

it('the stream frees the place of a client that disconnects', async () => {
  const { port } = new URL(api.url());
  const socket = connect(Number(port), '127.0.0.1');
  socket.write('GET /v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  const listeners = [await hear(), await hear()];
  expect(listeners.map(({ status }) => status)).toEqual([200, 200]);
});
