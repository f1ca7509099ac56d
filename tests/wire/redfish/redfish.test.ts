import { randomBytes } from 'node:crypto';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ownCertificate } from '../../../wire/http/certificate';
import { createRedfishPool, RedfishError, rootPath, type RedfishPool, type RedfishTarget } from '../../../wire/redfish';
import { SYSTEM, redfishError, redfishService, type RedfishReply, type RedfishService } from './service';
import { until } from '../../support/until';

let service: RedfishService;
const pools: RedfishPool[] = [];
const poolOf = (options?: Parameters<typeof createRedfishPool>[0]): RedfishPool => {
  const pool = createRedfishPool(options);
  pools.push(pool);
  return pool;
};
beforeEach(async () => {
  service = await redfishService();
});
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
  await service.close();
});
const user = { username: 'admin', password: 'secret' };
const target = (changes: Partial<RedfishTarget> = {}): RedfishTarget => ({
  address: service.url,
  authType: 'auto',
  verifyCa: true,
  ...changes,
});
const get = (pool: RedfishPool, at: RedfishTarget, path = SYSTEM, more: object = {}): ReturnType<RedfishPool['request']> =>
  pool.request(at, 'GET', path, { timeoutMs: 20_000, ...more });
const failure = async (promise: Promise<unknown>): Promise<RedfishError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RedfishError);
  return error as RedfishError;
};
/** A service with sessions: numbered tokens, each of which the test can end. */
const withSessions = (): { readonly valid: Set<string> } => {
  const valid = new Set<string>();
  let made = 0;
  service.reply = ({ method, path, headers, body }) => {
    if (path === '/redfish/v1/') return undefined;
    if (method === 'POST' && path === '/redfish/v1/SessionService/Sessions') {
      if ((body as { Password: string }).Password !== user.password) return { status: 401, body: redfishError('no') };
      const token = `token-${++made}`;
      valid.add(token);
      return { status: 201, headers: { 'X-Auth-Token': token, Location: `${service.url}/redfish/v1/SessionService/Sessions/${made}` } };
    }
    const token = headers['x-auth-token'];
    if (typeof token !== 'string' || !valid.has(token)) return { status: 401, body: redfishError('who are you') };
    return method === 'DELETE' ? { status: 204 } : undefined;
  };
  return { valid };
};
const words = (): readonly string[] => service.asked.map(({ method, path }) => `${method} ${path}`);

