/** Attacks on the log-in at an OpenID provider, over HTTP: by the provider, by what stands between, and by the browser. */
import { createHash, createHmac, generateKeyPairSync, sign as signData, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { oidc } from '../../../api/auth/oidc';
import { createOpenIdLogin, type OpenIdLogin } from '../../../api/auth/oidc-login';
import type { Options } from '../../../config/options';
import { silentLog } from '../../../model/log';
import { testClock } from '../../support/clock';
import { cpuMsOf } from '../../support/cpu-time';
import { optionsOf } from '../../support/options';

type Json = Readonly<Record<string, unknown>>;
type Answer = (response: ServerResponse, body: string, request: IncomingMessage) => void;
const REDIRECT_URI = 'https://bloomery.example.com/ui/login/oidc';
const SECRET = 'the cookie of this browser';
const [first, second] = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) as [Pair, Pair];
type Pair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
const jwk = ({ publicKey }: Pair, kid: string): Json => ({ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' });
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signed = (claims: Json, { privateKey }: Pair = first, header: Json = {}): string => {
  const text = `${encoded({ alg: 'RS256', kid: 'one', ...header })}.${encoded(claims)}`;
  return `${text}.${signData('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`;
};
const json =
  (value: unknown, status = 200): Answer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(typeof value === 'string' ? value : JSON.stringify(value));
const redirect =
  (location: string): Answer =>
  (response) =>
    void response.writeHead(302, { location }).end();

const clock = testClock();
const now = (): number => Math.floor(clock.now() / 1000);
let server: Server;
let issuer: string;
let asked: string[] = [];
let answers: Record<string, Answer> = {};
const stopping = new AbortController();

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request.url!);
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => (answers[request.url!] ?? json({}, 404))(response, body, request));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  stopping.abort();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const DISCOVERY = '/.well-known/openid-configuration';
const metadata = (changes: Json = {}): Json => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
  ...changes,
});
const tokens = (idToken: unknown, changes: Json = {}): Json => ({
  access_token: 'an access token',
  token_type: 'Bearer',
  expires_in: 300,
  id_token: idToken,
  ...changes,
});
/** A log-in whose request for authorization the browser has sent, and what the provider then knows. */
interface Begun {
  readonly state: string;
  readonly nonce: string;
  readonly claims: (changes?: Json) => Json;
}
const loginWith = (changes: Partial<Options> = {}): OpenIdLogin =>
  createOpenIdLogin({
    options: optionsOf({
      'oidc.issuer': issuer,
      'oidc.client_id': 'page',
      'oidc.client_secret': 's-e c+r.et',
      'oidc.timeout': 1,
      ...changes,
    }),
    clock,
    log: silentLog,
    signal: stopping.signal,
  });
let login: OpenIdLogin;
async function begin(secret = SECRET): Promise<Begun> {
  const { searchParams } = new URL(await login.begin(secret, REDIRECT_URI));
  const nonce = searchParams.get('nonce')!;
  const claims = (changes: Json = {}): Json => ({
    iss: issuer,
    aud: 'page',
    sub: 'ann',
    iat: now(),
    exp: now() + 300,
    nonce,
    ...changes,
  });
  return { state: searchParams.get('state')!, nonce, claims };
}
const finish = (query: Readonly<Record<string, string>>, secret: string | null = SECRET): Promise<string> =>
  login.finish(secret ?? undefined, new URLSearchParams(query), REDIRECT_URI, 'a browser').then(
    ({ credentials }) => JSON.stringify(credentials),
    (error: unknown) => String((error as { problem?: unknown }).problem ?? error),
  );
const LOGGED_IN = '{"authorization":"Bearer an access token"}';

beforeEach(() => {
  asked = [];
  answers = { [DISCOVERY]: json(metadata()), '/keys': json({ keys: [jwk(first, 'one')] }) };
  login = loginWith();
});

