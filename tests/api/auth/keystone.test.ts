import { isAllowed } from '../../../api/auth/access-rules';
import type { LoginStatus } from '../../../api/auth/own-login';
import { keystone } from '../../../api/auth/keystone';
import { createValidatedTokens } from '../../../api/auth/validated-tokens';
import { Unauthenticated } from '../../../api/http/errors';
import { createSpellings } from '../../../api/resource/spellings';
import { loadDocument } from '../../../api/schema/document';
import type { Options } from '../../../config/options';
import { systemClock } from '../../../model/clock';
import { silentLog, type Log } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import { startFakeKeystone, tokenBody, type FakeKeystone } from '../../support/fakes/fake-keystone';
import { useApi } from '../../support/api';
import { optionsOf } from '../../support/options';
import { until } from '../../support/until';
import { NEWEST } from '../../support/newest';

const TOKENS: Readonly<Record<string, unknown>> = {
  good: tokenBody(),
  other: tokenBody(),
  service: tokenBody({ roles: [{ name: 'service' }] }),
  expired: tokenBody({ expires_at: '2000-01-01T00:00:00Z' }),
  'no-user': tokenBody({ user: undefined }),
  'user-without-id': tokenBody({ user: { name: 'x' } }),
  'no-time': tokenBody({ expires_at: 12 }),
  'two-scopes': tokenBody({ system: { all: true } }),
  'wrong-types': tokenBody({ roles: 'admin', project: 'p1', domain: ['d'], system: 'all' }),
  'wrong-members': tokenBody({ roles: [{ name: 5 }, null, { name: 'Reader' }], project: undefined, system: { all: 'yes' } }),
  'not-admin': tokenBody({ is_admin_project: false }),
  text: 'no JSON',
  list: [],
  'no-token': {},
  'broken-rules': tokenBody({ application_credential: { access_rules: 'all' }, catalog: [{ type: 'baremetal' }] }),
  'many-rules': tokenBody({
    application_credential: {
      access_rules: Array.from({ length: 1000 }, () => ({ service: 'baremetal', method: 'GET', path: '/**'.repeat(40) })),
    },
    catalog: [{ type: 'baremetal' }],
  }),
  'one-rule': tokenBody({
    application_credential: { access_rules: [{ service: 'baremetal', method: 'GET', path: '/v1/{kind}/*' }] },
    catalog: [{ type: 'baremetal' }],
  }),
  'no-catalog': tokenBody({ application_credential: { access_rules: [{ service: 'baremetal', method: 'GET', path: '/**' }] } }),
};

let fake: FakeKeystone;
let ahead = 0;
const clock = { ...systemClock, now: () => Date.now() + ahead, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(0, signal) };
beforeEach(async () => {
  ahead = 0;
  fake = await startFakeKeystone(TOKENS);
});
afterEach(() => fake.close());

const strategyOf = (
  changes: Partial<Options> = {},
  log: Log = silentLog,
  more: { readonly loginStatus?: LoginStatus; readonly signal?: AbortSignal } = {},
) =>
  keystone({
    options: optionsOf({
      'keystone_authtoken.auth_url': fake.url,
      'keystone_authtoken.auth_type': 'password',
      'keystone_authtoken.user_id': 'ironic',
      'keystone_authtoken.password': 'secret',
      ...changes,
    }),
    log,
    metrics: silentMetrics,
    clock,
    serviceType: 'baremetal',
    spellings: createSpellings(loadDocument()),
    signal: new AbortController().signal,
    ...more,
  });
type Strategy = ReturnType<typeof strategyOf>;
const identify = (strategy: Strategy, token: string, headers: Record<string, string> = {}, path = '/v1/nodes', source = '192.0.2.1') =>
  strategy.identify({ 'x-auth-token': token, ...headers }, path, 'GET', source);
const statusOf = (identified: Promise<unknown>): Promise<number> =>
  identified.then(
    () => 200,
    (error: unknown) => (error instanceof Unauthenticated ? error.status : 500),
  );

it('reads the user, the scope and the roles from the token', async () => {
  expect(await identify(strategyOf(), 'good')).toEqual({
    user: 'u1',
    userName: 'user',
    userDomain: 'default',
    project: 'p1',
    projectName: 'tenant',
    projectDomain: 'default',
    domain: null,
    roles: ['member'],
    system: false,
    exempt: false,
    isAdminProject: true,
  });
  expect(await identify(strategyOf(), 'not-admin')).toMatchObject({ isAdminProject: false });
  expect(await identify(strategyOf(), 'wrong-members')).toMatchObject({ roles: ['reader'], project: null, system: false });
  expect(await identify(strategyOf(), 'wrong-types')).toMatchObject({ roles: [], project: null, domain: null, system: false });
});