describe('authentication', () => {
  it('without a user, requests have no Authorization', async () => {
    const answer = await get(poolOf(), target());
    expect(answer).toMatchObject({ status: 200, body: { PowerState: 'On' } });
    expect(answer.headers['content-type']).toBe('application/json');
    expect(service.asked[0]!.headers).toMatchObject({ 'odata-version': '4.0', accept: 'application/json' });
    expect(service.asked[0]!.headers.authorization).toBeUndefined();
  });
  it('basic: each request carries the password', async () => {
    await get(poolOf(), target({ ...user, authType: 'basic' }));
    expect(words()).toEqual([`GET ${SYSTEM}`]);
    expect(service.asked[0]!.headers.authorization).toBe(`Basic ${Buffer.from('admin:secret').toString('base64')}`);
  });
  it('session: parallel requests share one login, and close deletes the session', async () => {
    withSessions();
    const pool = poolOf();
    await Promise.all(Array.from({ length: 5 }, () => get(pool, target({ ...user, authType: 'session' }))));
    await get(pool, target({ ...user, authType: 'session' }));
    expect(words().filter((line) => line.startsWith('POST'))).toEqual(['POST /redfish/v1/SessionService/Sessions']);
    expect(service.asked.find(({ method }) => method === 'POST')!.body).toEqual({ UserName: 'admin', Password: 'secret' });
    expect(service.asked.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
    await pool.close();
    expect(words().at(-1)).toBe('DELETE /redfish/v1/SessionService/Sessions/1');
    expect((await failure(get(pool, target()))).kind).toBe('closed');
  });
  it('session: a session that has expired is opened again', async () => {
    const { valid } = withSessions();
    const pool = poolOf();
    await get(pool, target({ ...user, authType: 'session' }));
    valid.clear();
    expect((await get(pool, target({ ...user, authType: 'session' }))).status).toBe(200);
    expect(words().filter((line) => line.startsWith('POST')).length).toBe(2);
  });
  it('session: a wrong password fails without a retry', async () => {
    withSessions();
    const error = await failure(get(poolOf(), target({ ...user, password: 'x', authType: 'session' })));
    expect(error).toMatchObject({ kind: 'status', status: 401 });
    expect(words().filter((line) => line.startsWith('POST')).length).toBe(1);
  });
  it('auto: uses a session if the service supports it', async () => {
    withSessions();
    await get(poolOf(), target(user));
    expect(service.asked.at(-1)!.headers['x-auth-token']).toBe('token-1');
  });
  it.each([404, 405, 501])('auto: uses basic authentication when the SessionService answers %i', async (status) => {
    service.reply = ({ method }) => (method === 'POST' ? { status, body: redfishError('no sessions') } : undefined);
    const pool = poolOf();
    await get(pool, target(user));
    await get(pool, target(user));
    expect(service.asked.at(-1)!.headers.authorization).toMatch(/^Basic /);
    expect(words().filter((line) => line.startsWith('POST')).length).toBe(1);
  });
  it('session: the pool limits the number of sessions', async () => {
    withSessions();
    const pool = poolOf({ maxSessions: 1 });
    const first = target({ ...user, authType: 'session' });
    await get(pool, first);
    await get(pool, { ...first, username: 'other' });
    await until('the end of the first', () => words().includes('DELETE /redfish/v1/SessionService/Sessions/1'));
  });
});

describe('failures', () => {
  it('an error response causes an error with its ExtendedInfo', async () => {
    service.reply = () => ({ status: 400, body: redfishError('the action failed because of X') });
    expect(await failure(poolOf().request(target(), 'POST', '/x', { body: { a: 1 }, timeoutMs: 20_000 }))).toMatchObject({
      kind: 'status',
      status: 400,
      message: `HTTP POST ${service.url}/x returned code 400. Base.1.0.GeneralError: general Extended information: the action failed because of X`,
    });
    expect(service.asked[0]!.headers['content-type']).toBe('application/json');
  });
  it.each<[string, unknown]>([
    ['no body', undefined],
    ['a list', [1]],
    ['another error', { error: 'x' }],
    ['invalid ExtendedInfo', { error: { code: 1, '@Message.ExtendedInfo': [null, 5, { Message: {} }] } }],
    ['a long message', redfishError('x'.repeat(100_000))],
  ])('an error response with %s causes a short error', async (_, body) => {
    service.reply = () => ({ status: 500, body });
    const error = await failure(get(poolOf(), target()));
    expect(error).toMatchObject({ kind: 'status', status: 500 });
    expect(error.message.length).toBeLessThan(1500);
  });
  // Some services quote the request, whose headers and body hold the login.
  it.each(['basic', 'session'] as const)('secrets of the request are masked in an error response that quotes it (%s)', async (authType) => {
    const pool = poolOf();
    const login = { username: 'admin', password: 'se"cr.t ü' };
    service.reply = ({ method, path, headers, body }) => {
      if (method === 'POST' && path.endsWith('/Sessions')) return { status: 201, body: {}, headers: { 'x-auth-token': 'token-1234' } };
      return { status: 400, body: redfishError(`cannot: ${JSON.stringify(headers)} ${login.password} ${JSON.stringify(body)}`) };
    };
    const { message } = await failure(get(pool, target({ ...login, authType })));
    expect(message).toContain('cannot: {');
    expect(message).toContain('******');
    for (const secret of [login.password, 'token-1234', Buffer.from(`admin:${login.password}`).toString('base64')])
      expect(message).not.toContain(secret);
    service.reply = ({ body }) => ({
      status: 401,
      body: redfishError(`refused: ${(body as { Password?: string } | undefined)?.Password}`),
    });
    if (authType === 'session') expect((await failure(get(poolOf(), target({ ...login, authType })))).message).toMatch(/refused: \*{6}$/);
  });
  it('the password is masked in the messages of a task, but not in other members', async () => {
    service.reply = () => ({ status: 200, body: { Name: 'secret', Messages: [{ Message: 'by secret', MessageArgs: ['secret'] }] } });
    expect((await get(poolOf(), target({ ...user, authType: 'basic' }))).body).toEqual({
      Name: 'secret',
      Messages: [{ Message: 'by ******', MessageArgs: ['******'] }],
    });
  });
  it('a response that is not JSON is a protocol error', async () => {
    service.reply = (_, response) => {
      response.end('<html>');
      return undefined;
    };
    expect((await failure(get(poolOf(), target()))).kind).toBe('protocol');
  });
  it('a response beyond the size limit fails', async () => {
    service.reply = (_, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65536, 0x20)));
      };
      response.on('drain', more);
      more();
      return 'hang';
    };
    const error = await failure(get(poolOf(), target()));
    expect(error.message).toContain('more than');
  });
  it('a request without a response fails after the timeout', async () => {
    service.reply = () => 'hang';
    const error = await failure(get(poolOf(), target(), SYSTEM, { timeoutMs: 100 }));
    expect(error).toMatchObject({
      kind: 'interrupted',
      message: `Unable to connect to ${service.url}${SYSTEM}. Error: no answer within 0.1 s`,
    });
  });
  it('a connection that breaks is an interruption', async () => {
    service.reply = (_, response) => {
      response.destroy();
      return 'hang';
    };
    expect((await failure(get(poolOf(), target()))).kind).toBe('interrupted');
  });
  it('a service that cannot be reached or resolved is unreachable', async () => {
    await service.close();
    const error = await failure(get(poolOf(), target()));
    expect(error.kind).toBe('unreachable');
    expect(error.message).toMatch(/^Unable to connect to http:.* Error: .*ECONNREFUSED/);
    expect((await failure(get(poolOf(), target({ address: 'http://bmc.invalid' })))).kind).toBe('unreachable');
  });
  it('an aborted request does not wait for a login, which others still get', async () => {
    withSessions();
    const { reply } = service;
    let answerLogin = (): void => {};
    service.reply = (asked, response) => {
      const said = reply(asked, response);
      if (asked.method !== 'POST') return said;
      const { status, headers } = said as RedfishReply;
      answerLogin = () => void response.writeHead(status, headers).end();
      return 'hang';
    };
    const pool = poolOf();
    const [leaves, stays] = [new AbortController(), new AbortController()];
    const left = get(pool, target(user), SYSTEM, { signal: leaves.signal });
    const stayed = get(pool, target(user), SYSTEM, { signal: stays.signal });
    await until('the login arrives', () => words().some((line) => line.startsWith('POST')));
    leaves.abort(new Error('no longer wanted'));
    await expect(left).rejects.toThrow('no longer wanted');
    answerLogin();
    expect((await stayed).status).toBe(200);
    expect(words().filter((line) => line.startsWith('POST'))).toHaveLength(1);
  });
  it('an aborted request fails with the reason of the abort', async () => {
    service.reply = () => 'hang';
    const stop = new AbortController();
    const waiting = get(poolOf(), target(), SYSTEM, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error('enough')), 30);
    await expect(waiting).rejects.toThrow('enough');
    await expect(get(poolOf(), target(), SYSTEM, { signal: stop.signal })).rejects.toThrow('enough');
  });
  it.each([
    'http://evil.example/x',
    '//evil.example/x',
    'redfish/v1',
    '/a\r\nX: y',
    '/a\ud800',
    'ftp://127.0.0.1/x',
    '',
    `/${'a'.repeat(2000)}`,
  ])('the path %j is rejected', async (path) => {
    expect((await failure(get(poolOf(), target(), path))).kind).toBe('protocol');
    expect(service.asked).toEqual([]);
  });
});

