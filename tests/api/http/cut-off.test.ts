import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { cutOff } from '../../../api/http/cut-off';
import { send } from '../../../api/send';
import { limitClients } from '../../../wire/http/client-limits';

const BYTES = 4 << 20;
const LINGER_MS: Readonly<Record<string, number>> = { '/briefly': 100, '/long': 600_000 };
const handled: (string | undefined)[] = [];
const handler: RequestListener = (request, response) => {
  handled.push(request.method);
  send(response, false, { status: 413, text: 'too large', headers: { Connection: 'close' } });
  cutOff(request, LINGER_MS[request.url!]);
};
const server = createServer();
limitClients(server, { connections: { inAll: 8, ofSource: 8 }, readTimeoutMs: 30_000 }, handler, { warn: () => {} });
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => new Promise((done) => server.close(done)));

async function startRequest(path: string, length = `Content-Length: ${BYTES}`): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.pause();
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`);
  await once(server, 'request');
  return socket;
}
const sendBody = (socket: Socket, bytes: number): Promise<Error | null | undefined> =>
  new Promise((done) => socket.write(Buffer.alloc(bytes), done));

it('lets a client that still sends its body read the response', async () => {
  const socket = await startRequest('/');
  // The client sends half of the body after the server has ended its side of the connection.
  expect(await sendBody(socket, BYTES / 2)).toBeFalsy();
  expect(await sendBody(socket, BYTES / 2)).toBeFalsy();
  let text = '';
  for await (const data of socket) text += String(data);
  expect(text).toMatch(/^HTTP\/1\.1 413 [^]*too large$/);
});

it('closes the connection of a client that keeps sending', async () => {
  const socket = await startRequest('/briefly');
  socket.on('error', () => {});
  const drip = setInterval(() => socket.write(' '), 20);
  await new Promise((done) => socket.once('close', done));
  clearInterval(drip);
});

it('does not process a request that follows the rest of the body', async () => {
  const socket = await startRequest('/');
  handled.length = 0;
  socket.write(Buffer.alloc(BYTES));
  socket.end('DELETE / HTTP/1.1\r\nHost: x\r\n\r\n');
  let text = '';
  for await (const data of socket) text += String(data);
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(handled).toEqual([]);
});

it('closes the connection of a client that sends thousands of tiny chunks', async () => {
  const socket = await startRequest('/long', 'Transfer-Encoding: chunked');
  socket.on('error', () => {});
  const drip = setInterval(() => socket.write('1\r\n \r\n'.repeat(100)), 20);
  await new Promise((done) => socket.once('close', done));
  clearInterval(drip);
});
