/** Sessions of the page: a cookie in place of credentials, bounded, and never without the CSRF token for a change. */
import { randomBytes } from 'node:crypto';
import { createSessions, SESSION_COOKIE, type Login, type Sessions } from '../../../api/auth/sessions';
import { Unauthenticated } from '../../../api/http/errors';
import { acceptsPage } from '../../../api/ui/assets';
import type { Auth } from '../../../api/pipeline/handler';
import { NOBODY } from '../../../policy/caller';
import type { Clock } from '../../../model/clock';

let now: number;
let revoked: boolean;
let sessions: Sessions;
beforeEach(() => {
  now = 1_000_000;
  revoked = false;
  const auth: Auth = {
    allowed: () => true,
    identify: async ({ authorization }) => {
      if (authorization === undefined || revoked || authorization.includes('wrong')) throw new Unauthenticated(401, 'no');
      return { ...NOBODY, user: authorization };
    },
  };
  sessions = createSessions(auth, { now: () => now } as Clock, randomBytes);
});
const open = (user = 'ann') => sessions.open({ credentials: { authorization: user } }, 'source');
const identify = async (method: string, headers: Readonly<Record<string, string>>): Promise<string> =>
  sessions.auth.identify(headers, '/v1/nodes', method, 'source').then(
    ({ user }) => user!,
    (error: unknown) => (error as Error).message,
  );
const cookieFor = (value: string) => ({ cookie: `other=1; ${SESSION_COOKIE}=${value}` });

it('accepts the cookie alone for reading, but requires the CSRF token for a change', async () => {
  const { cookie, csrf } = await open();
  expect(await identify('GET', cookieFor(cookie))).toBe('ann');
  expect(await identify('POST', cookieFor(cookie))).toBe('The CSRF token of the session is missing');
  expect(await identify('DELETE', { ...cookieFor(cookie), 'x-csrf-token': 'x' })).toBe('The CSRF token of the session is missing');
  expect(await identify('POST', { ...cookieFor(cookie), 'x-csrf-token': csrf })).toBe('ann');
});
it.each([
  ['same-origin', 'ann'],
  ['none', 'ann'],
  ['same-site', 'no'],
  ['cross-site', 'no'],
])('a request with Sec-Fetch-Site: %s gets %s', async (site, expected) => {
  const { cookie } = await open();
  expect(await identify('GET', { ...cookieFor(cookie), 'sec-fetch-site': site })).toBe(expected);
});
it('prefers the credentials of a request to its cookie', async () => {
  const { cookie } = await open();
  expect(await identify('POST', { ...cookieFor(cookie), authorization: 'ben' })).toBe('ben');
});
it('opens no session for wrong credentials, and ends a session whose credentials are revoked', async () => {
  await expect(open('wrong')).rejects.toThrow('no');
  const { cookie } = await open();
  revoked = true;
  expect(await identify('GET', cookieFor(cookie))).toBe('no');
  expect(await sessions.find(cookieFor(cookie), 'source')).toBeUndefined();
});
it('ends a session after an hour without a request, after twelve hours, and at log-out', async () => {
  const [idle, used, closed] = [await open(), await open(), await open()];
  sessions.close(cookieFor(closed.cookie));
  expect(await identify('GET', cookieFor(closed.cookie))).toBe('no');
  for (let quarter = 0; quarter < 47; quarter++) {
    now += 900_000;
    expect(await identify('GET', cookieFor(used.cookie))).toBe('ann');
  }
  expect(await identify('GET', cookieFor(idle.cookie))).toBe('no');
  now += 900_000;
  expect(await identify('GET', cookieFor(used.cookie))).toBe('no');
});
it('keeps the twenty latest sessions of a user', async () => {
  const other = await open('ben');
  const first = await open();
  const later = [];
  for (let count = 0; count < 20; count++) later.push(await open());
  expect(await identify('GET', cookieFor(first.cookie))).toBe('no');
  expect(await identify('GET', cookieFor(later[0]!.cookie))).toBe('ann');
  expect(await identify('GET', cookieFor(other.cookie))).toBe('ben');
});

it.each([
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
  ['application/json', false],
  ['application/json, text/html;q=0.5', false],
  ['*/*', false],
  [undefined, false],
])('acceptsPage() for Accept %j is %s', (accept, expected) => expect(acceptsPage(accept)).toBe(expected));

describe('credentials that expire', () => {
  let issued: number;
  /** The error with which the provider answers next. */
  let refusal: Error | undefined;
  const login = (): Login => {
    const renew = async (): Promise<Login> => {
      if (refusal) throw refusal;
      return login();
    };
    return { credentials: { authorization: `token ${++issued}` }, renewal: { at: now + 60_000, renew } };
  };
  beforeEach(() => {
    issued = 0;
    refusal = undefined;
  });
  it('are renewed once for concurrent requests', async () => {
    const { cookie } = await sessions.open(login(), 'source');
    expect(await identify('GET', cookieFor(cookie))).toBe('token 1');
    now += 60_000;
    expect(await Promise.all([1, 2, 3].map(() => identify('GET', cookieFor(cookie))))).toEqual(['token 2', 'token 2', 'token 2']);
    now += 60_000;
    expect(await sessions.find(cookieFor(cookie), 'source')).toMatchObject({ caller: { user: 'token 3' } });
  });
  it('end the session when the provider refuses to renew them', async () => {
    const { cookie } = await sessions.open(login(), 'source');
    refusal = new Unauthenticated(401, 'over');
    now += 60_000;
    expect(await identify('GET', cookieFor(cookie))).toBe('over');
    expect(await sessions.find(cookieFor(cookie), 'source')).toBeUndefined();
  });
  it('are still used while the provider is unavailable, and renewed ten seconds later', async () => {
    const { cookie } = await sessions.open(login(), 'source');
    refusal = new Unauthenticated(503, 'away');
    now += 60_000;
    expect(await identify('GET', cookieFor(cookie))).toBe('token 1');
    refusal = undefined;
    now += 9999;
    expect(await identify('GET', cookieFor(cookie))).toBe('token 1');
    now += 1;
    expect(await identify('GET', cookieFor(cookie))).toBe('token 2');
  });
});