describe('links', () => {
  it.each([
    ['/redfish/v1/Chassis/Power Board', '/redfish/v1/Chassis/Power%20Board'],
    [' /redfish/v1/Systems/1 ', SYSTEM],
    ['/redfish/v1/Größe%20', '/redfish/v1/Gr%C3%B6%C3%9Fe%20'],
    ['http://127.0.0.1/redfish/v1/Systems/1?a=b', `${SYSTEM}?a=b`],
    ['https://127.0.0.1:8443/redfish/v1/Systems/1', SYSTEM],
  ])('%j is read as the path %s of this service', async (link, path) => {
    service.reply = () => ({ status: 200, body: {} });
    await get(poolOf(), target(), link);
    expect(words()).toEqual([`GET ${path}`]);
  });
});

describe('lost sessions', () => {
  const refuse = (status: number): RedfishReply => ({ status, body: redfishError('no') });
  it('a 403 opens a session once, and ends the old one', async () => {
    const { valid } = withSessions();
    const pool = poolOf();
    await get(pool, target(user));
    valid.clear();
    const { reply } = service;
    service.reply = (asked, response) => {
      const said = reply(asked, response);
      return typeof said === 'object' && said.status === 401 ? refuse(403) : said;
    };
    expect((await get(pool, target(user))).status).toBe(200);
    await until('the old session ends', async () => words().includes('DELETE /redfish/v1/SessionService/Sessions/1'));
    expect(valid.size).toBe(1);
  });
  it('a 403 that a new session gets too is final, and opens no further sessions', async () => {
    withSessions();
    const { reply } = service;
    service.reply = (asked, response) => (asked.path === '/forbidden' ? refuse(403) : reply(asked, response));
    const pool = poolOf();
    for (let tries = 0; tries < 5; tries++) expect((await failure(get(pool, target(user), '/forbidden'))).status).toBe(403);
    expect(words().filter((word) => word.startsWith('POST'))).toHaveLength(2);
  });
  it.each(['session', 'basic'] as const)('with %s authentication, a 401 with a body that breaks off is a 401', async (authType) => {
    withSessions();
    const { reply } = service;
    service.reply = (asked, response) => {
      if (asked.path !== '/broken') return reply(asked, response);
      response.writeHead(401, { 'content-length': 100 }).write('{');
      setImmediate(() => response.destroy());
      return 'hang';
    };
    expect(await failure(get(poolOf(), target({ ...user, authType }), '/broken'))).toMatchObject({ kind: 'status', status: 401 });
  });
});

