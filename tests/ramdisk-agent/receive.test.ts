import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { PIECE, pieces } from '../../ramdisk-agent/system/pieces';
import { receive } from '../../ramdisk-agent/system/receive';
import { ownCertificate } from '../../wire/http/certificate';
import { until } from '../support/until';

const CONTENT = Buffer.alloc(3 * PIECE + 77);
for (let at = 0; at + 4 <= CONTENT.length; at += 4) CONTENT.writeUInt32LE(Math.imul(at, 0x9e3779b1) >>> 0, at);
const head = (length: number): string => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`;
const chunkedOf = (content: Buffer, sizes: readonly number[]): Buffer => {
  const parts: Buffer[] = [];
  for (let at = 0, index = 0; at < content.length; index++) {
    const part = content.subarray(at, at + sizes[index % sizes.length]!);
    parts.push(Buffer.from(`${part.length.toString(16)};n=${index}\r\n`), part, Buffer.from('\r\n'));
    at += part.length;
  }
  return Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'), ...parts, Buffer.from('0\r\nx: y\r\n\r\n')]);
};

type Answer = (socket: Socket, request: string) => void;
let answer: Answer;
let requests: string[];
const sockets = new Set<Socket>();
const listener = (socket: Socket): void => {
  sockets.add(socket);
  let request = '';
  socket.on('error', () => {});
  socket.on('data', (part) => {
    request += part.toString('latin1');
    if (request.startsWith('\x16')) socket.end('HTTP/1.1 400 TLS\r\n\r\n');
    if (!request.endsWith('\r\n\r\n')) return;
    requests.push(request);
    answer(socket, request);
  });
};
let plain: Server, secure: Server;
let url: string, secureUrl: string, ca: string;
const portOf = (server: Server): number => (server.address() as AddressInfo).port;
beforeAll(async () => {
  const { certificate, privateKey } = ownCertificate('localhost', 'images', Date.now(), randomBytes);
  ca = certificate;
  plain = createServer(listener).listen(0, '127.0.0.1');
  secure = createSecureServer({ cert: certificate, key: privateKey }, listener).listen(0, '127.0.0.1');
  await Promise.all([once(plain, 'listening'), once(secure, 'listening')]);
  url = `http://127.0.0.1:${portOf(plain)}/image?a=b`;
  secureUrl = `https://localhost:${portOf(secure)}/image`;
});
beforeEach(() => {
  requests = [];
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});
afterAll(() => {
  plain.close();
  secure.close();
});

type Request = Parameters<typeof receive>[0];
const request = (more: Partial<Request> = {}): Request => ({ url, timeoutMs: 20_000, trust: { insecure: false }, ...more });
interface Read {
  readonly status: number;
  readonly length: number | null;
  readonly lengths: readonly number[];
  readonly content: Buffer;
}
async function read(more: Partial<Request> = {}, work: () => Promise<void> = async () => {}): Promise<Read> {
  const { status, length, chunks } = await receive(request(more), pieces());
  const parts: Buffer[] = [];
  for await (const chunk of chunks) {
    parts.push(Buffer.from(chunk));
    await work();
  }
  return { status, length, lengths: parts.map((part) => part.length), content: Buffer.concat(parts) };
}
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
const LENGTHS = [PIECE, PIECE, PIECE, 77];

