/** Tokens of a real OpenID provider, oidc-provider, at the built server (npm test builds it). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { fakeSettings, openProcesses, type Processes } from '../../support/processes';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-openid-'));
const log = join(folder, 'log');
const database = useDatabase();
let processes: Processes;
let provider: ChildProcess | undefined;
let port: number;
let url: string;

async function startProvider(kid: string): Promise<void> {
  const program = join(__dirname, '../../support/openid-provider.mjs');
  provider = spawn(process.execPath, [program, String(port), kid, folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(provider.stdout!, 'data');
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
  await startProvider('first');
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
`,
    ),
  );
  if (typeof started !== 'string') throw new Error(started.errors);
  url = started;
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
      'X-OpenStack-Ironic-API-Version': '1.115',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'POST' ? { body: '{"driver":"fake-hardware"}' } : {}),
  });

it('accepts the tokens of the provider, with the roles of their claims, also while the provider is away', async () => {
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
  // A key that only the provider could know.
  await startProvider('second');
  const unknown = await tokenFor('bm-viewers');
  await stopProvider();
  const status = (await send('GET', '/v1/conductors', unknown)).status;
  // 503 when the keys are asked for while the provider is away; 401 within 30 seconds of the last fetch.
  expect([401, 503]).toContain(status);

  const written = readFileSync(log, 'utf8');
  for (const token of [viewer, admin, foreign, later, unknown]) expect(written).not.toContain(token.split('.')[2]);
});

it('refuses headers of any length and tokens of any form, and stays up', async () => {
  const token = await (async () => {
    await startProvider('first');
    return tokenFor('bm-viewers');
  })();
  const wrong = ['x', '..', 'a.b.c', `${token}x`, token.slice(0, -4), `blm_${'x'.repeat(48)}`, 'x'.repeat(14_000), 'x'.repeat(60_000)];
  for (const one of wrong) {
    const { status } = await send('GET', '/v1/conductors', one);
    expect([401, 431]).toContain(status);
  }
  expect((await send('GET', '/v1/conductors', token)).status).toBe(200);
});