it.each(['session', 'auto'] as const)('sessions of old services are at /redfish/v1/Sessions (%s)', async (authType) => {
  withSessions();
  const { reply } = service;
  delete (service.resources['/redfish/v1/'] as Record<string, unknown>)['Links'];
  service.reply = (asked, response) => {
    if (asked.path === '/redfish/v1/SessionService/Sessions') return { status: 404, body: redfishError('no') };
    return reply({ ...asked, path: asked.path.replace('/v1/Sessions', '/v1/SessionService/Sessions') }, response);
  };
  const pool = poolOf();
  await get(pool, target({ ...user, authType }));
  expect(service.asked.at(-1)!.headers['x-auth-token']).toBe('token-1');
});
it('a log-in page in place of an answer opens a session once, and a page that a new session gets too is final', async () => {
  const { valid } = withSessions();
  const { reply } = service;
  service.reply = (asked, response) => {
    const said = reply(asked, response);
    const isPage = asked.path === '/page' || (typeof said === 'object' && said.status === 401 && asked.method === 'GET');
    if (!isPage) return said;
    response.writeHead(200, { 'content-type': 'text/html' }).end(' <html>Login</html>');
    return 'hang';
  };
  const pool = poolOf();
  await get(pool, target(user));
  valid.clear();
  expect((await get(pool, target(user))).status).toBe(200);
  for (let tries = 0; tries < 3; tries++) expect((await failure(get(pool, target(user), '/page'))).isPage).toBe(true);
  expect(words().filter((word) => word.startsWith('POST'))).toHaveLength(3);
});
it('with too many sessions, each request carries the password for ten minutes, also where sessions were open before', async () => {
  const { valid } = withSessions();
  const { reply } = service;
  let [isFull, now] = [false, 0];
  service.reply = (asked, response) => {
    if (isFull && asked.method === 'POST')
      return { status: 503, body: { error: { code: 'Base.1.8.SessionLimitExceeded', message: 'The session limit is exceeded.' } } };
    return asked.headers.authorization === undefined ? reply(asked, response) : undefined;
  };
  const pool = poolOf({ now: () => now });
  await get(pool, target(user));
  valid.clear();
  isFull = true;
  await get(pool, target(user));
  await get(pool, target(user));
  expect(service.asked.at(-1)!.headers.authorization).toMatch(/^Basic /);
  expect(words().filter((word) => word.startsWith('POST'))).toHaveLength(2);
  [isFull, now] = [false, 600_001];
  await get(pool, target(user));
  expect(service.asked.at(-1)!.headers['x-auth-token']).toBe('token-2');
});
describe('refused credentials', () => {
  const refused: RedfishReply = { status: 401, body: redfishError('no') };
  const tries = (): number =>
    service.asked.filter(({ headers, method }) => headers.authorization !== undefined || method === 'POST').length;
  it.each(['basic', 'auto', 'session'] as const)('rest after three refusals in turn, for longer each time (%s)', async (authType) => {
    let now = 0;
    service.reply = ({ path }) => (path === '/redfish/v1/' ? undefined : refused);
    const pool = poolOf({ now: () => now });
    for (let requests = 0; requests < 6; requests++)
      expect(await failure(get(pool, target({ ...user, authType })))).toMatchObject({ kind: 'status', status: 401 });
    expect(tries()).toBe(3);
    expect((await failure(get(pool, target({ ...user, authType })))).message).toMatch(/refused the credentials 3 times; .* again in 30 s$/);
    // Other credentials are not concerned.
    await failure(get(pool, target({ ...user, password: 'other', authType })));
    expect(tries()).toBeGreaterThan(3);
    const before = tries();
    now = 30_001;
    await failure(get(pool, target({ ...user, authType })));
    expect((await failure(get(pool, target({ ...user, authType })))).message).toMatch(/again in 60 s$/);
    expect(tries()).toBe(before + 1);
  });
  it('that have worked are tried again at once, a few times', async () => {
    let bad = 0;
    service.reply = () => (bad-- > 0 ? refused : { status: 200, body: {} });
    const pool = poolOf();
    const at = target({ ...user, authType: 'basic' });
    await get(pool, at);
    bad = 2;
    expect((await get(pool, at)).status).toBe(200);
    bad = 9;
    expect((await failure(get(pool, at))).status).toBe(401);
    expect(bad).toBe(6);
  });
  it.each(['SMC.1.0.OemLicenseNotPassed', 'Base.1.8.InsufficientPrivilege'])('are not meant by %s', async (code) => {
    service.reply = () => ({ status: 401, body: { error: { code, message: 'no' } } });
    const pool = poolOf();
    for (let requests = 0; requests < 5; requests++) await failure(get(pool, target({ ...user, authType: 'basic' })));
    expect(service.asked).toHaveLength(5);
  });
});
it.each([
  [
    { '@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.PasswordChangeRequired', MessageArgs: ['/redfish/v1/AccountService/Accounts/1'] }] },
    '(/redfish/v1/AccountService/Accounts/1)',
  ],
  [{}, undefined],
])('a refusal says that the password must be changed, where the log-in %j has said so', async (body, account) => {
  service.reply = ({ method, path }) => {
    if (path === '/redfish/v1/') return undefined;
    if (method === 'POST') return { status: 201, body, headers: { 'x-auth-token': 'token-1234' } };
    return { status: 403, body: redfishError('no') };
  };
  const error = await failure(get(poolOf(), target(user)));
  expect(error.messageIds.includes('PasswordChangeRequired')).toBe(account !== undefined);
  if (account !== undefined) expect(error.message).toContain(`The password must be changed first ${account}.`);
});

