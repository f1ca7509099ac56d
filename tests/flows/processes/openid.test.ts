/** Tokens and log-ins of a real OpenID provider, oidc-provider, at the built server (npm test builds it). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOpenIdLogin } from '../../../api/auth/oidc-login';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { optionsOf } from '../../support/options';
import { fakeSettings, openProcesses, type Processes } from '../../support/processes';
import { NEWEST_VERSION } from '../../support/newest';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-openid-'));
const log = join(folder, 'log');
const database = useDatabase();
let processes: Processes;
let provider: ChildProcess | undefined;
let port: number;
let url: string;

async function startProvider(kid: string): Promise<void> {
  const program = join(__dirname, '../../support/fakes/openid-provider.mjs');
  provider = spawn(process.execPath, [program, String(port), kid, folder, `${url}/ui/login/oidc`], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(provider, 'exit').then(() => Promise.reject(new Error('the provider ended')));
  await Promise.race([once(provider.stdout!, 'data'), ended]);
}
async function stopProvider(): Promise<void> {
  if (!provider) return;
  const ended = once(provider, 'exit');
  provider.kill();
  await ended;
  provider = undefined;
}
beforeAll(async () => {
  port = await freePort();
  processes = openProcesses(() => database.connection());
  const started = await processes.start(
    'one',
    'api,conductor',
    fakeSettings(
      `host = one
auth_strategy = oidc
log_file = ${log}`,
      `[oidc]
issuer = http://127.0.0.1:${port}
audience = urn:bloomery
roles_claim = scope
system_roles = bm-viewers:reader,bm-admins:admin
client_id = page
client_secret = a secret+of the page
scopes = openid,bm-viewers
login_parameters = resource:urn:bloomery
`,
    ),
  );
  if (typeof started !== 'string') throw new Error(started.errors);
  url = started;
  await startProvider('first');
});
afterAll(async () => {
  await processes.close();
  await stopProvider();
  rmSync(folder, { recursive: true, force: true });
});

async function tokenFor(scope: string, resource = 'urn:bloomery'): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('ci:secret').toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource }),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}
const send = (method: string, path: string, token?: string): Promise<Response> =>
  fetch(`${url}${path}`, {
    method,
    headers: {
      'X-OpenStack-Ironic-API-Version': NEWEST_VERSION,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'POST' ? { body: '{"driver":"fake-hardware"}' } : {}),
  });

it('accepts the tokens of the provider with the roles of their claims, even while the provider is unavailable', async () => {
  const [viewer, admin, foreign] = await Promise.all([
    tokenFor('bm-viewers'),
    tokenFor('bm-admins'),
    tokenFor('bm-admins', 'urn:another-service'),
  ]);
  expect((await send('GET', '/v1/conductors', viewer)).status).toBe(200);
  expect((await send('POST', '/v1/nodes', viewer)).status).toBe(403);
  expect((await send('POST', '/v1/nodes', admin)).status).toBe(201);
  const refused = await send('GET', '/v1/conductors', foreign);
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="Baremetal API", error="invalid_token"');
  const without = await send('GET', '/v1/conductors');
  expect(without.status).toBe(401);
  expect(without.headers.get('www-authenticate')).toBe('Bearer realm="Baremetal API"');
  expect((await send('GET', '/v1')).status).toBe(200);

  const later = await tokenFor('bm-viewers');
  await stopProvider();
  expect((await send('GET', '/v1/conductors', later)).status).toBe(200);
  // A token that is signed with a key which the server has not fetched.
  await startProvider('second');
  const unknown = await tokenFor('bm-viewers');
  await stopProvider();
  const status = (await send('GET', '/v1/conductors', unknown)).status;
  // 503 if the server wants to fetch the keys while the provider is away; 401 within 30 seconds of the last fetch.
  expect([401, 503]).toContain(status);

  const written = readFileSync(log, 'utf8');
  for (const token of [viewer, admin, foreign, later, unknown]) expect(written).not.toContain(token.split('.')[2]);
});

it('refuses long headers and malformed tokens, and still accepts valid ones', async () => {
  const token = await (async () => {
    await startProvider('first');
    return tokenFor('bm-viewers');
  })();
  const wrong = ['x', '..', 'a.b.c', `${token}x`, token.slice(0, -4), `blm_${'x'.repeat(48)}`, 'x'.repeat(14_000), 'x'.repeat(60_000)];
  for (const item of wrong) {
    const { status } = await send('GET', '/v1/conductors', item);
    expect([401, 431]).toContain(status);
  }
  expect((await send('GET', '/v1/conductors', token)).status).toBe(200);
});

describe('the log-in of the page', () => {
  /** The cookies of a browser, by origin. */
  type Jar = Map<string, Map<string, string>>;
  async function visit(jar: Jar, location: string): Promise<{ readonly response: Response; readonly next: string | undefined }> {
    const { origin } = new URL(location);
    const own = jar.get(origin) ?? new Map<string, string>();
    jar.set(origin, own);
    const cookie = [...own].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(location, { headers: { cookie }, redirect: 'manual' });
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)!;
      own.set(name!, value!);
    }
    const to = response.headers.get('location');
    return { response, next: to === null ? undefined : new URL(to, location).href };
  }
  /** Follows redirections until one leads to where the visit is to end. */
  async function follow(jar: Jar, from: string, isEnd: (location: string) => boolean): Promise<string> {
    let location = from;
    for (let steps = 0; steps < 12; steps++) {
      if (isEnd(location)) return location;
      const { next } = await visit(jar, location);
      if (next === undefined) break;
      location = next;
    }
    throw new Error(`the redirections end at ${location}`);
  }
  const isCallback = (location: string): boolean => location.startsWith(`${url}/ui/login/oidc?`);
  const sessionOf = async (jar: Jar): Promise<Record<string, unknown>> => {
    const { response } = await visit(jar, `${url}/ui/session`);
    return (await response.json()) as Record<string, unknown>;
  };
  const start = (): string => `${url}/ui/login/oidc/start`;
  beforeAll(async () => {
    if (!provider) await startProvider('first');
  });

  it('sends the user to the provider, and opens a session with the access token', async () => {
    const jar: Jar = new Map();
    expect(await sessionOf(jar)).toMatchObject({ caller: null, log_ins: ['oidc', 'token'] });
    const callback = await follow(jar, start(), isCallback);
    const { response, next } = await visit(jar, callback);
    expect({ status: response.status, next }).toEqual({ status: 302, next: `${url}/ui` });
    expect(response.headers.get('set-cookie')).toMatch(/^bloomery_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    const session = await sessionOf(jar);
    expect(session).toMatchObject({ caller: { user: 'ann', project: null, roles: ['reader'] } });
    const cookie = `bloomery_session=${jar.get(url)!.get('bloomery_session')}`;
    expect((await fetch(`${url}/v1/nodes`, { headers: { cookie } })).status).toBe(200);
    // The code is used up.
    expect((await visit(jar, callback)).next).toBe(`${url}/ui#/log-in?problem=token`);
    const written = readFileSync(log, 'utf8');
    expect(written).toContain('invalid_grant');
    for (const name of ['code', 'state']) expect(written).not.toContain(new URL(callback).searchParams.get(name));
  });

  it('binds the log-in to the browser that began it', async () => {
    const jar: Jar = new Map();
    const { response } = await visit(jar, start());
    expect(response.headers.get('set-cookie')).toMatch(/^bloomery_login=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    const callback = await follow(jar, start(), isCallback);
    const expired = `${url}/ui#/log-in?problem=expired`;
    expect((await visit(new Map(), callback)).next).toBe(expired);
    const other: Jar = new Map();
    await visit(other, start());
    expect((await visit(other, callback)).next).toBe(expired);
    expect((await visit(jar, callback.replace('iss=', 'iss=http%3A%2F%2Felse&was='))).next).toBe(`${url}/ui#/log-in?problem=token`);
    expect((await visit(jar, callback)).next).toBe(`${url}/ui`);
  });

  it('reports that the provider denied access', async () => {
    const jar: Jar = new Map();
    const interaction = await follow(jar, start(), (location) => location.includes('/interaction/'));
    const callback = await follow(jar, `${interaction}?deny`, isCallback);
    expect((await visit(jar, callback)).next).toBe(`${url}/ui#/log-in?problem=denied`);
    expect(readFileSync(log, 'utf8')).toContain('access_denied');
  });

  it('renews the access token, until the provider refuses', async () => {
    const options = optionsOf({
      'oidc.issuer': `http://127.0.0.1:${port}`,
      'oidc.client_id': 'page',
      'oidc.client_secret': 'a secret+of the page',
      'oidc.scopes': ['openid', 'bm-viewers'],
      'oidc.login_parameters': { resource: 'urn:bloomery' },
    });
    const stopping = new AbortController();
    const openId = createOpenIdLogin({ options, clock: systemClock, log: silentLog, signal: stopping.signal });
    const redirectUri = `${url}/ui/login/oidc`;
    const callback = await follow(new Map(), await openId.begin('a secret', redirectUri), isCallback);
    const { credentials, renewal } = await openId.finish('a secret', new URL(callback).searchParams, redirectUri, 'here');
    const renewed = await renewal!.renew();
    expect(renewed.credentials).not.toEqual(credentials);
    const { authorization } = renewed.credentials as { readonly authorization: string };
    expect((await send('GET', '/v1/conductors', authorization.slice('Bearer '.length))).status).toBe(200);
    // oidc-provider also replaces the refresh token, and treats a second use of the old one as a theft.
    await expect(renewal!.renew()).rejects.toMatchObject({ status: 401 });
    await expect(renewed.renewal!.renew()).rejects.toMatchObject({ status: 401 });
    await stopProvider();
    await expect(renewed.renewal!.renew()).rejects.toMatchObject({ status: 503 });
    stopping.abort();
  });

  it('reports that the provider is unavailable', async () => {
    await startProvider('first');
    const jar: Jar = new Map();
    const callback = await follow(jar, start(), isCallback);
    await stopProvider();
    expect((await visit(jar, callback)).next).toBe(`${url}/ui#/log-in?problem=provider`);
  });
});
