/** The page's log-in with passwords and tokens, at the API (npm test builds the page). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { timestamp } from '../../../model/clock';
import { useApi } from '../../support/api';
import { like } from '../../support/expect';
import { NEWEST } from '../../support/newest';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-page-'));
const users = join(folder, 'users');
const roles = join(folder, 'roles');
const machines = join(folder, 'machines.json');
writeFileSync(machines, JSON.stringify({ nodes: [{ name: 'sim-1', driver: 'redfish' }, 'no node'] }));
writeFileSync(users, `ann:${hashSync('right', 4)}\nben:${hashSync('right', 4)}\ncarl:${hashSync('right', 4)}\n`);
writeFileSync(roles, '[ann]\nroles = admin\nsystem = all\n[ben]\nroles = reader\nproject = p1\n[carl]\nroles = member\nproject = p1\n');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a member of the project may do to the nodes that it owns, and to those that it leases. */
const OF_MEMBERS = { owned: ['node:set_provision_state', 'node:set_power_state'], leased: ['node:set_power_state'] };

const api = useApi({
  'DEFAULT.auth_strategy': 'http_basic',
  'DEFAULT.http_basic_auth_user_file': users,
  'DEFAULT.http_basic_roles_file': roles,
  'api.demo_machines': machines,
});
const having = (values: readonly string[]): readonly string[] => expect.arrayContaining([...values]) as readonly string[];
const logIn = (fields: object, headers: Readonly<Record<string, string>> = {}) =>
  api.ask('POST', '/ui/session', null, { body: fields, headers });
/** The cookie of a new session, and its CSRF token. */
async function session(user: string): Promise<{ readonly cookie: string; readonly csrf: string }> {
  const { headers, body } = await logIn({ user, password: 'right' });
  return { cookie: /^[^;]+/.exec(headers['set-cookie']![0]!)![0], csrf: body['csrf'] as string };
}

it('opens a session with a cookie that scripts and other sites cannot use', async () => {
  const { status, headers, body } = await logIn({ user: 'ann', password: 'right' });
  expect(status).toBe(201);
  expect(headers['set-cookie']).toEqual([like(/^bloomery_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)]);
  expect(headers['cache-control']).toBe('no-store');
  expect(body).toEqual({
    strategy: 'http_basic',
    log_ins: ['password', 'token'],
    csrf: like(/^[\w-]{43}$/),
    has_demo_machines: true,
    caller: { user: 'ann', project: null, roles: having(['admin']) },
    may: { any: having(['node:create', 'node:set_power_state', 'node:list_all', 'conductor:get']), owned: [], leased: [] },
  });
});
it.each([
  ['a wrong password', { user: 'ann', password: 'wrong' }, 401, 'These credentials are not valid.'],
  ['an unknown user', { user: 'eve', password: 'right' }, 401, 'These credentials are not valid.'],
  ['a wrong token', { token: `blm_${'x'.repeat(48)}` }, 401, 'These credentials are not valid.'],
])('refuses %s without opening the log-in dialogue of the browser', async (_, fields, expected, message) => {
  const { status, headers, body } = await logIn(fields);
  expect({ status, body }).toEqual({ status: expected, body: { error: { message } } });
  expect(headers['www-authenticate']).toBeUndefined();
  expect(headers['set-cookie']).toBeUndefined();
});
it.each([
  ['nothing', {}],
  ['no password', { user: 'ann', password: '' }],
  ['a user with a colon', { user: 'a:b', password: 'x' }],
  ['a token with a line break', { token: 'a\nb' }],
  ['a list instead of an object', ['ann', 'right']],
])('refuses a log-in with %s', async (_, fields) => {
  expect((await logIn(fields)).status).toBe(400);
});
it('refuses a log-in that a form of another site could send', async () => {
  expect((await logIn({ user: 'ann', password: 'right' }, { 'content-type': 'text/plain' })).status).toBe(415);
});