describe('a service that drops connections', () => {
  /** Drops the second request of each connection, before it is answered. */
  const drops = (): void => {
    const used = new WeakSet<object>();
    service.reply = (_, response) => {
      const { socket } = response;
      if (socket === null || !used.has(socket)) {
        used.add(socket!);
        return { status: 200, body: {} };
      }
      socket.destroy();
      return 'hang';
    };
  };
  /** Requests until one meets a connection that was used already. */
  const untilDropped = async (pool: RedfishPool): Promise<void> => {
    let answered = 0;
    while (service.asked.length <= answered) {
      await get(pool, target());
      answered++;
    }
  };
  it('gets the request again at once, and a connection for each request from then on', async () => {
    drops();
    const pool = poolOf();
    await untilDropped(pool);
    const before = service.asked.length;
    for (let requests = 0; requests < 3; requests++) await get(pool, target());
    expect(service.asked.slice(before - 1).map(({ headers }) => headers.connection)).toEqual(['close', 'close', 'close', 'close']);
  });
  it('gets what must not be sent twice on a connection of its own', async () => {
    drops();
    const pool = poolOf();
    await get(pool, target());
    for (let posts = 0; posts < 3; posts++)
      expect((await pool.request(target(), 'POST', '/x', { timeoutMs: 20_000, body: {} })).status).toBe(200);
    expect(service.asked).toHaveLength(4);
  });
  it.each([
    [false, 'interrupted'],
    [true, undefined],
  ])('gets a POST again only if it is repeatable (%s)', async (repeatable, kind) => {
    const pool = poolOf();
    const send = (): Promise<unknown> => pool.request(target(), 'POST', '/x', { timeoutMs: 20_000, repeatable });
    service.reply = (_, response) => (service.asked.length === 1 ? (response.destroy(), 'hang') : { status: 204 });
    const result = await send().catch((error: unknown) => (error as RedfishError).kind);
    expect(typeof result === 'string' ? result : undefined).toBe(kind);
    expect(service.asked).toHaveLength(repeatable ? 2 : 1);
  });
});

