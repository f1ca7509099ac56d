import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { expectBounded, useAttackedServer } from './watchdog';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-hostile-tokens-'));
writeFileSync(join(folder, 'users'), `admin:${hashSync('right', 4)}\n`);
afterAll(() => rmSync(folder, { recursive: true }));
/** Nothing listens on the port of the provider. */
const server = useAttackedServer(
  `auth_strategy = http_basic\nhttp_basic_auth_user_file = ${join(folder, 'users')}`,
  '[oidc]\nissuer = http://127.0.0.1:9\naudience = bloomery\nsystem_roles = admins:admin',
);

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (header: object, payload: unknown): string => `${encoded(header)}.${encoded(payload)}.${randomBytes(64).toString('base64url')}`;
const RESET = 0;
const status = async (headers: Readonly<Record<string, string>>): Promise<number> =>
  server.call('GET', '/v1/nodes', { headers }).then(
    (response) => response.status,
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return RESET;
      throw error;
    },
  );
const bearer = (token: string) => status({ authorization: `Bearer ${token}` });

it('refuses a thousand made-up tokens at bounded cost', async () => {
  const madeUp: readonly (() => Promise<number>)[] = [
    () => bearer(`blm_${randomBytes(36).toString('base64url')}`),
    () => status({ 'x-auth-token': `blm_${randomBytes(36).toString('base64url')}` }),
    () => bearer(jwt({ alg: 'RS256', kid: randomBytes(8).toString('hex') }, { sub: 'admin', roles: ['admins'] })),
    () => bearer(jwt({ alg: 'none' }, { sub: 'admin' })),
    () => bearer('x'.repeat(14_000)),
  ];
  const cost = await server.attack(async () => {
    for (let round = 0; round < 20; round++) {
      const all = await Promise.all(madeUp.flatMap((send) => Array.from({ length: 10 }, send)));
      // 503: the keys of the provider are unknown.
      for (const item of all) expect([401, 503]).toContain(item);
    }
  });
  expectBounded(cost);
});

// 431 is sent while the client still writes: the reset that follows can overtake it (RFC 9112 §9.6).
const TOO_LARGE = [431, RESET];
it.each<[string, Readonly<Record<string, string>>, readonly number[]]>([
  ['a token of 60 KB in Authorization', { authorization: `Bearer ${'x'.repeat(60_000)}` }, TOO_LARGE],
  ['a token of 60 KB in X-Auth-Token', { 'x-auth-token': `blm_${'x'.repeat(60_000)}` }, TOO_LARGE],
  ['a token with many spaces', { authorization: `Bearer${' '.repeat(14_000)}x` }, [401, 503]],
  ['a token with many dots', { authorization: `Bearer ${'.'.repeat(12_000)}` }, [401, 503]],
  [
    'a token with deeply nested claims',
    { authorization: `Bearer ${jwt({ alg: 'RS256' }, JSON.parse('['.repeat(4000) + ']'.repeat(4000)))}` },
    [401, 503],
  ],
  [
    'a token with a deeply nested header',
    { authorization: `Bearer ${Buffer.from('{"a":'.repeat(1500)).toString('base64url')}.e30.x` },
    [401, 503],
  ],
])('refuses %s, and still answers a correct login', async (_, headers, statuses) => {
  expect(statuses).toContain(await status(headers));
  expect(await status({ authorization: `Basic ${Buffer.from('admin:right').toString('base64')}` })).toBe(200);
});