it('asks for a code with PKCE, and sends its verifier with the secret of the client', async () => {
  const url = new URL(await login.begin(SECRET, REDIRECT_URI));
  expect(url.origin + url.pathname).toBe(`${issuer}/authorize`);
  const { state, nonce, code_challenge: challenge, ...others } = Object.fromEntries(url.searchParams);
  expect(others).toEqual({
    response_type: 'code',
    client_id: 'page',
    redirect_uri: REDIRECT_URI,
    scope: 'openid',
    code_challenge_method: 'S256',
  });
  let sent = new URLSearchParams();
  let headers: IncomingMessage['headers'] = {};
  const { claims } = await begin();
  answers['/token'] = (response, body, request) => {
    sent = new URLSearchParams(body);
    headers = request.headers;
    json(tokens(signed(claims())))(response, body, request);
  };
  expect(await finish({ state: state!, code: 'c', iss: issuer })).toBe(LOGGED_IN);
  const { code_verifier: verifier, ...grant } = Object.fromEntries(sent);
  expect(grant).toEqual({ grant_type: 'authorization_code', code: 'c', redirect_uri: REDIRECT_URI });
  expect(createHash('sha256').update(verifier!).digest('base64url')).toBe(challenge);
  // Providers that do not decode it, which are many, still find the hyphens and dots of the secret.
  expect(Buffer.from(headers.authorization!.slice('Basic '.length), 'base64').toString()).toBe('page:s-e%20c%2Br.et');
  expect(new Set([state, nonce, challenge, verifier, SECRET]).size).toBe(5);
});

describe('an ID token is refused with', () => {
  it.each<[string, (claims: Begun['claims']) => unknown]>([
    ['no signature', (claims) => `${encoded({ alg: 'none' })}.${encoded(claims())}.`],
    [
      'a signature with the public key as a secret',
      (claims) => {
        const text = `${encoded({ alg: 'HS256', kid: 'one' })}.${encoded(claims())}`;
        const secret = first.publicKey.export({ format: 'pem', type: 'spki' });
        return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
      },
    ],
    [
      'a signature with the secret of the client',
      (claims) => {
        const text = `${encoded({ alg: 'HS256' })}.${encoded(claims())}`;
        return `${text}.${createHmac('sha256', 's-e c+r.et').update(text).digest('base64url')}`;
      },
    ],
    ['the signature of another key', (claims) => signed(claims(), second)],
    ['a key that the provider does not have', (claims) => signed(claims(), second, { kid: 'two' })],
    ['a key that it brings along', (claims) => signed(claims(), second, { jwk: second.publicKey.export({ format: 'jwk' }) })],
    ['a critical extension', (claims) => signed(claims(), first, { crit: ['ours'], ours: 1 })],
    ['another issuer', (claims) => signed(claims({ iss: 'https://id.example.com' }))],
    ['a slash after the issuer', (claims) => signed(claims({ iss: `${issuer}/` }))],
    ['another audience', (claims) => signed(claims({ aud: 'another client' }))],
    ['no audience', (claims) => signed(claims({ aud: undefined }))],
    ['another authorized party', (claims) => signed(claims({ azp: 'another client' }))],
    ['another authorized party among audiences', (claims) => signed(claims({ aud: ['page', 'x'], azp: 'x' }))],
    ['an expiry in the past', (claims) => signed(claims({ exp: now() - 31 }))],
    ['no expiry', (claims) => signed(claims({ exp: undefined }))],
    ['a start in the future', (claims) => signed(claims({ nbf: now() + 60 }))],
    ['a time of issue in the future', (claims) => signed(claims({ iat: now() + 60 }))],
    ['another nonce', (claims) => signed(claims({ nonce: 'n' }))],
    ['no nonce', (claims) => signed(claims({ nonce: undefined }))],
    ['another type', (claims) => ({ ...claims() })],
    ['five parts', () => 'a.b.c.d.e'],
    ['nothing in it', () => undefined],
  ])('%s', async (_, idToken) => {
    const { state, claims } = await begin();
    answers['/token'] = json(tokens(idToken(claims)));
    expect(await finish({ state, code: 'c' })).toBe('token');
  });
});

it('accepts an ID token of a clock that is ahead or behind by less than [oidc]clock_tolerance', async () => {
  const { state, claims } = await begin();
  for (const changes of [{ iat: now() + 20, nbf: now() + 20 }, { exp: now() - 20 }]) {
    answers['/token'] = json(tokens(signed(claims(changes))));
    expect(await finish({ state, code: 'c' })).toBe(LOGGED_IN);
  }
});

