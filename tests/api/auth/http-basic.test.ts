import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { httpBasic, parseHtpasswd } from '../../../api/auth/http-basic';
import { silentLog, type Log } from '../../../model/log';
import { NOBODY } from '../../../policy/caller';
import { useApi } from '../../support/api';
import { testClock } from '../../support/clock';
import { NEWEST } from '../../support/newest';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-htpasswd-'));
const file = join(folder, 'htpasswd');
/** Password → its bcrypt hash, at the lowest cost. */
const DIGESTS = {
  secret: '$2b$04$JCYtpV1F4gyrBd50P97aReFpr1INtdnhJUuzUjJeiKJYffB6hR8iK',
  'pass:wörd': '$2b$04$kez3JHJpodS1DIZNNYzj/.0SzdM.u/HndhEey3yKTFzGLGb7atcmC',
  later: '$2b$04$qW46L8Xp9FrpkKtsk4i35u5Eq./L9FeiN3/9sLh2vK7bcxUNnCC1i',
  one: '$2b$04$S9dpHkjyOUtbikXLceEa5ub3DbWwRvw7L4vkFa6sqkuLo/x1yPtxW',
  'new one': '$2b$04$f7GgOfNx4QG4U3c9H4UsnOyBKcg4beBV1Q5JSRJ/IF5QPKGfXrfLW',
  two: '$2b$04$DCM5xlC.rTwl7Xn6BzmbBuNq6V0sgU.s3SGjXTYi6i3sra0/PCdrG',
} as const;
const digest = (password: keyof typeof DIGESTS): string => DIGESTS[password];
writeFileSync(file, `admin:${digest('secret')}\n\nother:${digest('pass:wörd').replace('$2b$', '$2y$')}\nadmin:${digest('later')}\n`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`;
const api = useApi({ 'DEFAULT.auth_strategy': 'http_basic', 'DEFAULT.http_basic_auth_user_file': file });
const ask = (path: string, authorization?: string, method = 'GET') =>
  api.ask(method, path, NEWEST, authorization === undefined ? {} : { headers: { Authorization: authorization } });

it.each([
  ['admin:secret', 200],
  ['other:pass:wörd', 200],
  ['admin:wrong', 401],
  // The first of two lines for one user counts.
  ['admin:later', 401],
  ['nobody:secret', 401],
  ['admin:', 401],
  [':', 401],
])('answers the login %s with %p', async (pair, status) => {
  const answer = await ask('/v1/nodes', basic(pair));
  expect(answer.status).toBe(status);
  if (status !== 401) return;
  expect(answer.body).toEqual({ error: { message: 'Incorrect username or password', code: 401 } });
  expect(answer.headers).toMatchObject({ 'www-authenticate': 'Basic realm="Baremetal API"', 'content-type': 'application/json' });
  expect(answer.headers).toHaveProperty('x-openstack-request-id');
  expect(answer.headers).not.toHaveProperty('x-openstack-ironic-api-version');
});

it.each([
  [undefined, 401, 'Authorization required'],
  ['', 400, 'Could not parse Authorization header'],
  ['Basic', 400, 'Could not parse Authorization header'],
  ['Bearer x', 400, 'Unsupported authorization type "Bearer"'],
  ['Basic !!', 400, 'Could not decode authorization token'],
  ['Basic YWRtaW4=', 400, 'Could not decode authorization token'],
  ['Basic YWRtaW4', 400, 'Could not decode authorization token'],
  ['Basic YQ== YQ==', 400, 'Could not decode authorization token'],
  ['Basic /zph', 400, 'Could not decode authorization token'],
])('refuses the Authorization header %p with %p', async (authorization, status, message) => {
  const answer = await ask('/v1/nodes', authorization);
  expect(answer).toMatchObject({ status, body: { error: { message, code: status } } });
  expect('www-authenticate' in answer.headers).toBe(status === 401);
});
it('accepts the scheme in any case', async () => {
  expect((await ask('/v1/nodes', `  bASIC   ${basic('admin:secret').slice(6)}  `)).status).toBe(200);
});

it.each([
  ['GET', '/', 200],
  ['GET', '//', 200],
  ['GET', '/v1', 200],
  ['HEAD', '/v1/', 200],
  ['GET', '/v1/lookup', 400],
  ['POST', '/v1/heartbeat/aaaaaaaa-0000-4000-8000-000000000001', 400],
  ['POST', '/v1/continue_inspection/', 400],
  ['OPTIONS', '/v1/nodes', 200],
  // Everything else needs a login: a 401 does not tell whether the path exists.
  ['GET', '/nodes', 401],
  ['GET', '/v1/nosuch', 401],
  ['GET', '/v2', 401],
  ['GET', '/lookup', 401],
  ['GET', '/v1/lookup/x', 401],
  ['GET', '/v1/lookup%2f', 401],
  ['GET', '/v1/../v1/nodes', 401],
  ['POST', '/v1/heartbeat/Foo_bar', 401],
  // A recorder authenticates with its own token, which the handler checks: hence 403.
  ['PUT', '/v1/nodes/aaaaaaaa-0000-4000-8000-000000000001/hardware', 403],
  ['GET', '/v1/nodes/aaaaaaaa-0000-4000-8000-000000000001/hardware', 401],
  ['POST', '/v1/nodes/aaaaaaaa-0000-4000-8000-000000000001/hardware/token', 401],
  ['GET', '/healthcheck', 401],
])('answers %s %s without a login with %p', async (method, path, status) =>
  expect((await ask(path, undefined, method)).status).toBe(status),
);

it('requires a login before it reads the body or checks the version', async () => {
  expect((await api.ask('POST', '/v1/nodes', NEWEST, { body: 'x'.repeat(1024 * 1024 + 1) })).status).toBe(401);
  expect((await api.ask('GET', '/v1/nodes', '1.999')).status).toBe(401);
});

describe('the file of users', () => {
  const path = join(folder, 'other');
  const write = (text: string): void => writeFileSync(path, text);
  const who = (auth: ReturnType<typeof httpBasic>, pair: string): Promise<unknown> =>
    auth.identify({ authorization: basic(pair) }, '/v1/nodes', 'GET', 'test').then(
      ({ user }) => user,
      (error: unknown) => (error as { status: number }).status,
    );

  it('is read again when it changes, and then cached logins are not valid', async () => {
    write(`a:${digest('one')}\n`);
    const auth = httpBasic({ users: path, roles: null }, silentLog, testClock());
    expect([await who(auth, 'a:one'), await who(auth, 'b:two')]).toEqual(['a', 401]);
    write(`a:${digest('new one')}\nb:${digest('two')}\n`);
    expect([await who(auth, 'a:one'), await who(auth, 'b:two')]).toEqual([401, 'b']);
    rmSync(path);
    expect(await who(auth, 'b:two')).toBe(503);
  });

  it('has only successful logins cached, for a minute; an unknown user costs as much work as a known one', async () => {
    write(`a:${digest('one')}\n`);
    let checks = 0;
    const clock = testClock();
    const auth = httpBasic({ users: path, roles: null }, silentLog, clock, async (password) => {
      checks++;
      return password === 'one';
    });
    const cost = async (pair: string): Promise<number> => {
      const before = checks;
      await who(auth, pair);
      return checks - before;
    };
    expect([await cost('a:one'), await cost('a:one'), await cost('a:two'), await cost('a:two'), await cost('b:one')]).toEqual([
      1, 0, 1, 1, 1,
    ]);
    expect(await who(auth, 'b:one')).toBe(401);
    await clock.advance(61);
    expect(await cost('a:one')).toBe(1);
  });

  it.each([
    ['a:$apr1$x$y', 'Only bcrypt digested passwords are supported for a'],
    ['# a comment: too', 'Only bcrypt'],
  ])('is refused at the start with the line %s, without naming the digest', (text, message) => {
    expect(() => parseHtpasswd(text)).toThrow(message);
    write(text);
    expect(() => httpBasic({ users: path, roles: null }, silentLog, testClock())).toThrow(
      `[DEFAULT]http_basic_auth_user_file: cannot use ${path}: ${message}`,
    );
    expect(() => parseHtpasswd(text)).not.toThrow('apr1');
  });
  it('must exist at the start', () => {
    expect(() => httpBasic({ users: '/nonexistent', roles: null }, silentLog, testClock())).toThrow(
      /\[DEFAULT\]http_basic_auth_user_file: cannot use \/nonexistent: .*ENOENT/,
    );
  });
});

describe('the file of roles', () => {
  const users = join(folder, 'users');
  const path = join(folder, 'roles');
  beforeAll(() => writeFileSync(users, `a:${digest('one')}\nb:${digest('two')}\n`));
  const logged: string[] = [];
  const log: Log = { ...silentLog, error: (message, fields) => void logged.push(`${message}: ${JSON.stringify(fields)}`) };
  const start = () => httpBasic({ users, roles: path }, log, testClock());
  const identify = (auth: ReturnType<typeof start>, pair: string, at = '/v1/nodes') =>
    auth.identify({ authorization: basic(pair) }, at, 'GET', 'test');

  it('gives users roles and a scope, and none to users without a section', async () => {
    writeFileSync(path, '[a]\nroles = member\nproject = p\n');
    const auth = start();
    expect(await identify(auth, 'a:one')).toEqual({ ...NOBODY, user: 'a', userName: 'a', roles: ['member', 'reader'], project: 'p' });
    expect(await identify(auth, 'b:two')).toEqual({ ...NOBODY, user: 'b', userName: 'b' });
    // Itself: is_public_api of the policies is true of no other.
    expect(await identify(auth, 'b:two', '/v1/lookup')).toBe(NOBODY);
  });
  it('causes warnings about users that do not exist, and about roles that look misspelt', () => {
    writeFileSync(path, '[a]\nroles = membr, auditor\nproject = p\n[bb]\nroles = reader\nsystem = all\n');
    const warnings: string[] = [];
    httpBasic({ users, roles: path }, { ...silentLog, warn: (message) => void warnings.push(message) }, testClock());
    expect(warnings).toEqual([
      '[DEFAULT]http_basic_roles_file: [a]: no default rule names the role membr; did you mean member?',
      `[DEFAULT]http_basic_roles_file: [bb]: ${users} has no such user`,
    ]);
  });
  it('is optional: without it, policies do not limit users', async () => {
    const auth = httpBasic({ users, roles: null }, log, testClock());
    expect(await identify(auth, 'a:one')).toEqual({ ...NOBODY, user: 'a', userName: 'a', exempt: true });
    expect(await identify(auth, 'a:one', '/v1/lookup')).toEqual({ ...NOBODY, exempt: true });
  });
  it('takes effect at once when it changes, and nobody has access while it is invalid', async () => {
    writeFileSync(path, '[a]\nroles = admin\nsystem = all\n');
    const auth = start();
    expect(await identify(auth, 'a:one')).toMatchObject({ system: true });
    writeFileSync(path, '[a]\nroles = reader\n');
    expect(await identify(auth, 'a:one')).toMatchObject({ system: false, roles: ['reader'] });
    writeFileSync(path, '[a]\nroles = reader\nproject\n');
    logged.length = 0;
    const refused = { status: 503, sentence: 'Problem reading the file of roles' };
    await expect(identify(auth, 'a:one')).rejects.toMatchObject(refused);
    await expect(identify(auth, 'b:two')).rejects.toMatchObject(refused);
    expect(logged).toEqual([expect.stringMatching(/cannot read the roles of users: .*line 3: neither/)]);
    rmSync(path);
    await expect(identify(auth, 'a:one')).rejects.toMatchObject(refused);
    writeFileSync(path, '[a]\nroles = reader\n');
    expect(await identify(auth, 'a:one')).toMatchObject({ roles: ['reader'] });
  });
  it.each([
    ['an invalid line', () => writeFileSync(path, '[a]\nrole = admin\n'), 'line 2: "role" must be one of'],
    ['too many bytes', () => writeFileSync(path, `# ${'x'.repeat(4 * 2 ** 20)}`), 'it has more than 4194304 bytes'],
    ['a folder', () => mkdirSync(path), 'it is not a regular file'],
    ['no file', () => {}, 'ENOENT'],
    ['a pipe', () => execFileSync('mkfifo', [path]), 'it is not a regular file'],
  ])('prevents the start: %s', (_, make, message) => {
    rmSync(path, { recursive: true, force: true });
    make();
    expect(start).toThrow(`[DEFAULT]http_basic_roles_file: cannot use ${path}: `);
    expect(start).toThrow(message);
    rmSync(path, { recursive: true, force: true });
  });
});