describe('malformed HTTP', () => {
  const BODY = '{"a":1}';
  let answers: string[];
  let bytes: (body: string) => string;
  let malformed: Server;
  const listening = async (server: Server): Promise<string> => {
    malformed = server;
    server.on('connection', (socket) => socket.on('error', () => {}));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const answer = (socket: Socket): void =>
    void socket
      .on('error', () => {})
      .once('data', (data: Buffer) => {
        answers.push(data.toString().split('\r\n', 1)[0]!);
        socket.end(bytes(BODY), 'latin1');
      });
  beforeEach(() => {
    answers = [];
    bytes = (body) => `HTTP/1.1 200 OK\r\n X-Odd: 1\r\nName : x\nContent-Length : ${body.length}\r\n\r\n${body}`;
  });
  afterEach(() => new Promise((done) => malformed.close(done)));
  it('is read again with a lenient reader, which later requests use at once', async () => {
    const address = `http://${await listening(createServer(answer))}`;
    const pool = poolOf();
    expect((await get(pool, target({ address }))).body).toEqual({ a: 1 });
    expect((await pool.request(target({ address }), 'POST', '/x', { timeoutMs: 20_000, body: { b: 2 } })).headers).toMatchObject({
      'x-odd': '1',
      name: 'x',
    });
    expect(answers).toEqual([`GET ${SYSTEM} HTTP/1.1`, `GET ${SYSTEM} HTTP/1.1`, 'POST /x HTTP/1.1']);
  });
  it('is not read again for a POST, which may have been carried out', async () => {
    const address = `http://${await listening(createServer(answer))}`;
    expect((await failure(poolOf().request(target({ address }), 'POST', '/x', { timeoutMs: 20_000 }))).kind).toBe('interrupted');
    expect(answers).toEqual(['POST /x HTTP/1.1']);
  });
  it('is read over TLS', async () => {
    const { certificate, privateKey } = ownCertificate('127.0.0.1', 'bmc', Date.now(), randomBytes);
    const server = createTlsServer({ cert: certificate, key: privateKey }, answer);
    const address = `https://${await listening(server)}`;
    expect((await get(poolOf(), target({ address, verifyCa: false }))).body).toEqual({ a: 1 });
  });
  it.each([
    ['a head without an end', () => `HTTP/1.1 200 OK\r\n X: ${'x'.repeat(100_000)}`],
    ['an answer that is no HTTP', () => '220 mail ready\r\n\r\n'],
    ['a body that breaks off', () => `HTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 100\r\n\r\n{`],
  ])('%s is an interrupted request', async (_, made) => {
    bytes = made;
    const address = `http://${await listening(createServer(answer))}`;
    expect((await failure(get(poolOf(), target({ address })))).kind).toBe('interrupted');
  });
  it('ends with its time limit, and with the signal', async () => {
    let asked = 0;
    const address = `http://${await listening(createServer((socket) => void socket.once('data', () => (asked++ === 0 ? socket.end(bytes(BODY)) : undefined))))}`;
    const pool = poolOf();
    expect((await failure(get(pool, target({ address }), SYSTEM, { timeoutMs: 200 }))).message).toContain('no answer within 0.2 s');
    const stop = new AbortController();
    const waiting = get(pool, target({ address }), SYSTEM, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error('enough')), 30);
    await expect(waiting).rejects.toThrow('enough');
  });
});