it.each(
  ['expired', 'no-user', 'user-without-id', 'no-time', 'two-scopes', 'no user', 'unknown', ' ', 'a'.repeat(2049)].map(
    (token) => [token.slice(0, 40), token] as const,
  ),
)('refuses the token "%s"', async (_, token) => {
  expect(await statusOf(identify(strategyOf(), token))).toBe(401);
});
it.each(['text', 'list', 'no-token'])('answers 503 to a response of Keystone that describes no token: %s', async (token) => {
  expect(await statusOf(identify(strategyOf(), token))).toBe(503);
});

it('validates a token once for concurrent requests, and again after token_cache_time', async () => {
  const strategy = strategyOf();
  await Promise.all(Array.from({ length: 20 }, () => identify(strategy, 'good')));
  expect(fake.validations).toEqual([{ token: 'good', query: '' }]);
  ahead = 299_000;
  await identify(strategy, 'good');
  expect(fake.validations).toHaveLength(1);
  ahead = 301_000;
  await identify(strategy, 'good');
  expect(fake.validations).toHaveLength(2);
  expect(fake.logins).toHaveLength(1);
});

it.each([0, -1])('validates a token at each request with token_cache_time = %d', async (seconds) => {
  const strategy = strategyOf({ 'keystone_authtoken.token_cache_time': seconds });
  for (let n = 0; n < 3; n++) await identify(strategy, 'good');
  expect(fake.validations).toHaveLength(3);
});

it('validates an invalid token at most once in ten seconds', async () => {
  const strategy = strategyOf();
  for (let n = 0; n < 20; n++) expect(await statusOf(identify(strategy, 'bad'))).toBe(401);
  expect(fake.validations).toHaveLength(1);
  ahead = 10_001;
  expect(await statusOf(identify(strategy, 'bad'))).toBe(401);
  expect(fake.validations).toHaveLength(2);
});

it('validates an expired token again, with allow_expired, when a service sends it', async () => {
  const strategy = strategyOf();
  fake.reply = async ({ headers, url }) =>
    headers['x-subject-token'] === 'expired' && !url!.includes('allow_expired=1') ? { status: 404, body: {} } : undefined;
  expect(await statusOf(identify(strategy, 'expired'))).toBe(401);
  expect(await identify(strategy, 'expired', { 'x-service-token': 'service' })).toMatchObject({ user: 'u1' });
  expect(await statusOf(identify(strategy, 'expired'))).toBe(401);
  expect(fake.validations.map(({ token, query }) => `${token} ${query}`)).toEqual(['expired ', 'service ', 'expired allow_expired=1']);
});

it('requests no catalog with include_service_catalog = false, and then refuses tokens with access rules', async () => {
  const strategy = strategyOf({ 'keystone_authtoken.include_service_catalog': false });
  await identify(strategy, 'good');
  expect(fake.validations[0]!.query).toBe('nocatalog');
  expect(await statusOf(identify(strategy, 'no-catalog'))).toBe(401);
});

it('applies access rules', async () => {
  const strategy = strategyOf();
  expect(await statusOf(identify(strategy, 'one-rule', {}, '/v1/nodes/a'))).toBe(200);
  // Escapes are decoded first, and cannot add a segment.
  expect(await statusOf(identify(strategy, 'one-rule', {}, '/v1/n%6Fdes/a%20b'))).toBe(200);
  for (const path of [
    '/v1/nodes',
    '/v1/nodes/',
    '/v1/nodes/a/b',
    '/v1/nodes/a%2fb',
    '/v1/nodes/%',
    '/v2/nodes/a',
    `/v1/nodes/${'a'.repeat(1024)}`,
  ])
    expect(`${path} ${await statusOf(identify(strategy, 'one-rule', {}, path))}`).toBe(`${path} 401`);
  for (const token of ['broken-rules', 'many-rules', 'no-catalog']) expect(await statusOf(identify(strategy, token))).toBe(401);
  // Access rules do not bind a service that acts for the user.
  expect(await statusOf(identify(strategy, 'one-rule', { 'x-service-token': 'service' }))).toBe(200);
});