it('accepts the cookie alone for reading, but requires the CSRF token for a change', async () => {
  const { cookie, csrf } = await session('ann');
  const create = (headers: Readonly<Record<string, string>>) =>
    api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware' }, headers: { cookie, ...headers } });
  expect((await api.ask('GET', '/v1/nodes', NEWEST, { headers: { cookie } })).status).toBe(200);
  expect((await create({})).status).toBe(401);
  expect((await create({ 'x-csrf-token': 'another' })).status).toBe(401);
  expect((await create({ 'x-csrf-token': csrf, 'sec-fetch-site': 'cross-site' })).status).toBe(401);
  expect((await create({ 'x-csrf-token': csrf })).status).toBe(201);
});
it('shows a tenant only their nodes, and offers no action that they may not do', async () => {
  const admin = await session('ann');
  const headers = { cookie: admin.cookie, 'x-csrf-token': admin.csrf };
  for (const owner of ['p1', 'p2'])
    expect(
      (await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', name: `of-${owner}`, owner }, headers })).status,
    ).toBe(201);
  const { cookie, csrf } = await session('ben');
  const list = await api.ask('GET', '/v1/nodes?fields=name', NEWEST, { headers: { cookie } });
  expect(list.body.nodes.map(({ name }) => name)).toEqual(['of-p1']);
  expect((await api.ask('GET', '/v1/nodes/of-p2', NEWEST, { headers: { cookie } })).status).toBe(404);
  const { body } = await api.ask('GET', '/ui/session', null, { headers: { cookie } });
  expect(body).toMatchObject({
    caller: { user: 'ben', project: 'p1' },
    may: { any: ['image:get', 'runbook:list', 'allocation:list', 'snapshot:list', 'erasure:list'], owned: having(['node:history:get']) },
  });
  const offered = Object.values(body['may'] as Readonly<Record<string, readonly string[]>>).flat();
  expect(offered.filter((policy) => !/get$|list$/.test(policy))).toEqual([]);
  const change = { body: { target: 'power on' }, headers: { cookie, 'x-csrf-token': csrf } };
  expect((await api.ask('PUT', '/v1/nodes/of-p1/states/power', NEWEST, change)).status).toBe(403);
});
it('shows the counts of all nodes only to users who may list all nodes', async () => {
  const { stateCounts } = api.database.store();
  const at = timestamp(Date.now() - 60_000);
  await stateCounts.record(at, at);
  const read = async (user: string) => api.ask('GET', '/v1/state_counts', NEWEST, { headers: { cookie: (await session(user)).cookie } });
  const { status, body } = await read('ann');
  expect({ status, body }).toEqual({ status: 200, body: { now: like(/T/), state_counts: [{ at, counts: { enroll: 3 } }] } });
  for (const user of ['ben', 'carl']) expect((await read(user)).status).toBe(403);
  expect((await api.ask('GET', '/v1/state_counts', NEWEST)).status).toBe(401);
});
it('offers a project member actions that depend on whether the project owns or leases the node', async () => {
  const { cookie } = await session('carl');
  const { body } = await api.ask('GET', '/ui/session', null, { headers: { cookie } });
  const may = body['may'] as Readonly<Record<string, readonly string[]>>;
  const among = (kind: string): readonly string[] => OF_MEMBERS.owned.filter((policy) => may[kind]!.includes(policy));
  expect({ any: among('any'), owned: among('owned'), leased: among('leased') }).toEqual({ any: [], ...OF_MEMBERS });
});
it('shows simulated machines, which contain passwords, only to users who may create nodes', async () => {
  const read = (headers: Readonly<Record<string, string>>) => api.ask('GET', '/ui/demo-machines', null, { headers });
  const answer = await read({ cookie: (await session('ann')).cookie });
  expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: { nodes: [{ name: 'sim-1', driver: 'redfish' }] } });
  expect((await read({ cookie: (await session('ben')).cookie })).status).toBe(403);
  const refused = await read({});
  expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, undefined]);
});
it('sends WWW-Authenticate to clients, but not to scripts of the page, where browsers would open a dialogue', async () => {
  const challengeOf = async (headers: Readonly<Record<string, string>>) =>
    (await api.ask('GET', '/v1/nodes', NEWEST, { headers })).headers['www-authenticate'];
  const script = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
  expect(await challengeOf({})).toMatch(/^Basic /);
  expect(await challengeOf({ ...script, 'sec-fetch-mode': 'navigate' })).toMatch(/^Basic /);
  expect(await challengeOf(script)).toBeUndefined();
});
it('ends the session at the log-out', async () => {
  const { cookie } = await session('ann');
  const ended = await api.ask('DELETE', '/ui/session', null, { headers: { cookie, 'content-type': 'application/json' } });
  expect(ended.status).toBe(204);
  expect(ended.headers['set-cookie']).toEqual(['bloomery_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0']);
  expect((await api.ask('GET', '/v1/nodes', NEWEST, { headers: { cookie } })).status).toBe(401);
  expect((await api.ask('GET', '/ui/session', null, { headers: { cookie } })).body['caller']).toBeNull();
});
it('answers 404 to a log-in at an OpenID provider if none is configured', async () => {
  expect((await api.ask('GET', '/ui/login/oidc/start', null)).status).toBe(404);
});
