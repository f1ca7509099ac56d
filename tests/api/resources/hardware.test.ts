/** What recorders push, and which changes the API shows. */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { request as httpRequest } from 'node:http';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi({
  'recorder.max_pushes_per_minute': 8,
  'recorder.max_record_size': 64,
  'recorder.history_max_entries': 3,
});
const { database } = api;
const ask: typeof api.ask = (...call) => api.ask(...call);
let node: string;
let token: string;
const disk = (serial: string, more: object = {}) => ({ name: '/dev/sda', serial, size: 1000, model: 'M', ...more });
const hardware = (...disks: object[]) => ({ disks, interfaces: [{ mac_address: '52:54:00:00:00:01' }], cpu: { count: 8 } });
const push = (body: object | string, headers: Record<string, string> = {}) =>
  ask('PUT', `/v1/nodes/${node}/hardware`, NEWEST, { body, headers: { 'X-Recorder-Token': token, ...headers } });
const changes = async (query = '') => {
  const { body } = await ask('GET', `/v1/nodes/${node}/hardware/changes${query}`);
  return (body['changes'] as readonly Record<string, unknown>[]).map(({ kind, component, key }) => [kind, component, key]);
};

beforeEach(async () => {
  await database.clear();
  ({ uuid: node } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', name: 'one' }));
  token = (await ask('POST', `/v1/nodes/${node}/hardware/token`)).body['token'] as string;
});

it('stores the latest record, and accepts its digest alone as a push', async () => {
  expect((await ask('GET', `/v1/nodes/${node}/hardware`)).status).toBe(404);
  const given = { hardware: hardware(disk('A')), boot_id: '0d5a' };
  const { status, body } = await push(given);
  expect(status).toBe(200);
  const digest = body['digest'] as string;
  const shown = await ask('GET', '/v1/nodes/one/hardware');
  expect(shown.body).toMatchObject({ node_uuid: node, hardware: given.hardware, boot_id: '0d5a', stale: false, age: 0, digest });
  expect(shown.body['token']).toMatchObject({ from: 'operator' });
  expect((await push({ digest })).status).toBe(200);
  expect(await push({ digest: 'f'.repeat(64) })).toMatchObject({
    status: 409,
    fault: expect.stringContaining('push the hardware') as unknown,
  });
  expect(await changes()).toEqual([]);
});

it('lists the latest records of all nodes, with a tag that changes only with a record or its staleness', async () => {
  const list = (query = '', tag?: string) =>
    ask('GET', `/v1/hardware${query}`, NEWEST, { headers: tag === undefined ? {} : { 'If-None-Match': tag } });
  const first = await list();
  expect(first).toMatchObject({ status: 200, body: { hardware: [] } });
  const { body } = await push({ hardware: hardware(disk('A')) });
  const tag = String(first.headers['etag']);
  const second = await list('', tag);
  expect(second.body['hardware']).toMatchObject([
    { node_uuid: node, node_name: 'one', digest: body['digest'], boot_id: null, age: 0, stale: false },
  ]);
  const now = String(second.headers['etag']);
  expect(now).toMatch(/^W\/"[\w-]{22}"$/);
  await database.query(`UPDATE hardware SET received_at = received_at - interval '1 hour'`);
  expect(await list('', now)).toMatchObject({ status: 304, text: '', headers: { etag: now } });
  await database.query('UPDATE hardware SET stale = true');
  const stale = await list('', now);
  expect(stale.body['hardware']).toMatchObject([{ stale: true }]);
  expect((stale.body['hardware'] as readonly { readonly age: number }[])[0]!.age).toBeGreaterThanOrEqual(3600);
  await push({ hardware: hardware(disk('B')) });
  expect((await list('', now)).status).toBe(200);
});
it('lists records in pages, in the order of the nodes', async () => {
  const store = database.store();
  const uuids = [node, ...Array.from({ length: 2 }, () => randomUUID())].sort();
  for (const uuid of uuids.filter((other) => other !== node)) await store.nodes.create({ uuid, driver: 'fake-hardware' });
  for (const uuid of uuids) {
    await store.hardware.putToken(uuid, 'hash', 'operator');
    await store.hardware.put(uuid, { digest: 'd', record: Buffer.from(''), bootId: null }, false);
  }
  const page = await ask('GET', '/v1/hardware?limit=2');
  const listed = (body: Readonly<Record<string, unknown>>) =>
    (body['hardware'] as readonly { readonly node_uuid: string }[]).map(({ node_uuid: uuid }) => uuid);
  expect(listed(page.body)).toEqual(uuids.slice(0, 2));
  const next = await ask('GET', page.body.next.slice(page.body.next.indexOf('/v1/')));
  expect(listed(next.body)).toEqual(uuids.slice(2));
  expect(next.body.next).toBeUndefined();
  expect(await ask('GET', '/v1/hardware?marker=x')).toMatchObject({ status: 400, fault: expect.stringContaining('marker') as unknown });
  expect((await ask('GET', '/v1/hardware?limit=0')).status).toBe(400);
});

it('records changes as rows, as an event and as an entry in the history', async () => {
  await push({ hardware: hardware(disk('A'), disk('B')) });
  await push({ hardware: hardware(disk('A', { size: 2000 }), disk('C')) });
  expect(await changes()).toEqual([
    ['changed', 'disk', 'A'],
    ['vanished', 'disk', 'B'],
    ['appeared', 'disk', 'C'],
  ]);
  expect(await changes('?kind=appeared,vanished&component=disk')).toEqual([
    ['vanished', 'disk', 'B'],
    ['appeared', 'disk', 'C'],
  ]);
  expect(await changes(`?since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  const page = await ask('GET', `/v1/hardware/changes?since=2020-01-01T00:00:00Z&limit=2`);
  expect(page.body['changes']).toHaveLength(2);
  const next = await ask('GET', page.body.next.slice(page.body.next.indexOf('/v1/')));
  expect(next.body['changes']).toMatchObject([
    { node_uuid: node, node_name: 'one', key: 'C', before: null, after: { serial: 'C', size: 1000 } },
  ]);
  expect(next.body.next).toBeUndefined();
  expect(await database.query(`SELECT kind, payload FROM events WHERE kind = 'hardware'`)).toMatchObject([
    { payload: { source: 'recorder', count: 3, changes: [{ kind: 'changed', component: 'disk', key: 'A' }, {}, {}] } },
  ]);
  const history = await ask('GET', `/v1/nodes/${node}/history?detail=true`);
  expect(history.body['history']).toMatchObject([
    { event_type: 'hardware', event: 'Hardware of the running host: disk A changed: size 1000 → 2000; disk B vanished; disk C appeared' },
    { event_type: 'health', event: 'Health, critical: disk B is not there any more' },
  ]);
  expect((await ask('GET', `/v1/nodes/${node}/health`)).body).toMatchObject({
    health: 'critical',
    alerts: [{ source: 'hardware', rule: 'drive_lost', subject: 'disk B', severity: 'critical' }],
  });
  // Only so many changes of one node are kept.
  await push({ hardware: hardware(disk('C')) });
  expect(await changes()).toEqual([
    ['vanished', 'disk', 'B'],
    ['appeared', 'disk', 'C'],
    ['vanished', 'disk', 'A'],
  ]);
});

it.each<readonly [string, () => object, () => Record<string, string>, number]>([
  ['no token', () => ({ hardware: hardware() }), () => ({ 'X-Recorder-Token': '' }), 403],
  ['another token', () => ({ hardware: hardware() }), () => ({ 'X-Recorder-Token': 'x'.repeat(43) }), 403],
  ['an empty push', () => ({}), () => ({}), 400],
  ['a push of something else', () => ({ inventory: {} }), () => ({}), 400],
  ['a push that is not an object', () => [], () => ({}), 400],
  ['disks of another type', () => ({ hardware: { disks: {}, interfaces: [] } }), () => ({}), 400],
  ['no interfaces', () => ({ hardware: { disks: [] } }), () => ({}), 400],
  ['a disk of another type', () => ({ hardware: { disks: ['sda'], interfaces: [] } }), () => ({}), 400],
  ['an invalid digest', () => ({ digest: 'abc' }), () => ({}), 400],
  [
    'a push that is nested too deeply',
    () => ({ hardware: { ...hardware(), x: JSON.parse('['.repeat(40) + ']'.repeat(40)) as object } }),
    () => ({}),
    400,
  ],
  ['a push that is too large', () => ({ hardware: hardware(disk('x'.repeat(70_000))) }), () => ({}), 413],
  ['a push that is not compressed as its header says', () => ({ hardware: hardware() }), () => ({ 'Content-Encoding': 'gzip' }), 400],
])('refuses %s, and stores nothing', async (_, body, headers, status) => {
  expect((await push(body(), headers())).status).toBe(status);
  expect((await ask('GET', `/v1/nodes/${node}/hardware`)).status).toBe(404);
});

/** @param body the bytes as they are sent */
const packed = (body: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'x-recorder-token': token };
    const sent = httpRequest(`${api.url()}/v1/nodes/${node}/hardware`, { method: 'PUT', headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode!));
    });
    sent.on('error', reject).end(body);
  });
it('accepts a gzip push unless it is too large when unpacked', async () => {
  expect(await packed(gzipSync(JSON.stringify({ hardware: hardware(disk('A')) })))).toBe(200);
  expect(await packed(gzipSync(JSON.stringify({ hardware: hardware(disk('x'.repeat(70_000))) })))).toBe(413);
  expect((await ask('GET', `/v1/nodes/${node}/hardware`)).body['hardware']).toEqual(hardware(disk('A')));
});

it('accepts only the latest token of the node itself, until that is revoked', async () => {
  const { uuid: other } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  const body = { hardware: hardware() };
  const headers = { 'X-Recorder-Token': token };
  for (const ident of [other, 'one', randomUUID()])
    expect((await ask('PUT', `/v1/nodes/${ident}/hardware`, NEWEST, { body, headers })).status).toBe(403);
  const old = token;
  token = (await ask('POST', `/v1/nodes/${node}/hardware/token`)).body['token'] as string;
  expect((await push(body, { 'X-Recorder-Token': old })).status).toBe(403);
  expect((await push(body)).status).toBe(200);
  expect(JSON.stringify(await database.query('SELECT * FROM hardware'))).not.toContain(token);
  expect((await ask('DELETE', `/v1/nodes/${node}/hardware/token`)).status).toBe(204);
  expect((await push(body)).status).toBe(403);
  expect((await ask('GET', `/v1/nodes/${node}/hardware`)).body).toMatchObject({ token: null, hardware: body.hardware });
});

it('limits the pushes of a node per minute', async () => {
  const statuses = [];
  for (let index = 0; index < 9; index++) statuses.push((await push({ hardware: hardware() })).status);
  expect(statuses).toEqual([...Array.from({ length: 8 }, () => 200), 429]);
});

it('lists changes since a time, in the format of the list and in other ISO 8601 formats', async () => {
  await push({ hardware: hardware() });
  await push({ hardware: hardware(disk('A')) });
  const { body } = await ask('GET', `/v1/nodes/${node}/hardware/changes`);
  const [{ at } = { at: '' }] = body['changes'] as readonly { at: string }[];
  expect(at).toMatch(/\+00:00$/);
  const zoneless = at.replace('+00:00', '');
  for (const since of [at, encodeURIComponent(at), zoneless, `${zoneless}Z`, at.slice(0, 10), '2020-01-01T00:00'])
    expect(await changes(`?since=${since}`)).toHaveLength(1);
  const later = new Date(Date.parse(at) + 60_000).toISOString();
  for (const since of [later, later.replace('Z', ''), later.replace('Z', '+00:00')]) expect(await changes(`?since=${since}`)).toEqual([]);
});

it.each([
  ['kind=new', 'Unknown kind new: use appeared, vanished, changed.'],
  ['component=fan', expect.stringContaining('Unknown component fan') as unknown],
  ['since=5', 'Expected a timestamp (ISO 8601) for since: 5'],
  ['since=2026-02-30', 'Expected a timestamp (ISO 8601) for since: 2026-02-30'],
  ['since=2026-13-01', 'Expected a timestamp (ISO 8601) for since: 2026-13-01'],
  ['since=', 'Expected a timestamp (ISO 8601) for since: '],
  ['since=yesterday', 'Expected a timestamp (ISO 8601) for since: yesterday'],
  ['since=%2B275760-09-13', expect.stringContaining('Expected a timestamp') as unknown],
  ['limit=0', 'Limit must be positive'],
  ['marker=x', 'Expected an integer for marker: x'],
  ['marker=99999999999999999999', expect.stringContaining('marker') as unknown],
])('refuses to list changes by %s', async (query, fault) => {
  expect(await ask('GET', `/v1/hardware/changes?${query}`)).toMatchObject({ status: 400, fault });
});

it('deletes the record and the token when the instance ends, but not the changes', async () => {
  const { nodes } = database.store();
  await nodes.update(node, { provision_state: 'deleting' });
  await push({ hardware: hardware(disk('A')) });
  await push({ hardware: hardware() });
  await nodes.update(node, { provision_state: 'cleaning' });
  expect((await ask('GET', `/v1/nodes/${node}/hardware`)).status).toBe(404);
  expect((await push({ hardware: hardware() })).status).toBe(403);
  expect(await changes()).toEqual([['vanished', 'disk', 'A']]);
  await nodes.remove(node);
  expect(await database.query('SELECT id FROM hardware_changes')).toEqual([]);
});