it('applies access rules to the path of the operation, whatever its spelling', async () => {
  const spellings = createSpellings(loadDocument());
  const allowed = (rule: string, path: string): boolean =>
    isAllowed([{ service: 'baremetal', method: 'GET', path: rule }], { method: 'GET', path }, 'baremetal', spellings);
  for (const path of ['/v1/nodes', '/v1/nodes/', '/nodes', '/v1/nodes.json', '/v1/nodes//', '/v1/no%64es'])
    for (const rule of ['/v1/nodes', '/v1/nodes/']) expect(`${path} ${allowed(rule, path)}`).toBe(`${path} true`);
  for (const path of ['/v1/nodes/a/states', '/v1/nodes/states/a', '/nodes/states/a/', '/v1/nodes/states/a.json']) {
    expect(`${path} ${allowed('/v1/nodes/*/states', path)}`).toBe(`${path} true`);
    expect(`${path} ${allowed('/v1/nodes/*/power', path)}`).toBe(`${path} false`);
    expect(`${path} ${allowed('/v1/nodes/states/*', path)}`).toBe(`${path} false`);
  }
  // `/v1/nodes/states` names its node in the query, which an access rule cannot name.
  expect(allowed('/v1/nodes/*', '/v1/nodes/states')).toBe(false);
  expect(allowed('/**', '/v1/nodes/states')).toBe(false);
  // The suffix may belong to the name of a node.
  expect(allowed('/v1/nodes/a', '/v1/nodes/a.json')).toBe(false);
  expect(allowed('/v1/nodes/a.json', '/v1/nodes/a.json')).toBe(false);
  expect(allowed('/v1/nodes/*', '/v1/nodes/a.json')).toBe(true);
  expect(allowed('/**', '/v1/nodes/a%2fb')).toBe(false);
  expect(allowed('/v1/ports/detail', '/v1/ports/detail/')).toBe(true);
  expect(allowed('/v1/ports', '/v1/ports/detail')).toBe(false);
});

describe('the login at the start', () => {
  const started = (changes: Partial<Options> = {}) => {
    const [status, ending, lines] = [{ refusal: undefined } as LoginStatus, new AbortController(), [] as string[]];
    const note = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
    const strategy = strategyOf(changes, { ...silentLog, error: note, info: note }, { loginStatus: status, signal: ending.signal });
    return { status, lines, strategy, stop: () => ending.abort() };
  };

  it('takes place before the first request', async () => {
    const { lines, status, strategy, stop } = started();
    await until('the login', async () => fake.logins.length === 1);
    await identify(strategy, 'good');
    expect(fake.logins).toHaveLength(1);
    expect([lines, status.refusal]).toEqual([[], undefined]);
    stop();
  });

  it('logs the options to check when Keystone refuses it, and succeeds later', async () => {
    fake.reply = async () => ({ status: 401, body: { error: { message: 'No' } } });
    const { lines, status, stop } = started();
    await until('the refusal', async () => status.refusal !== undefined && fake.logins.length > 2);
    expect(status.refusal).toMatch(/HTTP status 401: No; check \[keystone_authtoken\]username, password, their domains and the project$/);
    expect(lines).toEqual([expect.stringContaining('check [keystone_authtoken]username, password')]);
    fake.reply = async () => undefined;
    await until('the login', async () => status.refusal === undefined);
    expect(lines[1]).toContain('authenticated at Keystone');
    stop();
  });

  it('does not count as refused while Keystone cannot be reached', async () => {
    const { lines, status, stop } = started({ 'keystone_authtoken.auth_url': 'http://127.0.0.1:1' });
    await until('the failure', async () => lines.length > 0);
    expect(lines[0]).toContain('; check [keystone_authtoken]auth_url');
    expect(status.refusal).toBeUndefined();
    stop();
  });
});

it('authenticates again after a 401 for its own token, but only once', async () => {
  const strategy = strategyOf();
  await identify(strategy, 'good');
  // Another login makes the token of this program stale.
  await identify(strategyOf(), 'good');
  expect(await statusOf(identify(strategy, 'other'))).toBe(200);
  expect(fake.logins).toHaveLength(3);
  fake.reply = async ({ method }) => (method === 'GET' ? { status: 401, body: {} } : undefined);
  expect(await statusOf(identify(strategy, 'bad'))).toBe(503);
  expect(fake.logins).toHaveLength(4);
});

