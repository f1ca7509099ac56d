import { once } from 'node:events';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const server = useAttackedServer();
const MIB = 2 ** 20;
const HEAD = 'POST /v1/continue_inspection HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);

/** The statuses of those that are answered. 0: closed before, because a client that still writes may lose its response (RFC 9112 §9.6). */
function halfSent(count: number, bytes: Buffer, localAddress?: string): number[] {
  const statuses: number[] = [];
  for (let at = 0; at < count; at++) {
    const socket = server.connect(localAddress);
    const settle = (status: number): void => {
      socket.off('data', onData).off('close', onClose);
      statuses.push(status);
    };
    const onData = (data: Buffer): void => settle(statusOf(data.toString()));
    const onClose = (): void => settle(0);
    socket.once('data', onData).once('close', onClose);
    socket.write(`${HEAD}Content-Length: ${15 * MIB}\r\n\r\n`);
    socket.write(bytes);
  }
  return statuses;
}

/** The bodies of the test before count until the server notices that their connections are gone. */
beforeEach(async () => {
  const body = ' '.repeat(15 * MIB);
  await until('nothing is held', async () => (await server.call('POST', '/v1/continue_inspection', { body })).status !== 503);
});

it('holds 256 half-sent bodies of a source, refuses more, and still serves other sources', async () => {
  const cost = await server.attack(async () => {
    const statuses = halfSent(600, Buffer.from('{"inventory":'));
    await until('most are refused', () => statuses.length >= 600 - 256);
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(statuses.length).toBe(600 - 256);
    // Another source is served meanwhile.
    const other = server.connect('127.0.0.2');
    other.write(`${HEAD}Content-Length: 2\r\n\r\n{}`);
    expect(statusOf(String((await once(other, 'data'))[0]))).toBe(400);
  });
  expectBounded(cost);
});

it('limits the megabytes of half-sent bodies, and refuses more', async () => {
  const cost = await server.attack(async () => {
    const statuses = halfSent(30, Buffer.alloc(5 * MIB, '{"inventory":'));
    await until('most are refused', () => statuses.length >= 20);
    expect(new Set(statuses.filter((status) => status !== 0))).toEqual(new Set([503]));
  });
  expectBounded(cost);
});

it('refuses a body in chunks of one byte', async () => {
  const cost = await server.attack(async () => {
    let answer: Buffer | undefined;
    // The server closes the connection after its answer. A client that still writes then may lose the answer, and tries again.
    await until('the answer', async () => {
      const socket = server.connect();
      let closed = false;
      socket.once('data', (data: Buffer) => (answer = data));
      socket.once('close', () => (closed = true));
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
      const piece = '1\r\n \r\n'.repeat(1024);
      for (let sent = 0; sent < MIB && answer === undefined && !closed; sent += 1024)
        await new Promise((done) => socket.write(piece, done));
      await until('the end of the connection', () => answer !== undefined || closed);
      return answer !== undefined;
    });
    expect(statusOf(String(answer))).toBe(413);
  });
  expectBounded(cost);
});

it('handles thousands of pipelined requests whose responses nobody reads at bounded cost', async () => {
  const socket = server.connect();
  socket.pause();
  const cost = await server.attack(async () => {
    const requests = 'GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5000);
    socket.write(requests);
    expect((await server.call('GET', '/v1')).status).toBe(200);
    expect((await server.call('GET', '/v1')).status).toBe(200);
  });
  expectBounded(cost);
});
