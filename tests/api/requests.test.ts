/** Requests before they reach a handler: CORS, proxies, Accept, health checks, slow clients. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { accepts } from '../../api/http/accept';
import { createCors } from '../../api/http/cors';
import { baseOf } from '../../api/http/forwarded';
import { createHealthcheck } from '../../api/http/healthcheck';
import { createProbes } from '../../api/http/probes';
import { loadOptions } from '../../config/load';
import { OPTIONS, useApi } from '../support/api';
import { NEWEST } from '../support/newest';

const api = useApi(
  { 'cors.allowed_origin': ['https://page'], 'api.request_timeout': 1 },
  createProbes({
    healthcheck: createHealthcheck(
      loadOptions([], {}).options,
      { isDatabaseUp: async () => true, lastingDelay: () => 0, loginRefusal: () => undefined },
      Date.now,
    ),
    scrape: async () => ({ type: 'text/plain', text: 'up 1\n' }),
  }),
);

// As measured at Ironic: without [cors] options there are no CORS headers; with an origin, the other options default as oslo.middleware's.
describe('CORS headers', () => {
  const corsHeaders = (method: string, headers: object, options: object = {}): object =>
    createCors({ ...OPTIONS, 'cors.allowed_origin': ['http://good:80', 'https://other'], ...options })(
      method,
      headers as IncomingHttpHeaders,
    );
  const basic = { Vary: 'Origin', 'Access-Control-Allow-Origin': 'https://other', 'Access-Control-Allow-Credentials': 'true' };
  const other = { origin: 'https://other' };
  const wants = (method: string, headers?: string): object => ({
    ...other,
    'access-control-request-method': method,
    ...(headers === undefined ? {} : { 'access-control-request-headers': headers }),
  });
  it.each<[string, object, object, object?]>([
    ['GET', {}, {}],
    ['GET', { origin: 'http://bad' }, {}],
    ['GET', { origin: 'null' }, {}],
    ['GET', other, basic],
    ['GET', other, {}, { 'cors.allowed_origin': [] }],
    ['GET', other, { ...basic, 'Access-Control-Allow-Origin': '*' }, { 'cors.allowed_origin': ['*'] }],
    ['GET', other, { ...basic, 'Access-Control-Expose-Headers': 'X-A,X-B' }, { 'cors.expose_headers': ['X-A', 'X-B'] }],
    ['GET', other, { Vary: 'Origin', 'Access-Control-Allow-Origin': 'https://other' }, { 'cors.allow_credentials': false }],
    ['OPTIONS', other, {}],
    ['OPTIONS', { 'access-control-request-method': 'GET' }, {}],
    ['OPTIONS', wants('GET'), { ...basic, 'Access-Control-Max-Age': '3600', 'Access-Control-Allow-Methods': 'GET' }],
    ['OPTIONS', wants('HEAD'), { ...basic, 'Access-Control-Max-Age': '3600', 'Access-Control-Allow-Methods': 'HEAD' }],
    ['OPTIONS', wants('get'), {}],
    ['OPTIONS', wants('GET'), {}, { 'cors.allow_methods': ['PUT'] }],
    ['OPTIONS', wants('GET', 'X-Foo'), {}],
    ['OPTIONS', wants('GET'), { ...basic, 'Access-Control-Allow-Methods': 'GET' }, { 'cors.max_age': 0 }],
    [
      'OPTIONS',
      wants('PUT', 'x-auth-token, content-type,X-OpenStack-Ironic-API-Version'),
      {
        ...basic,
        'Access-Control-Max-Age': '3600',
        'Access-Control-Allow-Methods': 'PUT',
        'Access-Control-Allow-Headers': 'x-auth-token,content-type,X-OpenStack-Ironic-API-Version',
      },
    ],
    [
      'OPTIONS',
      wants('PUT', 'x-foo'),
      { ...basic, 'Access-Control-Max-Age': '3600', 'Access-Control-Allow-Methods': 'PUT', 'Access-Control-Allow-Headers': 'x-foo' },
      { 'cors.allow_headers': ['X-Foo'] },
    ],
  ])('for %s with %j', (method, headers, expected, options = {}) => expect(corsHeaders(method, headers, options)).toEqual(expected));

  it('are sent with every response, including errors', async () => {
    const headers = { Origin: 'https://page' };
    for (const path of ['/v1/nodes', '/v1/nosuch', '/healthcheck'])
      expect((await api.ask('GET', path, NEWEST, { headers })).headers).toMatchObject({ 'access-control-allow-origin': 'https://page' });
    const options = await api.ask('OPTIONS', '/v1/nodes', null, { headers: { ...headers, 'Access-Control-Request-Method': 'PATCH' } });
    expect(options).toMatchObject({ status: 200, text: '', headers: { 'access-control-allow-methods': 'PATCH' } });
  });
});

// Browsers send forms to other origins with the user's login, and without a preflight request.
describe('forms of other origins', () => {
  const post = (headers: Record<string, string>, method = 'POST') =>
    api.ask(method, '/v1/chassis', NEWEST, { body: '{"description": "forged"}', headers });
  it.each<[string, Record<string, string>]>([
    ['plain text', { Origin: 'http://evil', 'Content-Type': 'text/plain' }],
    ['plain text that looks like JSON', { Origin: 'http://evil', 'Content-Type': 'text/plain; application/json' }],
    ['a form', { Origin: 'http://evil', 'Content-Type': 'application/x-www-form-urlencoded' }],
    ['a form with files', { Origin: 'http://evil', 'Content-Type': 'multipart/form-data; boundary=json' }],
    ['no type', { Origin: 'http://evil', 'Content-Type': '' }],
    ['a page without an origin', { Origin: 'null', 'Content-Type': 'text/plain' }],
    ['another port of this host', { Origin: 'http://here:8080', Host: 'here:6385', 'Content-Type': 'text/plain' }],
    ['no host', { Origin: 'null', Host: '', 'Content-Type': 'text/plain' }],
  ])('are refused: %s', async (_, headers) => {
    expect(await post(headers)).toMatchObject({
      status: 415,
      body: { faultcode: 'Client', faultstring: 'Pages of other origins may send JSON only, with its Content-Type.' },
    });
  });
  it.each<[string, Record<string, string>]>([
    ['no origin', { 'Content-Type': 'text/plain' }],
    ['no origin and no type', { 'Content-Type': '' }],
    ['JSON', { Origin: 'http://evil', 'Content-Type': 'application/json; charset=utf-8' }],
    ['a JSON patch', { Origin: 'http://evil', 'Content-Type': 'application/json-patch+json' }],
    ['an allowed origin', { Origin: 'https://page', 'Content-Type': 'text/plain' }],
    ['a page of this server', { Origin: 'https://here', Host: 'here', 'Content-Type': 'text/plain' }],
  ])('are not refused: %s', async (_, headers) => {
    expect((await post(headers)).status).toBe(201);
  });
  it('are refused for POST only, since browsers send a preflight request before other methods', async () => {
    expect((await post({ Origin: 'http://evil', 'Content-Type': 'text/plain' }, 'PUT')).status).toBe(405);
  });
});

it('answers OPTIONS at the root with the body of GET', async () => {
  expect(await api.ask('OPTIONS', '/')).toMatchObject({ status: 200, body: { name: 'OpenStack Ironic API' } });
  expect(await api.ask('OPTIONS', '/v1')).toMatchObject({ status: 200, text: '' });
});

describe('the base URL of links', () => {
  const base = (headers: object, options: object = {}): string =>
    baseOf({ headers: { host: 'here:1', ...headers }, socket: {} } as unknown as IncomingMessage, { ...OPTIONS, ...options });
  const proxy = { 'oslo_middleware.enable_proxy_headers_parsing': true };
  it.each<[object, string, object?]>([
    [{}, 'http://here:1'],
    [{ host: 'here:80' }, 'http://here'],
    [{ 'x-forwarded-proto': 'https', 'x-forwarded-prefix': '/pre' }, 'http://here:1'],
    [{}, 'http://public', { 'api.public_endpoint': 'http://public' }],
    [{}, 'http://here:1', { ...proxy, 'api.public_endpoint': 'http://public' }],
    [{ 'x-forwarded-proto': 'https' }, 'https://here:1', proxy],
    [{ 'x-forwarded-proto': 'https', host: 'x:443' }, 'https://x', proxy],
    [{ 'x-forwarded-proto': 'https', host: 'x:80' }, 'https://x:80', proxy],
    [{ 'x-forwarded-host': 'foo.bar:99' }, 'http://foo.bar:99', proxy],
    [{ 'x-forwarded-host': '[2001:db8::1]:99' }, 'http://[2001:db8::1]:99', proxy],
    [{ 'x-forwarded-port': '77' }, 'http://here:1', proxy],
    [{ 'x-forwarded-prefix': '/pre' }, 'http://here:1/pre', proxy],
    [{ forwarded: 'for=1.2.3.4;proto=https;host=abc.de, for=5' }, 'https://abc.de', proxy],
    [{ forwarded: 'Proto=https', 'x-forwarded-host': 'not', 'x-forwarded-prefix': '/p' }, 'https://here:1/p', proxy],
    [{ forwarded: 'junk' }, 'http://here:1', proxy],
    // Malformed values are ignored.
    [{ 'x-forwarded-proto': 'https, http', 'x-forwarded-host': '<x>"', 'x-forwarded-prefix': 'pre' }, 'http://here:1', proxy],
  ])('for %j is %s', (headers, expected, options = {}) => expect(base(headers, options)).toBe(expected));
});

describe('Accept', () => {
  it.each([
    [undefined, true],
    ['*/*', true],
    ['application/*', true],
    ['junk', true],
    ['application/json;q=0', true],
    ['application/json;version=1', true],
    ['image/png, application/json;q=0.5', true],
    ['text/html,*/*;q=0.1', true],
    ['text/html', false],
    ['application/xml', false],
    ['text/html, */*;q=0', false],
    ['*/*, application/json;q=0', false],
  ])('%p allows JSON: %p', (header, expected) => expect(accepts(header, 'application/json')).toBe(expected));
  it('is checked only if the path exists', async () => {
    const headers = { Accept: 'image/png' };
    expect(await api.ask('GET', '/', NEWEST, { headers })).toMatchObject({
      status: 406,
      fault:
        '406 Not Acceptable\n\nThe resource could not be generated that was acceptable to your browser (content of type image/png. \n\n ',
    });
    expect((await api.ask('GET', '/v1/nosuch', NEWEST, { headers })).status).toBe(404);
  });
});

