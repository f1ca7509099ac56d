import { once } from 'node:events';
import type { Socket } from 'node:net';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const [IN_ALL, OF_SOURCE] = [600, 300];
const server = useAttackedServer(undefined, `max_connections = ${IN_ALL}\nmax_connections_per_source = ${OF_SOURCE}`);
const ATTACKER = '127.0.0.2';
const REQUEST = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** @returns how many were closed */
function open(count: number, use: (socket: Socket) => void): () => number {
  let closed = 0;
  for (let at = 0; at < count; at++) {
    const socket = server.connect(ATTACKER);
    socket.once('close', () => closed++);
    use(socket);
  }
  return () => closed;
}
/** Name → what each connection sends. */
const CONNECTIONS: readonly (readonly [name: string, use: (socket: Socket) => void])[] = [
  ['send nothing', () => {}],
  ['send half a header', (socket) => void socket.write('GET / HTTP/1.1\r\nX-A: ')],
  ['do not read a large response', (socket) => void socket.pause().write(REQUEST('/v1/openapi.json'))],
  ['do not read many responses', (socket) => void socket.pause().write(REQUEST('/metrics').repeat(16))],
];
it.each(CONNECTIONS)('hundreds of connections that %s', async (_, use) => {
  const cost = await server.attack(async () => {
    const closed = open(OF_SOURCE + 100, use);
    // Connections of the test before may still count.
    await until('those beyond the limit are closed', () => closed() >= 100);
    const other = server.connect('127.0.0.3');
    other.write(REQUEST('/'));
    expect(String(((await once(other, 'data')) as [Buffer])[0])).toMatch(/^HTTP\/1\.1 200/);
  });
  expectBounded(cost);
});
