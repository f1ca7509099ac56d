import { createHmac, generateKeyPairSync, sign as signData, type KeyObject } from 'node:crypto';
import { oidc } from '../../../api/auth/oidc';
import type { Options } from '../../../config/options';
import { silentLog, type Log } from '../../../model/log';
import { NOBODY } from '../../../policy/caller';
import { testClock } from '../../support/clock';
import { optionsOf } from '../../support/options';

const ISSUER = 'https://id.example.com/realms/metal';
const [first, second, third] = [1, 2, 3].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) as [Pair, Pair, Pair];
type Pair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = ({ publicKey }: Pair, kid: string, alg = 'RS256') => ({ ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' });

const clock = testClock();
const now = (): number => Math.floor(clock.now() / 1000);
const claims = (changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  iss: ISSUER,
  aud: 'bloomery',
  sub: 'u-1',
  iat: now(),
  exp: now() + 300,
  preferred_username: 'jo',
  groups: ['bm-admins'],
  ...changes,
});
const sign = async (payload: object, key: KeyObject = first.privateKey, header: object = { kid: 'one' }): Promise<string> => {
  const { CompactSign } = await import('jose');
  return new CompactSign(Buffer.from(JSON.stringify(payload))).setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', ...header }).sign(key);
};
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function start(changes: Partial<Options> = {}, log: Log = silentLog) {
  let fetched = 0;
  let keys: object[] | Error = [jwk(first, 'one')];
  const kind = oidc({
    options: optionsOf({
      'oidc.issuer': ISSUER,
      'oidc.audience': ['bloomery'],
      'oidc.roles_claim': 'groups',
      'oidc.system_roles': { 'bm-admins': 'admin', 'bm-viewers': 'reader' },
      'oidc.project_claim': 'tenant.id',
      'oidc.project_roles': { builders: 'member', 'bm-admins': 'manager' },
      ...changes,
    }),
    clock,
    log,
    signal: new AbortController().signal,
    fetch: async () => {
      fetched++;
      if (keys instanceof Error) throw keys;
      return { keys: keys as Record<string, unknown>[] };
    },
  });
  return {
    identify: async (token: string | Promise<string>) => kind.identify(await token),
    publish: (to: object[] | Error) => (keys = to),
    fetched: () => fetched,
  };
}
const refused = { status: 401, sentence: 'The token is not valid' };
const away = { status: 503, sentence: 'The identity provider cannot be reached at the moment' };

it.each<[string, Readonly<Record<string, unknown>>, object]>([
  ['a role in the system', {}, { roles: ['admin', 'manager', 'member', 'reader'], system: true }],
  ['two roles in the system', { groups: ['bm-viewers', 'bm-admins'] }, { roles: ['reader', 'admin', 'manager', 'member'], system: true }],
  ['a role in a project', { groups: ['builders'], tenant: { id: 'p' } }, { roles: ['member', 'reader'], project: 'p' }],
  ['a claim with dots in its name', { groups: ['builders'], 'tenant.id': 'q' }, { roles: ['member', 'reader'], project: 'q' }],
  // Otherwise the role in the project would count in the system, or the other way round.
  ['roles in both', { groups: ['bm-viewers', 'builders'], tenant: { id: 'p' } }, { roles: ['reader'], system: true }],
  ['a role in no project', { groups: ['builders'] }, {}],
  ['a project without roles', { groups: [], tenant: { id: 'p' } }, { project: 'p' }],
  ['roles in one text', { groups: 'x bm-viewers' }, { roles: ['reader'], system: true }],
  ['no claim of roles', { groups: undefined }, {}],
  ['values that are no roles here', { groups: ['admin', 'constructor', '__proto__', 'toString'] }, {}],
  ['no name', { preferred_username: undefined }, { userName: 'u-1', roles: ['admin', 'manager', 'member', 'reader'], system: true }],
  ['a type of Keycloak', { typ: 'Bearer', groups: [] }, {}],
  ['several audiences', { aud: ['other', 'bloomery'], groups: [] }, {}],
  ['a clock that is ahead', { iat: now() + 20, nbf: now() + 20, groups: [] }, {}],
])('accepts a token with %s', async (_, changes, expected) => {
  const { identify } = start();
  expect(await identify(sign(claims(changes)))).toEqual({ ...NOBODY, user: 'u-1', userName: 'jo', ...expected });
});

it.each<[string, Readonly<Record<string, unknown>>]>([
  ['another issuer', { iss: 'https://id.example.com/realms/other' }],
  ['an issuer that is a list', { iss: [ISSUER] }],
  ['another audience', { aud: 'other' }],
  ['no audience', { aud: undefined }],
  ['an audience of another type', { aud: { bloomery: true } }],
  ['no expiry', { exp: undefined }],
  ['an expiry in the past', { exp: now() - 31 }],
  ['an expiry that is a text', { exp: String(now() + 300) }],
  ['no time of issue', { iat: undefined }],
  ['a time of issue in the future', { iat: now() + 60 }],
  ['a time of issue that is a text', { iat: '1' }],
  ['a start in the future', { nbf: now() + 60 }],
  ['a start that is an object', { nbf: {} }],
  ['no user', { sub: undefined }],
  ['a user that is a number', { sub: 7 }],
  ['an empty user', { sub: '' }],
  ['a user with a control character', { sub: 'a\u0000b' }],
  ['an ID token of Keycloak', { typ: 'ID' }],
  ['a type that is a list', { typ: ['Bearer'] }],
  ['a long user', { sub: 'x'.repeat(256) }],
  ['a name that is a list', { preferred_username: ['jo'] }],
  ['roles that are an object', { groups: { 'bm-admins': true } }],
  ['a role that is an object', { groups: ['bm-admins', {}] }],
  ['a role that is null', { groups: [null] }],
  ['roles that are a number', { groups: 1 }],
  ['more than 1000 roles', { groups: Array.from({ length: 1001 }, () => 'x') }],
  ['a project that is a list', { tenant: { id: ['p'] } }],
  ['a project that is true', { tenant: { id: true } }],
])('refuses a token with %s', async (_, changes) => {
  const { identify } = start();
  await expect(identify(sign(claims(changes)))).rejects.toMatchObject(refused);
});

it.each<[string, () => string | Promise<string>]>([
  ['no signature', () => `${encoded({ alg: 'none' })}.${encoded(claims())}.`],
  ['an algorithm in other letters', () => `${encoded({ alg: 'NONE', kid: 'one' })}.${encoded(claims())}.`],
  [
    'a signature with the public key as a secret',
    () => {
      const text = `${encoded({ alg: 'HS256', kid: 'one' })}.${encoded(claims())}`;
      const secret = first.publicKey.export({ format: 'pem', type: 'spki' });
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
    },
  ],
  ['a logout token', () => sign(claims(), first.privateKey, { kid: 'one', typ: 'logout+jwt' })],
  ['a type that is not a text', () => sign(claims(), first.privateKey, { kid: 'one', typ: 7 })],
  ['an algorithm that is not accepted', () => sign(claims(), first.privateKey, { kid: 'one', alg: 'RS512' })],
  ['the signature of another key', () => sign(claims(), second.privateKey)],
  ['an algorithm of another kind of key', () => sign(claims(), elliptic.privateKey, { kid: 'one', alg: 'ES256' })],
  [
    'a key that the token brings along',
    () => sign(claims(), second.privateKey, { kid: 'one', jwk: second.publicKey.export({ format: 'jwk' }), jku: 'https://x' }),
  ],
  [
    'a critical extension',
    () => {
      const text = `${encoded({ alg: 'RS256', kid: 'one', crit: ['ours'], ours: 1 })}.${encoded(claims())}`;
      return `${text}.${signData('RSA-SHA256', Buffer.from(text), first.privateKey).toString('base64url')}`;
    },
  ],
  ['changed claims', async () => (await sign(claims())).replace(/\.[^.]+\./, `.${encoded(claims({ sub: 'u-2' }))}.`)],
  ['claims that are a list', () => sign([])],
  ['claims that are deep', () => sign(claims({ groups: JSON.parse('['.repeat(2000) + ']'.repeat(2000)) as unknown }))],
  ['one part', () => 'x'],
  ['two parts', () => 'x.y'],
  ['five parts', () => 'a.b.c.d.e'],
  ['parts that are not JSON', () => 'eyJh.eyJh.eyJh'],
  ['nothing between the dots', () => '..'],
])('refuses a token with %s', async (_, token) => {
  const { identify } = start();
  await expect(identify(token())).rejects.toMatchObject(refused);
});

it('refuses long tokens before it parses them or fetches keys', async () => {
  const { identify, fetched } = start();
  await expect(identify(sign(claims({ filler: 'x'.repeat(60_000) })))).rejects.toMatchObject(refused);
  expect(fetched()).toBe(0);
});

describe('the keys of the provider', () => {
  it('are fetched when a token names an unknown key, but at most once in 30 seconds', async () => {
    const provider = start();
    await provider.identify(sign(claims()));
    provider.publish([jwk(first, 'one'), jwk(second, 'two')]);
    const next = sign(claims(), second.privateKey, { kid: 'two' });
    // The pause after the last fetch of the keys is not over.
    await expect(provider.identify(next)).rejects.toMatchObject(refused);
    expect(provider.fetched()).toBe(1);
    await clock.advance(30);
    expect(await provider.identify(next)).toMatchObject({ user: 'u-1' });
    expect(provider.fetched()).toBe(2);
    for (let count = 0; count < 200; count++) {
      const unknown = sign(claims({ jti: count }), third.privateKey, { kid: `guess-${count}` });
      await expect(provider.identify(unknown)).rejects.toMatchObject(refused);
    }
    expect(provider.fetched()).toBe(2);
  });
  it('stay valid while the provider is unavailable; tokens with unknown keys get 503', async () => {
    const logged: string[] = [];
    const provider = start({}, { ...silentLog, warn: (message) => void logged.push(message) });
    await provider.identify(sign(claims()));
    provider.publish(new Error('away'));
    await clock.advance(700);
    for (let count = 0; count < 50; count++) {
      expect(await provider.identify(sign(claims({ jti: count })))).toMatchObject({ user: 'u-1' });
      const unknown = sign(claims(), second.privateKey, { kid: 'two', jti: count });
      await expect(provider.identify(unknown)).rejects.toMatchObject(away);
    }
    expect(provider.fetched()).toBe(2);
    expect(logged).toEqual(['cannot fetch the keys of the identity provider']);
    provider.publish([jwk(second, 'two')]);
    await clock.advance(30);
    expect(await provider.identify(sign(claims(), second.privateKey, { kid: 'two' }))).toMatchObject({ user: 'u-1' });
    // The provider has withdrawn the first key.
    await expect(provider.identify(sign(claims({ jti: 'new' })))).rejects.toMatchObject(refused);
  });
  it('are used for at most a day while the provider is unavailable', async () => {
    const provider = start();
    await provider.identify(sign(claims()));
    provider.publish(new Error('away'));
    await clock.advance(86_399);
    expect(await provider.identify(sign(claims()))).toMatchObject({ user: 'u-1' });
    await clock.advance(60);
    await expect(provider.identify(sign(claims()))).rejects.toMatchObject(away);
  });
  it('that could never be fetched lead to 503', async () => {
    const provider = start();
    provider.publish(new Error('away'));
    for (let count = 0; count < 20; count++) await expect(provider.identify(sign(claims({ jti: count })))).rejects.toMatchObject(away);
    expect(provider.fetched()).toBe(1);
  });
  it.each([
    ['that cannot be used', [{ kty: 'RSA', kid: 'one', alg: 'RS256', n: 'x', e: 'y' }]],
    ['of another kind', [{ kty: 'oct', kid: 'one', alg: 'HS256', k: 'c2VjcmV0' }]],
    ['that are empty', [{}]],
    ['that do not exist', []],
  ])('%s verify no token', async (_, keys) => {
    const provider = start();
    provider.publish(keys);
    await expect(provider.identify(sign(claims()))).rejects.toMatchObject(refused);
  });
});

it('accepts a verified token until it expires', async () => {
  const provider = start({ 'oidc.clock_tolerance': 0 });
  const token = sign(claims({ exp: now() + 10 }));
  await provider.identify(token);
  await clock.advance(9);
  expect(await provider.identify(token)).toMatchObject({ user: 'u-1' });
  await clock.advance(1);
  await expect(provider.identify(token)).rejects.toMatchObject(refused);
});
it('accepts ES256', async () => {
  const provider = start();
  provider.publish([jwk(elliptic, 'ec', 'ES256')]);
  expect(await provider.identify(sign(claims(), elliptic.privateKey, { kid: 'ec', alg: 'ES256' }))).toMatchObject({ user: 'u-1' });
});

it.each(['JWT', 'jwt', 'at+jwt', 'application/at+jwt', undefined])('accepts access tokens of the type %s', async (typ) => {
  const { identify } = start();
  expect(await identify(sign(claims(), first.privateKey, { kid: 'one', typ }))).toMatchObject({ user: 'u-1' });
});
