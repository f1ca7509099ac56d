import { randomBytes } from 'node:crypto';
import { type RequestOptions, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { silentLog } from '../../model/log';
import { ownCertificate } from '../../wire/http/certificate';
import { runner } from '../../ramdisk-agent/commands';
import { serve } from '../../ramdisk-agent/server';

const certificate = ownCertificate('127.0.0.1', 'machine', Date.now(), randomBytes);
const TOKEN = 'the-token-of-this-machine';
let server: Server;
let port: number;
let authenticated = 0;
let token: string | null = TOKEN;
let finish: () => void = () => {};

beforeAll(async () => {
  const commands = {
    'a.echo': { run: async (params: object) => ({ ...params }) },
    'a.long': { inBackground: true as const, run: () => new Promise<string>((resolve) => (finish = () => resolve('over'))) },
  };
  server = await serve({
    host: '127.0.0.1',
    port: 0,
    certificate,
    minVersion: 'TLSv1.3',
    token: () => token,
    startedAt: 1_700_000_000_500,
    version: 'test 1',
    runner: runner(
      commands,
      () => `id-${randomBytes(4).toString('hex')}`,
      () => {},
      silentLog,
    ),
    authenticated: () => authenticated++,
    log: silentLog,
  });
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Calls the agent as a conductor does: it trusts only the certificate of the heartbeat. */
function call(
  method: string,
  path: string,
  body?: string,
  options: RequestOptions = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, ca: certificate.certificate, agent: false, ...options }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () =>
        resolve({ status: answer.statusCode!, body: JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown> }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
const commands = (query: string): string => `/v1/commands/?${query}`;

it('returns versions and status without a token', async () => {
  expect(await call('GET', '/')).toMatchObject({ status: 200, body: { versions: [{ id: 'v1' }], default_version: { id: 'v1' } } });
  expect(await call('GET', '/v1/')).toMatchObject({ status: 200, body: { id: 'v1' } });
  expect(await call('GET', '/v1')).toMatchObject({ status: 200 });
  expect(await call('GET', '/v1/status')).toEqual({ status: 200, body: { started_at: 1_700_000_000.5, version: 'test 1' } });
  expect(await call('GET', '/status/')).toMatchObject({ status: 200 });
});

it('executes commands for clients with the token', async () => {
  const before = authenticated;
  const made = await call('POST', commands(`wait=true&agent_token=${TOKEN}`), '{"name":"a.echo","params":{"x":[1]}}');
  expect(made).toMatchObject({ status: 200, body: { command_name: 'echo', command_status: 'SUCCEEDED', command_result: { x: [1] } } });
  expect(authenticated).toBe(before + 1);
  const id = made.body['id'] as string;
  expect(await call('GET', `/v1/commands/${id}?agent_token=${TOKEN}`)).toEqual(made);
  expect(await call('GET', `/commands?agent_token=${TOKEN}`)).toMatchObject({ status: 200, body: { commands: [made.body] } });
});

it('responds at once to a background command, refuses others meanwhile, and waits with wait=true', async () => {
  const made = await call('POST', commands(`agent_token=${TOKEN}`), '{"name":"a.long","params":{}}');
  expect(made.body).toMatchObject({ command_status: 'RUNNING', command_result: null });
  expect(await call('POST', commands(`agent_token=${TOKEN}`), '{"name":"a.echo","params":{}}')).toEqual({
    status: 409,
    body: { faultcode: 'Client', faultstring: 'Agent is busy: executing command long' },
  });
  const waiting = call('GET', `/v1/commands/${made.body['id'] as string}?wait=true&agent_token=${TOKEN}`);
  finish();
  expect((await waiting).body).toMatchObject({ command_status: 'SUCCEEDED', command_result: { result: 'long: over' } });
});

it.each<[string, string, string | undefined, number, string]>([
  ['POST', commands(''), '{"name":"a.echo","params":{}}', 401, '401 Unauthorized: Token invalid.'],
  ['POST', commands('agent_token=wrong'), '{"name":"a.echo","params":{}}', 401, '401 Unauthorized: Token invalid.'],
  ['GET', commands('agent_token='), undefined, 401, '401 Unauthorized: Token invalid.'],
  ['GET', '/v1/commands/x', undefined, 401, '401 Unauthorized: Token invalid.'],
  ['GET', `/v1/commands/x?agent_token=${TOKEN}`, undefined, 404, 'Not found: Command Result with id x not found.'],
  ['POST', commands(`agent_token=${TOKEN}`), 'nonsense', 400, 'Invalid request body: not JSON'],
  ['POST', commands(`agent_token=${TOKEN}`), 'null', 400, 'Invalid request body: Missing or invalid name or params'],
  ['POST', commands(`agent_token=${TOKEN}`), '{"name":"a.echo"}', 400, 'Invalid request body: Missing or invalid name or params'],
  [
    'POST',
    commands(`agent_token=${TOKEN}`),
    '{"name":"a.echo","params":[]}',
    400,
    'Invalid request body: Missing or invalid name or params',
  ],
  ['POST', commands(`agent_token=${TOKEN}`), '{"name":"x.echo","params":{}}', 404, 'Not found: Extension with id x not found.'],
  ['PUT', '/v1/status', undefined, 404, 'Not found: PUT /v1/status'],
  ['GET', '/v2/status', undefined, 404, 'Not found: GET /v2/status'],
  ['GET', '//', undefined, 400, 'Invalid request body: not a URL'],
])('refuses %s %s %s', async (method, path, body, status, faultstring) => {
  expect(await call(method, path, body)).toEqual({ status, body: { faultcode: 'Client', faultstring } });
});

it('refuses commands before the agent has a token', async () => {
  token = null;
  expect(await call('GET', commands('agent_token='))).toMatchObject({ status: 401 });
  token = TOKEN;
});

it('refuses TLS versions below minVersion', async () => {
  await expect(call('GET', '/', undefined, { maxVersion: 'TLSv1.2' })).rejects.toThrow();
});

it('continues after data that are not HTTP', async () => {
  const socket = connect({ host: '127.0.0.1', port, ca: certificate.certificate });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  socket.resume();
  socket.write('nonsense\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  expect(await call('GET', '/')).toMatchObject({ status: 200 });
});