it('authenticates again before its token expires', async () => {
  const strategy = strategyOf();
  await identify(strategy, 'good');
  ahead = 3_479_000;
  await identify(strategy, 'other');
  expect(fake.logins).toHaveLength(1);
  ahead = 3_481_000;
  await identify(strategy, 'good');
  expect(fake.logins).toHaveLength(2);
});

it.each([401, 200, 503])('answers 503 to all tokens while its login gets %d, and tries again after a second', async (status) => {
  const strategy = strategyOf();
  fake.reply = async ({ method }) => (method === 'POST' ? { status, body: { error: { message: 'x' } } } : undefined);
  expect(await statusOf(identify(strategy, 'good'))).toBe(503);
  expect(await statusOf(identify(strategy, 'other'))).toBe(503);
  expect(fake.logins).toHaveLength(1);
  fake.reply = async () => undefined;
  ahead = 1001;
  expect(await statusOf(identify(strategy, 'good'))).toBe(200);
});

it.each<[string, Partial<Options>, object | undefined, string]>([
  [
    'a wrong password',
    {},
    { status: 401, body: { error: { message: 'No' } } },
    'HTTP status 401: No; check [keystone_authtoken]username, password,',
  ],
  ['a wrong path', {}, { status: 404, body: '' }, 'HTTP status 404; check [keystone_authtoken]auth_url'],
  ['no listener', { 'keystone_authtoken.auth_url': 'http://127.0.0.1:1' }, undefined, '; check [keystone_authtoken]auth_url'],
  [
    'another region',
    { 'keystone_authtoken.region_name': 'x' },
    undefined,
    'region x); check [keystone_authtoken]interface and region_name',
  ],
])('%s: the log names the option to check', async (_, changes, reply, expected) => {
  const errors: string[] = [];
  const log = { ...silentLog, error: (message: string, fields?: object) => void errors.push(`${message} ${JSON.stringify(fields)}`) };
  const strategy = strategyOf(changes, log);
  if (reply) fake.reply = async ({ method }) => (method === 'POST' ? (reply as { status: number; body: unknown }) : undefined);
  expect(await statusOf(identify(strategy, 'good'))).toBe(503);
  expect(errors.join()).toContain('cannot validate tokens');
  expect(errors.join()).toContain(expected);
});

it.each([500, 503, 403, 400, 300])(
  'answers 503 only to the token whose validation gets %d, and tries again after a second',
  async (status) => {
    const strategy = strategyOf();
    fake.reply = async ({ headers }) => (headers['x-subject-token'] === 'good' ? { status, body: { error: { message: 'x' } } } : undefined);
    for (let n = 0; n < 5; n++) expect(await statusOf(identify(strategy, 'good'))).toBe(503);
    expect(fake.validations).toHaveLength(1);
    expect(await statusOf(identify(strategy, 'other'))).toBe(200);
    fake.reply = async () => undefined;
    ahead = 1001;
    expect(await statusOf(identify(strategy, 'good'))).toBe(200);
  },
);

it('retries a validation three times when the connection fails', async () => {
  const strategy = strategyOf();
  let left = 3;
  fake.reply = async (request) => {
    if (left-- > 0) request.socket.destroy();
    return undefined;
  };
  expect(await statusOf(identify(strategy, 'good'))).toBe(200);
  left = 4;
  expect(await statusOf(identify(strategy, 'other'))).toBe(503);
});

it('answers 503 after http_connect_timeout when Keystone does not answer', async () => {
  const strategy = strategyOf({ 'keystone_authtoken.http_connect_timeout': 1 });
  fake.reply = (request) => new Promise((answer) => request.socket.once('close', () => answer(undefined)));
  expect(await statusOf(identify(strategy, 'good'))).toBe(503);
});

it('accepts cached tokens while Keystone does not answer, and limits the validations of a source', async () => {
  const strategy = strategyOf();
  await identify(strategy, 'good');
  let release = (): void => {};
  const held = new Promise<void>((open) => (release = open));
  fake.reply = async () => {
    await held;
    return undefined;
  };
  const bad = Array.from({ length: 300 }, (_, n) => statusOf(identify(strategy, `bad-${n}`)));
  // Of one source's requests, 8 run and 128 wait; the others are refused at once.
  const refused = await Promise.all(bad.slice(136));
  expect(refused).toEqual(refused.map(() => 503));
  expect(await statusOf(identify(strategy, 'good'))).toBe(200);
  const other = statusOf(identify(strategy, 'other', {}, '/v1/nodes', '192.0.2.2'));
  release();
  expect(await other).toBe(200);
  expect(await Promise.all(bad.slice(0, 136))).toEqual(Array.from({ length: 136 }, () => 401));
});

