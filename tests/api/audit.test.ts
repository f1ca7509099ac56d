import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEntry } from '../../api/http/audit';
import { matching, useApi } from '../support/api';
import { until } from '../support/until';
import { NEWEST } from '../support/newest';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-audit-api-'));
const file = join(folder, 'htpasswd');
/** The password `secret`, hashed with bcrypt at its lowest cost. */
writeFileSync(file, 'admin:$2b$04$JCYtpV1F4gyrBd50P97aReFpr1INtdnhJUuzUjJeiKJYffB6hR8iK\n');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const entries: AuditEntry[] = [];
const api = useApi({ 'DEFAULT.auth_strategy': 'http_basic', 'DEFAULT.http_basic_auth_user_file': file }, undefined, {
  record: (entry) => void entries.push(entry),
});
const basic = (pair: string) => ({ Authorization: `Basic ${Buffer.from(pair).toString('base64')}` });
const ask = (method: string, path: string, body?: unknown, headers = basic('admin:secret')) =>
  api.ask(method, path, NEWEST, { headers, ...(body === undefined ? {} : { body }) });
/** The audit entries that `work` causes. */
async function entriesOf(work: () => Promise<unknown>): Promise<readonly AuditEntry[]> {
  entries.length = 0;
  await work();
  return [...entries];
}
const createNode = async (): Promise<string> => (await ask('POST', '/v1/nodes', { driver: 'fake-hardware' })).body.uuid;

it('records the user, the address and the created resource', async () => {
  let uuid = '';
  const [entry, ...others] = await entriesOf(async () => (uuid = await createNode()));
  expect(others).toEqual([]);
  expect(entry).toEqual({
    time: matching(/^\d{4}-.*Z$/),
    service: 'baremetal',
    request_id: matching(/^req-/),
    user: 'admin',
    project: null,
    address: matching(/127\.0\.0\.1$/),
    method: 'POST',
    path: '/v1/nodes',
    operation: 'createNode',
    created: matching(new RegExp(`/v1/nodes/${uuid}$`)),
    status: 201,
    outcome: 'success',
  });
});

it('records the node, the verb and the changed fields, but no values', async () => {
  const uuid = await createNode();
  await ask('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/name', value: 'audited' }]);
  const patch = [
    { op: 'add', path: '/driver_info/ipmi_password', value: 'hunter2' },
    { op: 'add', path: '/extra/a', value: 1 },
  ];
  const [change] = await entriesOf(() => ask('PATCH', '/v1/nodes/audited', patch));
  expect(change).toMatchObject({
    operation: 'updateNode',
    node: 'audited',
    node_uuid: uuid,
    status: 200,
    outcome: 'success',
    changed: ['add /driver_info/ipmi_password', 'add /extra/a'],
  });
  expect(JSON.stringify(change)).not.toContain('hunter2');
  const [verb] = await entriesOf(() => ask('PUT', '/v1/nodes/audited/states/provision', { target: 'manage' }));
  expect(verb).toMatchObject({ method: 'PUT', node: 'audited', node_uuid: uuid, verb: 'manage', outcome: 'success' });
  const [port] = await entriesOf(() => ask('POST', '/v1/ports', { node_uuid: uuid, address: '52:54:00:00:00:01' }));
  expect(port).toMatchObject({ operation: 'createPort', node_uuid: uuid, outcome: 'success' });
});

it.each<[string, string, string, unknown, Record<string, string>, Partial<AuditEntry>]>([
  ['a wrong password', 'POST', '/v1/nodes', {}, basic('admin:wrong'), { status: 401, user: null, claimed_user: 'admin' }],
  ['no login', 'DELETE', '/v1/nodes/x', undefined, {}, { status: 401, user: null }],
  ['an unknown node', 'DELETE', '/v1/nodes/nosuch', undefined, basic('admin:secret'), { status: 404, user: 'admin', node: 'nosuch' }],
  ['an unknown path', 'POST', '/v1/nosuch', {}, basic('admin:secret'), { status: 404, user: 'admin', path: '/v1/nosuch' }],
  ['malformed JSON', 'POST', '/v1/nodes', '{', basic('admin:secret'), { status: 400, user: 'admin', operation: 'createNode' }],
  ['a large body', 'POST', '/v1/nodes', 'x'.repeat(2 ** 20 + 1), basic('admin:secret'), { status: 413, user: 'admin' }],
  ['a foreign agent', 'POST', '/v1/heartbeat/nosuch', { callback_url: 'http://x' }, {}, { status: 404, user: null, node: 'nosuch' }],
])('records the refusal of %s', async (_, method, path, body, headers, expected) => {
  const [entry, ...others] = await entriesOf(() => ask(method, path, body, headers as ReturnType<typeof basic>));
  expect(others).toEqual([]);
  expect(entry).toMatchObject({ ...expected, outcome: 'failure' });
});

it('does not record the names of users that do not exist, which may be passwords', async () => {
  const [entry] = await entriesOf(() => ask('POST', '/v1/nodes', {}, basic('hunter2:admin')));
  expect(entry).toMatchObject({ status: 401, user: null });
  expect(JSON.stringify(entry)).not.toContain('hunter2');
});

it('records no reads', async () => {
  expect(await entriesOf(() => ask('GET', '/v1/nodes'))).toEqual([]);
  expect(await entriesOf(() => api.ask('HEAD', '/v1'))).toEqual([]);
  expect(await entriesOf(() => api.ask('OPTIONS', '/v1/nodes'))).toEqual([]);
});

it('limits the length of each text', async () => {
  const long = 'x'.repeat(3000);
  const patch = Array.from({ length: 100 }, () => ({ op: 'add', path: `/extra/${long}`, value: 1 }));
  const [change] = await entriesOf(() => ask('PATCH', '/v1/nodes/nosuch', patch));
  expect(change!.changed).toHaveLength(33);
  const [path] = await entriesOf(() => ask('PATCH', `/v1/nodes/${long}`, patch));
  for (const entry of [change, path]) expect(JSON.stringify(entry).length).toBeLessThan(12_000);
});

it('records an unknown outcome when the client disconnects during its request', async () => {
  entries.length = 0;
  const socket = connect(Number(new URL(api.url()).port), '127.0.0.1');
  const { Authorization } = basic('admin:secret');
  socket.write(
    `POST /v1/nodes HTTP/1.1\r\nHost: x\r\nAuthorization: ${Authorization}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The server has the head of the request when it answers `100 Continue`.
  socket.once('data', () => socket.destroy());
  await until('its entry', () => entries.length > 0);
  expect(entries).toEqual([expect.objectContaining({ method: 'POST', path: '/v1/nodes', user: 'admin', outcome: 'unknown' })]);
  expect(entries[0]!.status).toBeUndefined();
});
