/** A response that nobody reads while its connection closes must not end the process. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { completePausedResponses } from '../../../wire/http/paused-responses';

/** As much as undici takes before it pauses. */
const BODY = 'a'.repeat(64 * 1024);
beforeAll(completePausedResponses);

it.each([
  ['a Content-Length', `Content-Length: ${BODY.length}\r\n`, BODY, BODY.length],
  ['chunks', 'Transfer-Encoding: chunked\r\n', `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`, BODY.length],
  ['the end of the connection', '', BODY, BODY.length],
  ['fewer bytes than its Content-Length', `Content-Length: ${BODY.length + 1}\r\n`, BODY, 'error'],
])('a body that ends with %s while nobody reads is complete, or an error', async (_, header, body, expected) => {
  const [closed, sent]: [Promise<unknown>[], Promise<unknown>[]] = [[], []];
  const server = createServer((socket) => {
    closed.push(once(socket, 'close'));
    sent.push(once(socket, 'finish'));
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${header}\r\n`);
      setImmediate(() => socket.end(body));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispatcher = new Agent();
  const response = await request(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { dispatcher });
  // The end of the connection has to arrive while nobody reads.
  await Promise.all(sent);
  for (let count = 0; count < 200; count++) await turn();
  const received = await response.body.text().then(
    (text) => text.length,
    () => 'error',
  );
  expect(received).toBe(expected);
  await dispatcher.destroy();
  await Promise.all(closed);
  await new Promise((done) => server.close(done));
});
