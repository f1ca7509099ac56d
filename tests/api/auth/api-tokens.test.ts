import { randomBytes } from 'node:crypto';
import { apiTokens } from '../../../api/auth/api-tokens';
import { acceptTokens } from '../../../api/auth/accept-tokens';
import { apiTokenHash, isApiToken, makeApiToken } from '../../../policy/api-tokens';
import type { ApiTokenRecord } from '../../../model/records';
import { timestamp } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { NOBODY } from '../../../policy/caller';
import { testClock } from '../../support/clock';
import { useDatabase } from '../../support/database';

const KEY = 'k'.repeat(64);
const clock = testClock();
const database = useDatabase({ clock });
let queries = 0;
const record = (name: string, changes: Partial<ApiTokenRecord> = {}): Omit<ApiTokenRecord, 'last_used_at'> => ({
  name,
  user_name: 'ci',
  roles: ['member', 'reader'],
  project: 'p',
  domain: null,
  system: false,
  created_at: timestamp(clock.now()),
  expires_at: null,
  ...changes,
});
async function create(name: string, changes: Partial<ApiTokenRecord> = {}): Promise<string> {
  const token = makeApiToken(KEY, randomBytes);
  expect(await database.store().apiTokens.create(record(name, changes), apiTokenHash(token))).toBe(true);
  return token;
}
/** A process of the server. */
const start = () =>
  apiTokens({
    store: {
      secrets: { shared: async (_, make) => (make(), KEY) },
      apiTokens: {
        ...database.store().apiTokens,
        find: (hash) => {
          queries++;
          return database.store().apiTokens.find(hash);
        },
      },
    },
    clock,
    log: silentLog,
    random: randomBytes,
  });
const refused = { status: 401, sentence: 'The token is not valid' };
beforeEach(async () => {
  await database.clear();
  queries = 0;
});

it('an API token has 52 characters, and no other installation can make one', () => {
  const token = makeApiToken(KEY, randomBytes);
  expect(token).toMatch(/^blm_[\w-]{48}$/);
  expect(isApiToken(token, KEY)).toBe(true);
  expect(isApiToken(makeApiToken('other', randomBytes), KEY)).toBe(false);
  for (const position of [4, 20, 40, 51]) {
    const other = token[position] === 'A' ? 'B' : 'A';
    expect(isApiToken(token.slice(0, position) + other + token.slice(position + 1), KEY)).toBe(false);
  }
});

it('an API token identifies its user with roles and scope', async () => {
  const kind = start();
  const project = await create('in-project');
  const system = await create('in-system', { roles: ['admin'], project: null, system: true });
  expect(await kind.identify(project)).toEqual({
    ...NOBODY,
    user: 'ci',
    userName: 'ci',
    roles: ['member', 'reader'],
    project: 'p',
    tokenName: 'in-project',
  });
  expect(await kind.identify(system)).toMatchObject({ roles: ['admin'], project: null, system: true, exempt: false });
});

it('an API token causes one query in three seconds, and is refused at most three seconds after its revocation', async () => {
  const kind = start();
  const token = await create('a');
  for (let count = 0; count < 20; count++) await kind.identify(token);
  expect(queries).toBe(1);
  expect(await database.store().apiTokens.remove('a')).toBe(true);
  expect(await database.store().apiTokens.remove('a')).toBe(false);
  await clock.advance(3);
  for (let count = 0; count < 20; count++) await expect(kind.identify(token)).rejects.toMatchObject(refused);
  expect(queries).toBe(2);
});

it('an API token is refused as soon as it expires, even while it is cached', async () => {
  const kind = start();
  const token = await create('a', { expires_at: timestamp(clock.now() + 1000) });
  await kind.identify(token);
  await clock.advance(1);
  await expect(kind.identify(token)).rejects.toMatchObject(refused);
  expect(queries).toBe(1);
});

it('a token is refused without a query if this installation did not make it', async () => {
  const kind = start();
  const good = await create('a');
  const bad = ['blm_', `${good}x`, good.slice(0, -1), `blm_${'x'.repeat(60_000)}`, `${good}\n`, makeApiToken('other', randomBytes)];
  for (const token of bad) await expect(kind.identify(token)).rejects.toMatchObject(refused);
  for (let count = 0; count < 1000; count++)
    await expect(kind.identify(makeApiToken('guessed', randomBytes))).rejects.toMatchObject(refused);
  expect(queries).toBe(0);
});

it('an API token has the time of its last use, which is updated at most once an hour', async () => {
  const kind = start();
  const token = await create('a');
  const lastUse = async () => (await database.store().apiTokens.list())[0]!.last_used_at;
  await kind.identify(token);
  const first = timestamp(clock.now());
  while ((await lastUse()) === null) await new Promise(setImmediate);
  expect(await lastUse()).toBe(first);
  await clock.advance(3599);
  await kind.identify(token);
  expect(await lastUse()).toBe(first);
  await clock.advance(10);
  await kind.identify(token);
  const second = timestamp(clock.now());
  while ((await lastUse()) === first) await new Promise(setImmediate);
  expect(await lastUse()).toBe(second);
});

it('a second API token with the same name is refused', async () => {
  await create('a');
  expect(await database.store().apiTokens.create(record('a'), 'other')).toBe(false);
});

it('API tokens are accepted again after a failure of the database', async () => {
  const token = await create('a');
  let isAway = true;
  const kind = apiTokens({
    store: {
      secrets: {
        shared: async () => {
          if (isAway) throw new Error('away');
          return KEY;
        },
      },
      apiTokens: database.store().apiTokens,
    },
    clock,
    log: silentLog,
    random: randomBytes,
  });
  await expect(kind.identify(token)).rejects.toThrow('away');
  isAway = false;
  expect(await kind.identify(token)).toMatchObject({ user: 'ci' });
});

describe('API tokens beside an authentication strategy', () => {
  const base = { ...NOBODY, user: 'base' };
  const auth = acceptTokens({ identify: async () => base }, [
    { matches: ({ token }) => token.startsWith('blm_'), identify: async (token) => ({ ...NOBODY, user: token }) },
    { matches: ({ header }) => header === 'authorization', identify: async (token) => ({ ...NOBODY, user: `jwt ${token}` }) },
  ]);
  it.each([
    [{}, 'base'],
    [{ authorization: 'Bearer blm_x' }, 'blm_x'],
    [{ authorization: ' bEARER   blm_x ' }, 'blm_x'],
    [{ 'x-auth-token': 'blm_x' }, 'blm_x'],
    [{ 'x-auth-token': ['blm_x', 'blm_y'] }, 'blm_x'],
    [{ authorization: 'Basic YTpi', 'x-auth-token': 'blm_x' }, 'blm_x'],
    [{ authorization: 'Bearer x.y.z' }, 'jwt x.y.z'],
    [{ authorization: 'Basic YTpi' }, 'base'],
    [{ authorization: 'Bearer' }, 'base'],
    [{ authorization: 'Bearer a b' }, 'base'],
    [{ 'x-auth-token': 'x.y.z' }, 'base'],
    [{ 'x-auth-token': '' }, 'base'],
  ])('the headers %j identify %s', async (headers, user) =>
    expect(await auth.identify(headers, '/v1/nodes', 'GET', 'test')).toMatchObject({ user }),
  );
  it('are ignored in requests that need no authentication', async () =>
    expect(await auth.identify({ authorization: 'Bearer blm_x' }, '/v1/lookup', 'GET', 'test')).toBe(base));
});
