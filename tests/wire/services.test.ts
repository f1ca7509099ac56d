/** Clients of OpenStack services: their authentication, which requests they repeat, and the messages of failures. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createServices, ServiceError, type ServiceCall } from '../../wire/keystone/services';

interface Reply {
  readonly status: number;
  /** A text is sent as it is. */
  readonly body?: object | string;
  readonly location?: string;
  /** The header X-Subject-Token. */
  readonly token?: string;
}
const SILENT: Reply = { status: 0 };
const requests: { readonly line: string; readonly headers: IncomingMessage['headers']; readonly body: string }[] = [];
let replies: Reply[] = [];
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => void chunks.push(chunk));
  request.on('end', () => {
    requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: Buffer.concat(chunks).toString() });
    const { status, body, location, token } = replies.shift() ?? { status: 200, body: {} };
    const more = { ...(location === undefined ? {} : { location }), ...(token === undefined ? {} : { 'x-subject-token': token }) };
    if (status !== 0) response.writeHead(status, more).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  requests.length = 0;
  replies = [];
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const pauses: number[] = [];
async function ask(options: Readonly<Record<string, unknown>>, call?: ServiceCall): Promise<unknown> {
  pauses.length = 0;
  const clock = { now: () => 0, sleep: async (milliseconds: number) => void pauses.push(milliseconds) };
  const named = Object.fromEntries(Object.entries({ auth_type: null, ...options }).map(([name, value]) => [`neutron.${name}`, value]));
  const { neutron } = createServices(named, { clock, signal: new AbortController().signal });
  try {
    return (await neutron.request('/ports', call)).status;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return error;
  } finally {
    await neutron.close();
  }
}

it.each([
  ['unset', {}, undefined],
  ['none', { auth_type: 'none' }, undefined],
  ['http_basic', { auth_type: 'http_basic', username: 'a', password: 'b' }, `Basic ${Buffer.from('a:b').toString('base64')}`],
])('with auth_type %s, a request goes to endpoint_override with the expected headers', async (_, options, authorization) => {
  expect(
    await ask({ ...options, endpoint_override: `${url}/net/v2.0/` }, { method: 'POST', body: { a: 1 }, globalRequestId: 'req-1' }),
  ).toBe(200);
  expect(requests).toMatchObject([{ line: 'POST /net/v2.0/ports', body: '{"a":1}', headers: { 'x-openstack-request-id': 'req-1' } }]);
  expect(requests[0]!.headers.authorization).toBe(authorization);
  expect(requests[0]!.headers['x-auth-token']).toBe(authorization === undefined ? 'notused' : undefined);
});

it.each<[string, Reply, object]>([
  [
    'Neutron',
    { status: 409, body: { NeutronError: { type: 'PortBound', message: 'Port is bound.', detail: '' } } },
    { reason: 'HTTP status 409: Port is bound.' },
  ],
  ['Nova', { status: 400, body: { badRequest: { code: 400, message: 'no' } } }, { reason: 'HTTP status 400: no' }],
  [
    'a list of errors',
    { status: 503, body: { errors: [{ title: 'busy\n' }] } },
    { reason: 'HTTP status 503: busy', kind: 'failing', status: 503 },
  ],
  ['an empty object', { status: 500, body: {} }, { reason: 'HTTP status 500' }],
])('the reason of an error response in the format of %s is read', async (_, reply, expected) => {
  replies = [reply];
  expect(await ask({ endpoint_override: url })).toMatchObject(expected);
});
it('a body of bytes is sent unchanged, with the content type of the caller', async () => {
  await ask({ endpoint_override: url }, { method: 'PUT', body: Buffer.from('{bytes'), headers: { 'content-type': 'text/plain' } });
  await ask({ endpoint_override: url }, { method: 'POST', body: Buffer.from('x') });
  expect(requests.map(({ body, headers }) => [body, headers['content-type']])).toEqual([
    ['{bytes', 'text/plain'],
    ['x', undefined],
  ]);
});
it('endpoint returns the URL without a trailing slash', async () => {
  const parts = { clock: { now: () => 0, sleep: async () => {} }, signal: new AbortController().signal };
  const services = createServices(
    Object.fromEntries(
      ['neutron', 'swift'].flatMap((name) => [
        [`${name}.auth_type`, 'none'],
        [`${name}.endpoint_override`, `${url}/v2.0/`],
      ]),
    ),
    parts,
  );
  expect(await services.neutron.endpoint()).toBe(`${url}/v2.0`);
  expect(await services.swift.endpoint()).toBe(`${url}/v2.0`);
  expect(await services.neutron.projectId()).toBeUndefined();
  await Promise.all(Object.values(services).map((service) => service.close()));
});
it.each<[string, Reply, object | number]>([
  ['a redirect, which is not followed', { status: 302, location: '/elsewhere' }, { kind: 'failing', status: 302 }],
  ['status 401', { status: 401 }, { kind: 'failing', status: 401 }],
  ['status 413', { status: 413, body: 'too large' }, { kind: 'failing', status: 413, reason: 'HTTP status 413' }],
  ['a body that is not JSON', { status: 200, body: '<html>' }, 200],
  ['status 500 and a body that is not JSON', { status: 500, body: '<html>' }, { kind: 'failing', status: 500, reason: 'HTTP status 500' }],
  ['a body beyond the size limit', { status: 200, body: `"${'x'.repeat(5 * 1024 * 1024)}"` }, { kind: 'unreachable' }],
  ['no bytes before the timeout', SILENT, { kind: 'unreachable' }],
])('the outcome of a response with %s', async (_, reply, expected) => {
  replies = [reply];
  const answer = await ask({ endpoint_override: url, timeout: reply === SILENT ? 0.05 : 60 });
  if (typeof expected === 'number') expect(answer).toBe(expected);
  else expect(answer).toMatchObject(expected);
  expect(requests).toHaveLength(1);
});
it.each([302, 404, 500])('stream and upload fail with status %i', async (status) => {
  const parts = { clock: { now: () => 0, sleep: async () => {} }, signal: new AbortController().signal };
  const { swift } = createServices({ 'swift.endpoint_override': url, 'swift.auth_type': 'none' }, parts);
  const error = { kind: 'failing', status };
  replies = [{ status }, { status }];
  await expect(swift.stream('/a', {}, parts.signal)).rejects.toMatchObject(error);
  await expect(swift.upload('/a', { body: Readable.from([Buffer.from('x')]), size: 1 }, {}, parts.signal)).rejects.toMatchObject(error);
  await swift.close();
});
it('an upload whose token is not accepted fails, and the next one has another token', async () => {
  const named = { auth_type: 'password', auth_url: url, username: 'u', password: 'p', user_domain_id: 'd', endpoint_override: url };
  const parts = { clock: { now: () => 0, sleep: async () => {} }, signal: new AbortController().signal };
  const { swift } = createServices(Object.fromEntries(Object.entries(named).map(([name, value]) => [`swift.${name}`, value])), parts);
  const issued = (token: string): Reply => ({ status: 201, token, body: { token: { expires_at: '2100-01-01T00:00:00Z' } } });
  const upload = () => swift.upload('/a', { body: Readable.from([Buffer.from('x')]), size: 1 }, {}, parts.signal);
  replies = [issued('one'), { status: 401 }, issued('two'), { status: 201 }];
  await expect(upload()).rejects.toMatchObject({ status: 401 });
  await upload();
  expect(requests.map(({ headers }) => headers['x-auth-token'])).toEqual([undefined, 'one', undefined, 'two']);
  await swift.close();
});
it('request accepts a status that the caller lists', async () => {
  replies = [{ status: 404 }];
  expect(await ask({ endpoint_override: url }, { accept: [404] })).toBe(404);
});