it('accepts the signature of a key that the provider has made since, but fetches keys once in 30 seconds', async () => {
  const { state, claims } = await begin();
  answers['/token'] = json(tokens(signed(claims())));
  expect(await finish({ state, code: 'c' })).toBe(LOGGED_IN);
  answers['/keys'] = json({ keys: [jwk(second, 'two')] });
  const fetched = (): number => asked.filter((path) => path === '/keys').length;
  const next = (): void => void (answers['/token'] = json(tokens(signed(claims(), second, { kid: 'two' }))));
  next();
  expect([await finish({ state, code: 'c' }), fetched()]).toEqual(['token', 1]);
  await clock.advance(30);
  next();
  expect([await finish({ state, code: 'c' }), fetched()]).toEqual([LOGGED_IN, 2]);
  answers['/token'] = json(tokens(signed(claims(), second, { kid: 'made up' })));
  for (let count = 0; count < 20; count++) expect(await finish({ state, code: 'c' })).toBe('token');
  expect(fetched()).toBe(2);
});

describe('the browser', () => {
  it.each<[string, string, string | null, (own: Begun, other: Begun) => Readonly<Record<string, string>>]>([
    ['has the state of another log-in', 'expired', SECRET, (_, other) => ({ state: other.state, code: 'c' })],
    ['has no state', 'expired', SECRET, () => ({ code: 'c' })],
    ['has no cookie', 'expired', null, ({ state }) => ({ state, code: 'c' })],
    ['has the cookie of another log-in', 'expired', 'another secret', ({ state }) => ({ state, code: 'c' })],
    ['comes from another issuer', 'token', SECRET, ({ state }) => ({ state, code: 'c', iss: 'https://id.example.com' })],
    ['has no code', 'provider', SECRET, ({ state }) => ({ state })],
    ['has a code of 5,000 characters', 'provider', SECRET, ({ state }) => ({ state, code: 'c'.repeat(5000) })],
    ['was refused by the provider', 'denied', SECRET, ({ state }) => ({ state, error: 'access_denied', code: 'c' })],
    ['brings an error without a state', 'expired', SECRET, () => ({ error: 'access_denied' })],
  ])('%s: the provider is not asked', async (_, problem, secret, query) => {
    const [own, other] = [await begin(), await begin('another secret')];
    expect(await finish(query(own, other), secret)).toBe(problem);
    expect(asked).not.toContain('/token');
  });
  it('uses a code twice', async () => {
    const { state, claims } = await begin();
    const used = new Set<string>();
    answers['/token'] = (response, body, request) => {
      const code = new URLSearchParams(body).get('code')!;
      const answer = used.has(code) ? json({ error: 'invalid_grant' }, 400) : json(tokens(signed(claims())));
      used.add(code);
      answer(response, body, request);
    };
    expect(await finish({ state, code: 'c' })).toBe(LOGGED_IN);
    expect(await finish({ state, code: 'c' })).toBe('token');
  });
  it('brings the code of another browser: the verifier does not fit it', async () => {
    const [own, other] = [await begin(), await begin('another secret')];
    const challenge = new URL(await login.begin('another secret', REDIRECT_URI)).searchParams.get('code_challenge');
    answers['/token'] = (response, body, request) => {
      const verifier = new URLSearchParams(body).get('code_verifier')!;
      const fits = createHash('sha256').update(verifier).digest('base64url') === challenge;
      (fits ? json(tokens(signed(other.claims()))) : json({ error: 'invalid_grant' }, 400))(response, body, request);
    };
    expect(await finish({ state: own.state, code: 'of the other' })).toBe('token');
    // A provider that does not check it: the nonce is that of the other log-in.
    answers['/token'] = json(tokens(signed(other.claims())));
    expect(await finish({ state: own.state, code: 'of the other' })).toBe('token');
  });
});

