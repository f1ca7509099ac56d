import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { piecesOf, readBody } from '../../../api/http/body';
import { until } from '../../support/until';

const received: Promise<string>[] = [];
const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const reading = readBody(request, { bytes: 100 }, () => {}).then(String);
  received.push(reading);
  reading.then(
    (text) => response.end(`read ${text.length}`),
    (error: unknown) => response.writeHead((error as { status?: number }).status ?? 500, { Connection: 'close' }).end(),
  );
});
const sockets: Socket[] = [];
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  sockets.forEach((socket) => socket.destroy());
  server.close();
});
afterEach(() => received.splice(0));

function sent(text: string): { readonly socket: Socket; answer: string } {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  const made = { socket, answer: '' };
  socket.on('data', (data: Buffer) => (made.answer += data.toString()));
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${text}`);
  return made;
}
const chunks = (count: number): string => `Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(count)}`;

it.each([
  ['a body of known length', 'Content-Length: 3\r\n\r\nabc', /^HTTP\/1\.1 200[^]*read 3$/],
  ['a body of chunks', `${chunks(100)}0\r\n\r\n`, /^HTTP\/1\.1 200[^]*read 100/],
  ['an empty body of chunks', `${chunks(0)}0\r\n\r\n`, /^HTTP\/1\.1 200[^]*read 0/],
  ['a body that is announced too long', 'Content-Length: 101\r\n\r\n', /^HTTP\/1\.1 413/],
  ['more chunks than are allowed, without an end', chunks(101), /^HTTP\/1\.1 413/],
])('reads or refuses %s', async (_, text, answer) => {
  const client = sent(text);
  await until('it is answered', () => answer.test(client.answer));
});

it('readBody() fails when the client disconnects', async () => {
  const { socket } = sent('Content-Length: 3\r\n\r\nab');
  await until('it is received', () => received.length === 1);
  socket.destroy();
  await expect(received[0]).rejects.toThrow();
});

it('keeps the bytes of a file in pieces, and joins small chunks', async () => {
  const files: Promise<readonly Buffer[]>[] = [];
  let reserved = 0;
  const uploads = createServer((request, response) => {
    const reading = readBody(request, { bytes: 200_000, isFile: true }, (bytes) => (reserved += bytes)).then(piecesOf);
    files.push(reading);
    reading.finally(() => response.end()).catch(() => {});
  });
  uploads.listen(0, '127.0.0.1');
  await once(uploads, 'listening');
  const socket = connect((uploads.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`PUT / HTTP/1.1\r\nHost: x\r\n${chunks(1000)}${(100_000).toString(16)}\r\n${'y'.repeat(100_000)}\r\n0\r\n\r\n`);
  await once(socket, 'data');
  socket.destroy();
  uploads.close();
  const pieces = await files[0]!;
  expect(Buffer.concat(pieces).toString()).toBe('x'.repeat(1000) + 'y'.repeat(100_000));
  expect(reserved).toBe(101_000);
  expect(pieces.length).toBeLessThan(300);
  expect(pieces.slice(0, 3).map(({ length }) => length)).toEqual([256, 256, 256]);
});