it.each([
  [{}, [503], 503, []],
  [{ status_code_retries: 2, retriable_status_codes: ['503'] }, [503, 503, 200], 200, [500, 1000]],
  [{ status_code_retries: 1, retriable_status_codes: ['503'], status_code_retry_delay: 3 }, [503, 503], 503, [3000]],
  [{ status_code_retries: 2, retriable_status_codes: ['503'] }, [500], 500, []],
])('request with %j, after responses %j, retries as expected', async (options, statuses, last, expected) => {
  replies = statuses.map((status) => ({ status }));
  const answer = await ask({ ...options, endpoint_override: url });
  expect(answer instanceof ServiceError ? answer.status : answer).toBe(last);
  expect(pauses).toEqual(expected);
});
it('request retries a failed connection', async () => {
  const closed = 'http://127.0.0.1:1';
  expect(await ask({ endpoint_override: closed, connect_retries: 2, connect_retry_delay: 1 })).toMatchObject({ kind: 'unreachable' });
  expect(pauses).toEqual([1000, 1000]);
});

it.each([
  [{}, '[neutron]endpoint_override: it is not set'],
  [{ auth_type: 'http_basic', endpoint_override: 'http://127.0.0.1' }, '[neutron]username: it is not set'],
  [{ auth_type: 'password' }, '[neutron]auth_url: it is not set'],
  [{ auth_section: 'nothing' }, '[neutron]auth_section: this program knows no section [nothing]'],
])('request names the option that is missing or invalid in %j', async (options, message) => {
  const error = await ask(options);
  expect(error).toMatchObject({ kind: 'refused' });
  expect((error as Error).message).toContain(message);
});

it.each(['request', 'upload', 'stream'] as const)('%s: an abort by the caller ends the wait for the authentication', async (way) => {
  // The server reads the request and never answers.
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const authenticating = once(silent, 'request');
  const options = {
    auth_type: 'password',
    auth_url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    username: 'u',
    password: 'p',
  };
  const named = Object.fromEntries(Object.entries({ ...options, user_domain_id: 'd' }).map(([name, value]) => [`swift.${name}`, value]));
  const program = new AbortController();
  const { swift } = createServices(named, { clock: { now: () => 0, sleep: async () => {} }, signal: program.signal });
  const caller = new AbortController();
  const { signal } = caller;
  const body = Readable.from([]);
  const ways = {
    request: () => swift.request('/c', { signal }),
    upload: () => swift.upload('/c/o', { body, size: 0 }, {}, signal),
    stream: () => swift.stream('/c/o', {}, signal),
  };
  const waiting = expect(ways[way]()).rejects.toMatchObject({
    kind: 'unreachable',
    message: expect.stringContaining('the node is gone') as unknown,
  });
  await authenticating;
  caller.abort(new Error('the node is gone'));
  await waiting;
  program.abort();
  await swift.close();
  silent.close();
  silent.closeAllConnections();
});