const LARGE = ' '.repeat(10 << 20);
describe('the provider', () => {
  it.each<[string, () => Answer]>([
    ['is another', () => json(metadata({ issuer: 'https://id.example.com' }))],
    ['is the same but for a slash', () => json(metadata({ issuer: `${issuer}/` }))],
    ['names no issuer', () => json(metadata({ issuer: undefined }))],
    ['redirects', () => redirect(`${issuer}/elsewhere`)],
    ['answers 10 MB', () => json(LARGE)],
    ['answers 200 kB of values', () => json(`[${'1,'.repeat(100_000)}1]`)],
    ['answers deep JSON', () => json('['.repeat(1000) + ']'.repeat(1000))],
    ['answers a list', () => json([metadata()])],
    ['answers no JSON', () => json('<html>')],
    ['answers 500', () => json(metadata(), 500)],
    ['has its authorization endpoint elsewhere without TLS', () => json(metadata({ authorization_endpoint: 'http://id.example.com/' }))],
    ['has a script as its authorization endpoint', () => json(metadata({ authorization_endpoint: 'javascript:alert(1)' }))],
    ['has its token endpoint elsewhere without TLS', () => json(metadata({ token_endpoint: 'http://id.example.com/' }))],
    ['has a password in its token endpoint', () => json(metadata({ token_endpoint: 'https://a:b@id.example.com/' }))],
    ['has no token endpoint', () => json(metadata({ token_endpoint: undefined }))],
  ])('%s: no log-in begins', async (_, discovery) => {
    answers['/elsewhere'] = json(metadata());
    answers[DISCOVERY] = discovery();
    const attack = async (): Promise<void> =>
      expect(loginWith().begin(SECRET, REDIRECT_URI)).rejects.toMatchObject({ problem: 'provider' });
    expect(await cpuMsOf(attack, 1000)).toBeLessThan(1000);
    expect(new Set(asked)).toEqual(new Set([DISCOVERY]));
  });

  it.each<[string, string, () => Answer]>([
    ['answers a grant with a redirection', 'provider', () => redirect(`${issuer}/elsewhere`)],
    ['answers a grant with 10 MB', 'provider', () => json(LARGE)],
    ['answers a grant with no JSON', 'provider', () => json('<html>')],
    ['answers a grant with 503', 'provider', () => json({ error: 'temporarily_unavailable' }, 503)],
    ['refuses a grant', 'token', () => json({ error: 'invalid_client' }, 401)],
    ['sends no access token', 'token', () => json({ token_type: 'Bearer' })],
    ['sends an access token of another type', 'token', () => json({ access_token: { a: 1 } })],
    ['never answers', 'provider', () => () => {}],
    ['never ends its answer', 'provider', () => (response) => void response.writeHead(200).write('{')],
  ])('%s', async (_, problem, answer) => {
    const { state } = await begin();
    answers['/elsewhere'] = json(tokens('x'));
    answers['/token'] = answer();
    expect(await finish({ state, code: 'c' })).toBe(problem);
    expect(asked).not.toContain('/elsewhere');
  });

  it.each<[string, () => Record<string, Answer>]>([
    ['answers 10 MB of keys', () => ({ '/keys': json(`{"keys":[${'{},'.repeat(3_500_000)}{}]}`) })],
    ['has 101 keys', () => ({ '/keys': json({ keys: Array.from({ length: 101 }, () => jwk(first, 'one')) }) })],
    ['redirects from its keys', () => ({ '/keys': redirect(`${issuer}/elsewhere`) })],
    ['has its keys elsewhere without TLS', () => ({ [DISCOVERY]: json(metadata({ jwks_uri: 'http://id.example.com/' })) })],
    ['has keys that are no list', () => ({ '/keys': json({ keys: jwk(first, 'one') }) })],
  ])('%s: no token is accepted', async (_, changes) => {
    const { state, claims } = await begin();
    answers['/token'] = json(tokens(signed(claims())));
    answers['/elsewhere'] = json({ keys: [jwk(first, 'one')] });
    Object.assign(answers, changes());
    const kind = oidc({
      options: optionsOf({ 'oidc.issuer': issuer, 'oidc.audience': ['page'], 'oidc.timeout': 1 }),
      clock,
      log: silentLog,
      signal: stopping.signal,
    });
    const attack = async (): Promise<void> => {
      expect(await finish({ state, code: 'c' })).toBe('provider');
      await expect(kind.identify(signed(claims()))).rejects.toMatchObject({ status: 503 });
    };
    expect(await cpuMsOf(attack, 1500)).toBeLessThan(1500);
    expect(asked).not.toContain('/elsewhere');
  });
});
