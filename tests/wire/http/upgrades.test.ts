/** HTTP clients that offer another protocol with a normal request get the response of the normal request. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest, Agent } from 'node:http';
import { Agent as TlsAgent, request as httpsRequest } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownCertificate } from '../../../wire/http/certificate';
import { createHttpServer, type HttpServer, type TlsSettings } from '../../../wire/http/listener-tls';
import { until } from '../../support/until';

let http: HttpServer;
const refused: string[] = [];
const seen: Socket[] = [];
let folder: string;
let tls: TlsSettings;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-upgrades-'));
  const { certificate, privateKey } = ownCertificate('127.0.0.1', 'localhost', Date.now(), randomBytes);
  const file = (option: string, text: string) => {
    const path = join(folder, option);
    writeFileSync(path, text);
    return { option, path };
  };
  tls = { cert: file('cert', certificate), key: file('key', privateKey), minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
async function start(isSecure: boolean): Promise<void> {
  refused.length = seen.length = 0;
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const limits = { connections: { inAll: 2, ofSource: 2 }, readTimeoutMs: 30_000, onRefused: (limit: string) => void refused.push(limit) };
  http = createHttpServer({}, isSecure ? tls : undefined, limits, log, (request, response) => {
    seen.push(request.socket);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () =>
      response.end(JSON.stringify({ url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() })),
    );
  });
  http.upgrade((request, socket) => {
    if (request.url !== '/taken') return false;
    socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\ntaken');
    return true;
  });
  http.server.listen(0, '127.0.0.1');
  await once(http.server, 'listening');
}
afterEach(() => http.close(0));
const portOf = (): number => (http.server.address() as AddressInfo).port;

async function ask(agent: Agent, method: string, path: string, body = ''): Promise<{ url: string; headers: object; body: string }> {
  const headers = { Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': 'AAMAAABk', 'X-Name': 'caf\u00e9' };
  const sent = (agent instanceof TlsAgent ? httpsRequest : httpRequest)({
    port: portOf(),
    host: '127.0.0.1',
    agent,
    method,
    path,
    headers,
  });
  // With a string Node encodes the headers as the body.
  sent.end(Buffer.from(body));
  const [response] = (await once(sent, 'response')) as [AsyncIterable<Buffer>];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as { url: string; headers: object; body: string };
}
it.each([
  ['plain', false],
  ['with TLS', true],
])(
  'answers upgrade requests as normal requests on one connection, without another connection in the limits or more listeners: %s',
  async (_, isSecure) => {
    await start(isSecure);
    const pool = { keepAlive: true, maxSockets: 1 };
    const agent = isSecure ? new TlsAgent({ ...pool, rejectUnauthorized: false }) : new Agent(pool);
    const long = 'x'.repeat(300_000);
    for (let number = 0; number < 30; number++) {
      const answer = await ask(agent, 'POST', `/v1/nodes?number=${number}`, long);
      expect(answer).toMatchObject({ url: `/v1/nodes?number=${number}`, headers: { 'x-name': 'caf\u00e9' } });
      expect(answer.headers).not.toHaveProperty('upgrade');
      expect(answer.body === long).toBe(true);
    }
    expect(new Set(seen).size).toBe(1);
    for (const name of seen[0]!.eventNames()) expect([name, seen[0]!.listenerCount(name) < 10]).toEqual([name, true]);
    expect(refused).toEqual([]);
    agent.destroy();
  },
);
it('passes the connection to the listener that accepts the upgrade', async () => {
  await start(false);
  const socket = connect(portOf(), '127.0.0.1');
  let text = '';
  socket.on('data', (data) => (text += data.toString()));
  socket.write('GET /taken HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await until('the answer', () => text.endsWith('taken'));
  socket.destroy();
});