it.each<[string, Answer, number | null]>([
  ['a length', (socket) => socket.end(Buffer.concat([Buffer.from(head(CONTENT.length)), CONTENT])), CONTENT.length],
  ['a connection that stays open', (socket) => void (socket.write(head(CONTENT.length)), socket.write(CONTENT)), CONTENT.length],
  ['more than the length', (socket) => socket.end(Buffer.concat([Buffer.from(head(CONTENT.length)), CONTENT, CONTENT])), CONTENT.length],
  ['no length', (socket) => socket.end(Buffer.concat([Buffer.from('HTTP/1.0 200 OK\r\n\r\n'), CONTENT])), null],
  ['a response 100 before', (socket) => socket.end(Buffer.concat([Buffer.from(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n${head(CONTENT.length)}`), CONTENT])), CONTENT.length], // prettier-ignore
  ['large chunks', (socket) => socket.end(chunkedOf(CONTENT, [2 * PIECE, 5])), null],
  ['small chunks, and a connection that stays open', (socket) => void socket.write(chunkedOf(CONTENT, [1, 70_000, 3, 8192])), null],
])('receives whole pieces, by HTTP and HTTPS: %s', async (_, given, length) => {
  answer = given;
  for (const more of [{}, { url: secureUrl, trust: { insecure: false, ca } }]) {
    for (const work of [undefined, turn]) {
      const { content, ...rest } = await read(more, work);
      expect(rest).toEqual({ status: 200, length, lengths: LENGTHS });
      expect(content.equals(CONTENT)).toBe(true);
    }
  }
});

it('receives a response that comes byte by byte', async () => {
  const bytes = Buffer.concat([chunkedOf(Buffer.from('hello, world'), [3, 1])]);
  answer = (socket) => {
    socket.setNoDelay(true);
    let at = 0;
    const next = (): void => {
      if (at < bytes.length) socket.write(bytes.subarray(at, ++at), () => setImmediate(next));
    };
    next();
  };
  expect((await read()).content.toString()).toBe('hello, world');
});

it('asks as a client of HTTP/1.1 does', async () => {
  answer = (socket) => socket.end(head(0));
  await read({ url: url.replace('http://', 'http://us%40er:pass@'), headers: { accept: '*/*' } });
  await read({ url: `http://localhost:${portOf(plain)}`, headers: { authorization: 'Basic eDp5' } });
  const login = Buffer.from('us@er:pass').toString('base64');
  expect(requests).toEqual([
    `GET /image?a=b HTTP/1.1\r\nhost: 127.0.0.1:${portOf(plain)}\r\nauthorization: Basic ${login}\r\naccept: */*\r\nconnection: close\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: localhost:${portOf(plain)}\r\nauthorization: Basic eDp5\r\nconnection: close\r\n\r\n`,
  ]);
});

it('follows redirects, with credentials only to the same server, and not for ever', async () => {
  answer = (socket, text) => {
    const to = text.startsWith('GET /image') ? '/other' : `http://localhost:${portOf(plain)}/loop`;
    socket.end(`HTTP/1.1 302 Found\r\nlocation: ${to}\r\ncontent-length: 5\r\n\r\nhello`);
  };
  await expect(read({ headers: { authorization: 'secret' } })).rejects.toThrow('Too many redirects');
  expect(requests.map((text) => /^GET (\S+)/.exec(text)![1])).toEqual(['/image?a=b', '/other', '/loop', '/loop', '/loop', '/loop']);
  expect(requests.map((text) => text.includes('authorization: secret'))).toEqual([true, true, false, false, false, false]);
});

it.each<[string, Answer, RegExp]>([
  ['a server that closes at once', (socket) => socket.end(), /socket hang up/],
  ['a server of another protocol', (socket) => socket.write('220 mail.example.org ESMTP\r\n\r\n'), /not HTTP/],
  ['a head that does not end', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(17_000)}`), /larger than 16384/],
  ['a head that is too large', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(17_000)}\r\n\r\n`), /larger than 16384/],
  ['responses 100 without an end', (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(2000)), /larger than 16384/],
  ['another protocol after the head', (socket) => socket.write('HTTP/1.1 101 Switching\r\n\r\n'), /changes the protocol/],
  ['a length that is not valid', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n'), /Content-Length/],
  ['silence', () => {}, /did not answer within 0.2 s/],
  ['silence in the head', (socket) => socket.write('HTTP/1.1 2'), /did not answer within 0.2 s/],
])('rejects %s', async (name, given, reason) => {
  answer = given;
  await expect(receive(request({ timeoutMs: name.startsWith('silence') ? 200 : 20_000 }), pieces())).rejects.toThrow(reason);
  await until('the end of its connection', () => [...sockets].every((socket) => socket.destroyed));
});

it.each<[string, Answer, RegExp]>([
  [
    'the end of the connection',
    (socket) => void (socket.write(head(CONTENT.length)), socket.end(CONTENT.subarray(0, 2 * PIECE + 5))),
    /^aborted$/,
  ],
  ['a reset', (socket) => void (socket.write(head(CONTENT.length)), socket.write(CONTENT.subarray(0, 2 * PIECE + 5), () => setTimeout(() => socket.resetAndDestroy(), 100))), /^aborted$/], // prettier-ignore
  ['the end of a chunked response', (socket) => socket.end(chunkedOf(CONTENT, [70_000]).subarray(0, 2 * PIECE + 500)), /^aborted$/],
  [
    'silence',
    (socket) => void (socket.write(head(CONTENT.length)), socket.write(CONTENT.subarray(0, 2 * PIECE + 5))),
    /sent nothing for 0.5 s/,
  ],
  ['a chunk that is not valid', (socket) => socket.write(Buffer.concat([Buffer.from('HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n200005\r\n'), CONTENT.subarray(0, 2 * PIECE + 5), Buffer.from('y\r\n')])), /longer than its size/], // prettier-ignore
])('tells what ends a response before its end, after the pieces before it: %s', async (name, given, reason) => {
  answer = given;
  const { chunks } = await receive(request({ timeoutMs: name === 'silence' ? 500 : 20_000 }), pieces());
  let size = 0;
  const all = async (): Promise<void> => {
    for await (const chunk of chunks) size += chunk.length;
  };
  await expect(all()).rejects.toThrow(reason);
  expect(size).toBe(2 * PIECE);
});

it('a server is not late while the reader works, and reads no further than a piece ahead', async () => {
  const large = Buffer.alloc(64 * PIECE);
  let sent = 0;
  answer = (socket) => {
    socket.write(head(large.length));
    const next = (): void => {
      if (sent < large.length) socket.write(large.subarray(sent, (sent += PIECE)), next);
    };
    next();
  };
  let waited = false;
  const work = async (): Promise<void> => {
    if (waited) return;
    waited = true;
    await new Promise((done) => setTimeout(done, 2500));
    // What the kernel keeps of both sides, and two pieces.
    expect(sent).toBeLessThan(40 * PIECE);
  };
  expect((await read({ timeoutMs: 2000 }, work)).content.length).toBe(large.length);
});

it('a reader that stops ends the connection, as do close and an abort', async () => {
  const closes: Promise<unknown>[] = [];
  answer = (socket) => {
    closes.push(new Promise((closed) => socket.on('close', closed)));
    socket.write(head(CONTENT.length));
    socket.write(CONTENT.subarray(0, 2 * PIECE));
  };
  for await (const chunk of (await receive(request(), pieces())).chunks) if (chunk.length > 0) break;
  (await receive(request(), pieces())).close();
  const stop = new AbortController();
  const { chunks } = await receive(request({ signal: stop.signal }), pieces());
  stop.abort();
  await expect(chunks[Symbol.asyncIterator]().next()).rejects.toThrow('aborted');
  await Promise.all(closes);
  await expect(receive(request({ signal: stop.signal }), pieces())).rejects.toThrow('aborted');
});

it.each<[string, Partial<Request>, RegExp]>([
  ['a certificate that is not trusted', { url: 'secure' }, /self-signed certificate/],
  ['a certificate of another name', { url: 'address' }, /IP: 127.0.0.1 is not in the cert's list/],
  ['no TLS', { url: 'plain as secure' }, /wrong version number|packet length too long/],
  ['no server', { url: 'http://127.0.0.1:1/' }, /ECONNREFUSED/],
  ['another protocol', { url: 'ftp://127.0.0.1/' }, /Unsupported protocol/],
  ['a header with a line end', { headers: { authorization: 'a\r\nb: c' } }, /Invalid character in header content/],
])('rejects %s', async (_, more, reason) => {
  const urls: Readonly<Record<string, string>> = {
    secure: secureUrl,
    address: secureUrl.replace('localhost', '127.0.0.1'),
    'plain as secure': url.replace('http:', 'https:'),
  };
  answer = (socket) => socket.end(head(0));
  const trust = { insecure: false, ...(more.url === 'address' ? { ca } : {}) };
  await expect(read({ trust, ...more, url: urls[more.url ?? ''] ?? more.url ?? url })).rejects.toThrow(reason);
});

it('accepts any certificate if told so, also for an address', async () => {
  answer = (socket) => socket.end(`${head(5)}hello`);
  const address = secureUrl.replace('localhost', '127.0.0.1');
  expect((await read({ url: address, trust: { insecure: true } })).content.toString()).toBe('hello');
});

it('memory is used again when it was given back, and only whole pieces of it', () => {
  const memory = pieces();
  const one = memory.take();
  memory.give(one.subarray(1));
  memory.give(Buffer.allocUnsafeSlow(PIECE));
  const other = memory.take();
  expect(other.buffer).not.toBe(one.buffer);
  memory.give(one.subarray(0));
  expect(memory.take().buffer).toBe(one.buffer);
  expect([one, other].map((piece) => piece.length)).toEqual([PIECE, PIECE]);
});