it('answers monitors at /healthcheck and /metrics', async () => {
  const health = await api.ask('GET', '/healthcheck');
  expect(health).toMatchObject({ status: 200, text: '', headers: { 'content-type': 'text/plain; charset=UTF-8', 'content-length': '0' } });
  expect(health.headers['openstack-request-id']).toMatch(/^req-/);
  expect((await api.ask('HEAD', '/healthcheck')).status).toBe(204);
  expect((await api.ask('POST', '/healthcheck/x', NEWEST, { headers: { Accept: 'application/json' } })).body).toEqual({
    detailed: false,
    reasons: [],
  });
  expect((await fetch(`${api.url()}/metrics`)).status).toBe(200);
  expect(await (await fetch(`${api.url()}/metrics`, { method: 'POST' })).text()).not.toContain('up');
});

it.each(['GET http://[', 'OPTIONS http://[', 'POST //[x'])('answers 404 to %s, whose target is not a URL', async (target) => {
  const { hostname, port } = new URL(api.url());
  const socket = connect(Number(port), hostname);
  socket.end(`${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  let answered = '';
  for await (const data of socket) answered += String(data);
  expect(answered).toMatch(/^HTTP\/1.1 404 [^]*\r\nopenstack-request-id: req-/);
});

describe('a client that sends too slowly gets 408 and is disconnected', () => {
  it.each([
    ['headers', 'GET /v1/nodes HTTP/1.1\r\nHost: x\r\n', 'X: y\r\n'],
    ['body', 'POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"driver"', ' '],
  ])('in its %s', async (_, text, slowly) => {
    const { hostname, port } = new URL(api.url());
    const socket = connect(Number(port), hostname);
    const drip = setInterval(() => socket.write(slowly), 200);
    socket.write(text);
    let answered = '';
    socket.on('data', (data: Buffer) => (answered += data.toString()));
    socket.on('error', () => {});
    await new Promise((done) => socket.once('close', done));
    clearInterval(drip);
    expect(answered).toMatch(/^HTTP\/1.1 408 /);
  });
});
