import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Api, api } from '../../ramdisk-agent/api';

interface Call {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}
let server: Server;
let url: string;
let calls: Call[];
let answer: (call: Call) => readonly [number, string];

beforeAll(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const call = { method: request.method!, url: request.url!, headers: request.headers, body: Buffer.concat(parts).toString() };
      calls.push(call);
      const [status, text] = answer(call);
      response.writeHead(status, { date: 'Tue, 06 May 2031 07:08:09 GMT', connection: 'close' }).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  calls = [];
});

const client = (urls: readonly string[] = [`${url}/base/`]): Api =>
  api({
    apiUrls: urls,
    inspectionUrls: urls.map((item) => `${item}v1/continue_inspection`),
    timeoutMs: 20_000,
    trust: { insecure: false },
    globalRequestId: 'req-1',
    signal: new AbortController().signal,
  });
/** Nothing listens there. */
const DEAD = 'http://127.0.0.1:1';

it.each<[string, number, string, number]>([
  ['a newer server', 200, '{"default_version":{"version":"1.115"}}', 68],
  ['an older server', 200, '{"default_version":{"version":"1.60"}}', 60],
  ['no version', 200, '{}', 31],
  ['no JSON', 200, '<html>', 31],
  ['an error', 503, 'later', 31],
])('negotiate returns the microversion with %s', async (_, status, text, minor) => {
  answer = () => [status, text];
  expect(await client().negotiate()).toEqual({ minor, serverTime: Date.parse('2031-05-06T07:08:09Z'), url: `${url}/base/` });
});

it('negotiate uses the first URL that answers, and microversion 1.31 if none does', async () => {
  answer = () => [200, '{"default_version":{"version":"1.68"}}'];
  expect(await client([DEAD, url]).negotiate()).toMatchObject({ minor: 68, url });
  expect(await client([DEAD]).negotiate()).toEqual({ minor: 31, serverTime: null, url: DEAD });
});

it('lookup sends addresses, UUID, microversion and request ID', async () => {
  answer = () => [200, '{"node":{"uuid":"u"},"config":{"heartbeat_timeout":300}}'];
  expect(await client().lookup(68, ['a', 'b'], 'u')).toEqual({ node: { uuid: 'u' }, config: { heartbeat_timeout: 300 } });
  expect(calls[0]).toMatchObject({
    url: '/base/v1/lookup?addresses=a%2Cb&node_uuid=u',
    headers: { 'x-openstack-ironic-api-version': '1.68', 'x-openstack-request-id': 'req-1' },
  });
});

it.each<[number, string, string]>([
  [404, '{"error_message":"{\\"faultstring\\":\\"Not Found\\"}"}', 'Error 404: Not Found'],
  [409, '{"error_message":{"faultstring":"locked"}}', 'Error 409: locked'],
  [406, '{"error_message":{"title":"Not Acceptable"}}', 'Error 406: Not Acceptable'],
  [503, 'busy', 'Error 503: busy'],
  [200, '{"config":{}}', 'Error 200: {"config":{}}'],
])('lookup fails with the reason: %s %s', async (status, text, message) => {
  answer = () => [status, text];
  await expect(client().lookup(68, [], null)).rejects.toThrow(`Error getting configuration from Ironic: ${message}`);
});

it.each<[number, readonly string[]]>([
  [68, ['agent_token', 'agent_verify_ca', 'agent_version', 'callback_url']],
  [67, ['agent_token', 'agent_version', 'callback_url']],
  [36, ['agent_version', 'callback_url']],
  [31, ['callback_url']],
])('heartbeat with microversion 1.%s sends %s', async (minor, keys) => {
  answer = () => [202, ''];
  await client().heartbeat(minor, 'u', { callbackUrl: 'https://x', token: 't', version: 'v', verifyCa: 'PEM' });
  expect(calls[0]).toMatchObject({ method: 'POST', url: '/base/v1/heartbeat/u' });
  expect(Object.keys(JSON.parse(calls[0]!.body) as object).sort()).toEqual(keys);
});

it('heartbeat fails when the server refuses it', async () => {
  answer = () => [400, '{"error_message":"{\\"faultstring\\":\\"Invalid agent token\\"}"}'];
  const sending = client().heartbeat(68, 'u', { callbackUrl: 'https://x', token: 't', version: 'v', verifyCa: null });
  await expect(sending).rejects.toMatchObject({ httpStatus: 400, details: 'Error 400: Invalid agent token' });
});

it('continueInspection posts without a microversion', async () => {
  answer = () => [202, '{"uuid":"u"}'];
  expect(await client().continueInspection({ error: null })).toBe('u');
  expect(calls[0]).toMatchObject({ url: '/base/v1/continue_inspection', body: '{"error":null}' });
  expect(calls[0]!.headers['x-openstack-ironic-api-version']).toBeUndefined();
  answer = () => [200, ''];
  expect(await client().continueInspection({ error: null })).toBeNull();
  answer = () => [404, 'who?'];
  await expect(client().continueInspection({ error: null })).rejects.toMatchObject({ httpStatus: 404 });
});
