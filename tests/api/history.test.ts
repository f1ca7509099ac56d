import { randomUUID } from 'node:crypto';
import { useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi();
const { database } = api;
const ask: typeof api.ask = (...request) => api.ask(...request);

async function nodeWith(events: readonly string[]): Promise<string> {
  const uuid = randomUUID();
  const { nodes, history } = database.store();
  await nodes.create({ uuid, driver: 'fake-hardware', owner: null });
  for (const event of events)
    await history.create({
      uuid: randomUUID(),
      node_uuid: uuid,
      event,
      event_type: 'cleaning',
      severity: 'ERROR',
      conductor: 'here',
      state: 'cleaning',
      target_provision_state: 'available',
      duration_seconds: 3,
    });
  return uuid;
}
const events = (body: unknown): unknown[] => (body as { history: { event: string }[] }).history.map(({ event }) => event);

it.each([
  [78, ['conductor', 'created_at', 'event', 'event_type', 'links', 'severity', 'user', 'uuid']],
  [113, ['conductor', 'created_at', 'event', 'event_type', 'links', 'project', 'severity', 'user', 'uuid']],
  [
    NEWEST,
    // prettier-ignore
    ['conductor', 'created_at', 'duration_seconds', 'event', 'event_type', 'links', 'project', 'severity', 'state', 'target_provision_state', 'user', 'uuid'],
  ],
])('shows the fields of 1.%i in a detailed list and in a single entry', async (minor, fields) => {
  const node = await nodeWith(['it broke']);
  const { status, body } = await ask('GET', `/v1/nodes/${node}/history?detail=true`, minor);
  const [entry] = (body as unknown as { history: { uuid: string }[] }).history;
  expect([status, Object.keys(entry!).sort()]).toEqual([200, fields]);
  expect((await ask('GET', `/v1/nodes/${node}/history/${entry!.uuid}`, minor)).body).toEqual(entry);
  expect(entry).toMatchObject({ event: 'it broke', event_type: 'cleaning', severity: 'ERROR', user: null });
});

it('shortens long events in a list without details', async () => {
  const node = await nodeWith(['x'.repeat(255), 'x'.repeat(256)]);
  const { body } = await ask('GET', `/v1/nodes/${node}/history`);
  expect(events(body)).toEqual(['x'.repeat(255), `${'x'.repeat(251)}...`]);
  expect(Object.keys((body as unknown as { history: object[] }).history[0]!).sort()).toEqual([
    'created_at',
    'event',
    'links',
    'severity',
    'uuid',
  ]);
});

it('returns pages with working links to the next one', async () => {
  const node = await nodeWith(['1', '2', '3']);
  await nodeWith(['of another node']);
  const first = await ask('GET', `/v1/nodes/${node}/history?limit=2&detail=true&sort_dir=desc&sort_key=id`);
  expect(events(first.body)).toEqual(['3', '2']);
  const next = new URL(first.body.next);
  const second = await ask('GET', next.pathname + next.search);
  expect(events(second.body)).toEqual(['1']);
  expect((second.body as unknown as { history: object[] }).history[0]).toHaveProperty('event_type');
});

it.each([
  ['history', 77, 404, /^$/],
  ['history?limit=0', NEWEST, 400, /^Limit must be positive$/],
  ['history?sort_key=bogus', NEWEST, 400, /^The sort_key value "bogus" is an invalid field for sorting$/],
  ['history?sort_dir=up', NEWEST, 400, /^Invalid sort direction: up\./],
  ['history?marker=x', NEWEST, 400, /^Expected UUID for marker: x$/],
  ['history?marker=aaaaaaaa-0000-4000-8000-000000000001', NEWEST, 404, /^Node history record aaaaaaaa\S+ could not be found\.$/],
  ['history/aaaaaaaa-0000-4000-8000-000000000001', NEWEST, 404, /^Node history record aaaaaaaa\S+ could not be found\.$/],
  ['history/x', NEWEST, 404, /^Node history record x could not be found\.$/],
  ['history?fields=uuid', NEWEST, 400, /^Unexpected arguments: fields$/],
  ['children', 82, 404, /^$/],
  ['children?x=1', NEWEST, 400, /^Unexpected arguments: x$/],
])('refuses %s at 1.%i', async (path, minor, status, text) => {
  const node = await nodeWith([]);
  const { status: got, fault, text: said } = await ask('GET', `/v1/nodes/${node}/${path}`, minor);
  expect([got, fault ?? said]).toEqual([status, expect.stringMatching(text)]);
});

it('lists the children of a node, as an object', async () => {
  const { nodes } = database.store();
  const parent = await nodeWith([]);
  const child = await nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', parent_node: parent });
  const { body } = await ask('GET', `/v1/nodes/${parent}/children`, 83);
  expect(body).toEqual({
    children: [child.uuid],
    links: { href: expect.stringMatching(`/v1/nodes\\?parent_node=${parent}$`) as unknown, rel: 'children' },
  });
});

it('trim() keeps the given number of newest entries of each node', async () => {
  const { history } = database.store();
  const [one, other] = [await nodeWith(['1', '2', '3', '4']), await nodeWith(['5'])];
  const before = new Date(Date.now() + 60_000).toISOString();
  expect(await history.trim({ keep: 2, before: '2000-01-01T00:00:00Z', atMost: 10 })).toBe(0);
  expect(await history.trim({ keep: 2, before, atMost: 1 })).toBeGreaterThanOrEqual(1);
  while ((await history.trim({ keep: 2, before, atMost: 10 })) > 0);
  const left = async (node: string) => (await history.list({ where: { node_uuid: node } })).map(({ event }) => event);
  expect([await left(one), await left(other)]).toEqual([['3', '4'], ['5']]);
});
