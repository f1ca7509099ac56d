/** The PROXY protocol on a listener: who a connection comes from, and which connections are closed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpServer, type HttpServer } from '../../../wire/http/listener-tls';
import { proxyHeader } from '../../../wire/http/proxy-protocol';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-proxy-'));
const path = join(folder, 'socket');
const refused: string[] = [];
const log = { info: () => {}, warn: () => {}, error: () => {} };
let http: HttpServer;
const open: Socket[] = [];
beforeEach(async () => {
  refused.length = 0;
  const limits = { connections: { inAll: 10, ofSource: 2 }, readTimeoutMs: 30_000, onRefused: (limit: string) => void refused.push(limit) };
  http = createHttpServer({ expectsProxyHeaders: true }, undefined, limits, log, ({ socket, url }, response) => {
    const { remoteAddress: from, remotePort, localAddress: to, localPort } = socket;
    response.end(JSON.stringify({ url, from, remotePort, to, localPort }));
  });
  http.upgrade((request, socket) => {
    if (request.url !== '/taken') return false;
    socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\n${request.socket.remoteAddress}`);
    return true;
  });
  http.server.listen(path);
  await once(http.server, 'listening');
});
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await http.close(0);
});
afterAll(() => rmSync(folder, { recursive: true }));

const GET = (url = '/', more = ''): Buffer => Buffer.from(`GET ${url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`);
/** Everything that the server sends after these pieces, each in a write of its own. */
async function told(...pieces: readonly Buffer[]): Promise<string> {
  const socket = connect(path);
  open.push(socket);
  let text = '';
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  socket.on('error', () => {});
  const closed = new Promise<void>((done) => socket.once('close', () => done()));
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise<void>((done) => setImmediate(done));
  }
  await closed;
  return text;
}
const bodyOf = (text: string): unknown => JSON.parse(/\{.*\}/.exec(text)?.[0] ?? 'null');

const CLIENT = { remoteAddress: '192.0.2.7', remotePort: 50_000, localAddress: '192.0.2.1', localPort: 6385 };
const bytewise = (bytes: Buffer): readonly Buffer[] => Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
it.each<[string, readonly Buffer[], object]>([
  ['IPv4', [Buffer.concat([proxyHeader(CLIENT), GET()])], { from: '192.0.2.7', remotePort: 50_000, to: '192.0.2.1', localPort: 6385 }],
  ['bytes one by one', [...bytewise(proxyHeader(CLIENT)), ...bytewise(GET())], { from: '192.0.2.7' }],
  ['IPv6', [proxyHeader({ ...CLIENT, remoteAddress: '2001:db8::7', localAddress: '2001:db8::1' }), GET()], { from: '2001:db8::7' }],
  ['IPv4 in IPv6', [proxyHeader({ remoteAddress: '::ffff:192.0.2.7', localAddress: '::ffff:192.0.2.1' }), GET()], { from: '192.0.2.7' }],
  ['a zone', [proxyHeader({ remoteAddress: 'fe80::7%eth0', localAddress: 'fe80::1%eth0' }), GET()], { from: 'fe80::7' }],
])('takes the client from the header: %s', async (_, pieces, expected) => {
  expect(bodyOf(await told(...pieces))).toMatchObject({ url: '/', ...expected });
});
it('leaves the client of a proxy that speaks for itself unknown', async () => {
  expect(bodyOf(await told(proxyHeader({}), GET()))).toEqual({ url: '/' });
});

const tooLong = Buffer.from(proxyHeader(CLIENT));
tooLong.writeUInt16BE(60_000, 14);
const tooShort = Buffer.from(proxyHeader(CLIENT)).subarray(0, 20);
tooShort.writeUInt16BE(4, 14);
const version1 = Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.1 50000 6385\r\n');
it.each<[string, readonly Buffer[]]>([
  ['no header', [GET()]],
  ['version 1', [version1, GET()]],
  ['a length that is too large', [tooLong, GET()]],
  ['a header that is too short for its addresses', [tooShort, GET()]],
  ['half a signature', [Buffer.from('\r\n\r\n\0\r\nQUIX\n', 'latin1'), GET()]],
])('closes a connection with %s', async (_, pieces) => {
  expect(await told(...pieces)).toBe('');
});
it('takes a second header for a malformed request', async () => {
  expect(await told(proxyHeader(CLIENT), proxyHeader({ ...CLIENT, remoteAddress: '198.51.100.1' }), GET())).not.toContain('198.51.100.1');
});

it('limits the connections of each client, not those of the proxy', async () => {
  const hold = async (remoteAddress: string): Promise<Socket> => {
    const socket = connect(path);
    open.push(socket);
    socket.write(proxyHeader({ ...CLIENT, remoteAddress }));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    return socket;
  };
  const first = [await hold('192.0.2.7'), await hold('192.0.2.7'), await hold('192.0.2.7')];
  expect(first.map(({ destroyed }) => destroyed)).toEqual([false, false, true]);
  expect((await hold('192.0.2.8')).destroyed).toBe(false);
  expect(refused).toEqual(['source']);
});

it('knows the client of a WebSocket, and of a request whose offer of another protocol is ignored', async () => {
  const offer = (name: string): string => `Connection: Upgrade\r\nUpgrade: ${name}\r\n`;
  const upgrade = (url: string, name: string): Buffer => Buffer.from(`GET ${url} HTTP/1.1\r\nHost: a\r\n${offer(name)}\r\n`);
  expect(await told(proxyHeader(CLIENT), upgrade('/taken', 'websocket'))).toContain('192.0.2.7');
  const socket = connect(path);
  open.push(socket);
  socket.write(Buffer.concat([proxyHeader(CLIENT), upgrade('/', 'h2c')]));
  const [data] = (await once(socket, 'data')) as [Buffer];
  expect(bodyOf(data.toString())).toMatchObject({ url: '/', from: '192.0.2.7' });
});

it('closes silent connections at its end', async () => {
  const socket = connect(path);
  open.push(socket);
  await once(socket, 'connect');
  await http.close(0);
  http.server.listen(path);
  await once(http.server, 'listening');
});