it('forgets the oldest tokens beyond the limit of the cache', async () => {
  let asked = 0;
  const tokens = createValidatedTokens({
    validate: async (token) => {
      asked++;
      return token.startsWith('bad') ? undefined : { expiresAt: Infinity };
    },
    cacheMs: 300_000,
    clock,
    log: silentLog,
    metrics: silentMetrics,
  });
  const use = { source: '192.0.2.1', allowExpired: false };
  for (const kind of ['good', 'bad']) {
    for (let n = 0; n <= 4096; n++) await tokens(`${kind}-${n}`, use);
    asked = 0;
    await tokens(`${kind}-4096`, use);
    expect(asked).toBe(0);
    await tokens(`${kind}-0`, use);
    expect(asked).toBe(1);
  }
});

it('logs neither its password nor tokens, even if Keystone repeats them', async () => {
  const told: unknown[] = [];
  const log = { ...silentLog, error: (...words: unknown[]) => void told.push(words), warn: (...words: unknown[]) => void told.push(words) };
  const options = optionsOf({
    'keystone_authtoken.auth_url': fake.url,
    'keystone_authtoken.auth_type': 'password',
    'keystone_authtoken.user_id': 'ironic',
    'keystone_authtoken.password': 'secret-of-ironic',
  });
  const strategy = keystone({
    options,
    log,
    clock,
    metrics: silentMetrics,
    serviceType: null,
    spellings: createSpellings(loadDocument()),
    signal: new AbortController().signal,
  });
  fake.reply = async () => ({ status: 500, body: { error: { message: `secret-of-ironic ${'x'.repeat(5000)}` } } });
  expect(await statusOf(identify(strategy, 'a-secret-token'))).toBe(503);
  expect(told).toHaveLength(1);
  expect(JSON.stringify(told)).not.toMatch(/secret/);
  expect(JSON.stringify(told).length).toBeLessThan(1000);
  // Keystone's error may repeat the token that it got.
  const other = `gAAAA${'b'.repeat(60)}`;
  const echo = { status: 500, body: { error: { message: `no a-secret-token2, ${other}, ${'x'.repeat(190)}` } } };
  fake.reply = async ({ method }) => (method === 'POST' ? undefined : echo);
  ahead = 2000;
  expect(await statusOf(identify(strategy, 'a-secret-token2'))).toBe(503);
  expect(told).toHaveLength(2);
  expect(JSON.stringify(told)).not.toMatch(/secret|gAAAA/);
  expect(JSON.stringify(told)).toContain('no ***, ***, ***');
});

describe('the API', () => {
  const api = useApi({
    'DEFAULT.auth_strategy': 'keystone',
    'keystone_authtoken.auth_url': 'http://127.0.0.1:1/identity/v3/',
    'keystone_authtoken.auth_type': 'password',
    'keystone_authtoken.user_id': 'ironic',
    'keystone_authtoken.password': 'secret',
    'keystone_authtoken.http_request_max_retries': 0,
  });

  it.each([
    {},
    { 'X-Auth-Token': '' },
    { 'X-Auth-Token': 'two words' },
    { 'X-Storage-Token': '' },
    { 'X-User-Id': 'root', 'X-Roles': 'admin' },
  ])('refuses %p without asking Keystone', async (headers) => {
    const answer = await api.ask('GET', '/v1/nodes', NEWEST, { headers });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Keystone uri="http://127.0.0.1:1/identity/v3/"');
    expect(answer.body).toEqual({
      error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' },
    });
  });

  it('answers 503 when Keystone cannot be reached, except for public paths', async () => {
    const answer = await api.ask('GET', '/v1/nodes', NEWEST, { headers: { 'X-Auth-Token': 'x' } });
    expect(answer).toMatchObject({ status: 503, body: { code: '503 Service Unavailable', title: 'Service Unavailable' } });
    expect((await api.ask('GET', '/v1')).status).toBe(200);
    expect((await api.ask('GET', '/v1/lookup')).status).toBe(400);
    await until('the cause is in the log', () => api.logged.includes('cannot validate tokens'));
  });
});