describe('redirect', () => {
  const leadsTo = (status: number, place: string): void => {
    service.reply = ({ path }) => (path === '/old' ? { status, headers: { Location: place } } : undefined);
  };
  it.each([301, 302, 307, 308])('%i on the same host is followed', async (status) => {
    leadsTo(status, SYSTEM);
    expect(await get(poolOf(), target(), '/old')).toMatchObject({ status: 200, body: { PowerState: 'On' } });
  });
  it.each([
    ['http://127.0.0.2:1/x', 'another host'],
    ['http://[', 'another host'],
    ['', 'nowhere'],
    ['/old', 'which is not followed'],
  ])('to %j is not followed', async (place, words) => {
    leadsTo(302, place);
    const error = await failure(get(poolOf(), target(user), '/old'));
    expect([error.kind, error.message]).toEqual(['protocol', expect.stringContaining(words)]);
    expect(service.asked.length).toBeLessThanOrEqual(7);
  });
  it('of a PATCH or POST is followed only if it keeps the method', async () => {
    leadsTo(302, SYSTEM);
    expect((await failure(poolOf().request(target(), 'POST', '/old', { body: {}, timeoutMs: 20_000 }))).kind).toBe('protocol');
    leadsTo(307, SYSTEM);
    await poolOf().request(target(), 'PATCH', '/old', { body: { Boot: {} }, timeoutMs: 20_000 });
    expect(service.asked.at(-1)).toMatchObject({ method: 'PATCH', path: SYSTEM });
  });
});

it('accepts gzipped responses from services that refuse identity, up to the size limit', async () => {
  let bytes = gzipSync(JSON.stringify({ Id: 'packed' }));
  service.reply = ({ headers }, response) => {
    if (headers['accept-encoding'] === 'identity') return { status: 406 };
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes);
    return 'hang';
  };
  expect((await get(poolOf(), target())).body).toEqual({ Id: 'packed' });
  bytes = gzipSync(Buffer.alloc(20 << 20, 0x20));
  expect(await failure(get(poolOf(), target()))).toMatchObject({ kind: 'protocol' });
});
it('returns the Retry-After of an error and the path of a Location', async () => {
  service.reply = ({ path }) =>
    path === '/busy'
      ? { status: 503, headers: { 'Retry-After': '7' } }
      : { status: 202, headers: { Location: 'https://own.name/tasks/1?x' } };
  expect(await failure(get(poolOf(), target(), '/busy'))).toMatchObject({ status: 503, retryAfterMs: 7000 });
  expect(await get(poolOf(), target())).toMatchObject({ status: 202, location: '/tasks/1?x' });
});
it('opens a session for each request with maxSessions = 0', async () => {
  withSessions();
  const pool = poolOf({ maxSessions: 0 });
  await get(pool, target({ ...user, authType: 'session' }));
  await pool.close();
  expect(words().filter((line) => /^(POST|DELETE)/.test(line))).toEqual([
    'POST /redfish/v1/SessionService/Sessions',
    'DELETE /redfish/v1/SessionService/Sessions/1',
  ]);
});

describe('TLS certificates', () => {
  let folder: string;
  let secure: RedfishService;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloomery-redfish-'));
    const { certificate, privateKey } = ownCertificate('127.0.0.1', 'bmc', Date.now(), randomBytes);
    writeFileSync(join(folder, 'cert'), certificate);
    secure = await redfishService({ cert: certificate, key: privateKey });
  });
  afterAll(async () => {
    await secure.close();
    rmSync(folder, { recursive: true });
  });
  it('of unknown authorities are rejected', async () => {
    const error = await failure(get(poolOf(), target({ address: secure.url })));
    expect(error.kind).toBe('untrusted');
    expect(error.message).toMatch(/certificate verify failed: .*self-signed/);
  });
  it('are not verified with verifyCa = false', async () => {
    expect((await get(poolOf(), target({ address: secure.url, verifyCa: false }))).status).toBe(200);
  });
  it('are verified with a CA file or the files of a directory', async () => {
    expect((await get(poolOf(), target({ address: secure.url, verifyCa: join(folder, 'cert') }))).status).toBe(200);
    expect((await get(poolOf(), target({ address: secure.url, verifyCa: folder }))).status).toBe(200);
  });
  it('fail without the CA file', async () => {
    expect((await failure(get(poolOf(), target({ address: secure.url, verifyCa: '/no/such' })))).message).toContain('/no/such');
  });
  it('are used with the requested TLS version and ciphers', async () => {
    const tls = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_256_GCM_SHA384' } as const;
    expect((await get(poolOf(), target({ address: secure.url, verifyCa: false, tls }))).status).toBe(200);
  });
});

it.each([
  ['https://bmc', '/redfish/v1/'],
  ['https://bmc/', '/redfish/v1/'],
  ['https://bmc:8443/other/v1', '/other/v1/'],
  ['https://bmc/other/v1//', '/other/v1/'],
])('rootPath(%s) is %s', (address, path) => expect(rootPath({ address })).toBe(path));
