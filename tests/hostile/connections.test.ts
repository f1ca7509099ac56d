import { once } from 'node:events';
import type { Socket } from 'node:net';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const [IN_ALL, OF_SOURCE] = [600, 300];
const server = useAttackedServer(undefined, `max_connections = ${IN_ALL}\nmax_connections_per_source = ${OF_SOURCE}`);
const ATTACKER = '127.0.0.2';
const ROOM = 20;
const REQUEST = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Name → what each connection sends, and how many of them stay open at least. */
const CONNECTIONS: readonly (readonly [name: string, use: (socket: Socket) => void, least: number])[] = [
  ['send nothing', () => {}, OF_SOURCE],
  ['send half a header', (socket) => void socket.write('GET / HTTP/1.1\r\nX-A: '), OF_SOURCE],
  // The unread bytes of one source are limited too.
  ['do not read a large response', (socket) => void socket.pause().write(REQUEST('/v1/openapi.json')), OF_SOURCE / 10],
  ['do not read several responses', (socket) => void socket.pause().write(REQUEST('/metrics').repeat(2)), OF_SOURCE / 10],
];
it.each(CONNECTIONS)('limits the connections of a source that %s, and still serves other sources', async (_, use, least) => {
  // The connections of the test before count until the server notices that they are closed.
  let before = 0;
  await until('the connections before are closed', async () => (before = (await server.gauges()).files) < OF_SOURCE / 2);
  const cost = await server.attack(async () => {
    for (let at = 0; at < OF_SOURCE + 100; at++) use(server.connect(ATTACKER));
    // ROOM is for the watchdog's connections and those to the database.
    await until('they are open', async () => (await server.gauges()).files >= before + least - ROOM);
    expect((await server.gauges()).files).toBeLessThan(before + OF_SOURCE + ROOM);
    const other = server.connect('127.0.0.3');
    other.write(REQUEST('/'));
    expect(String(((await once(other, 'data')) as [Buffer])[0])).toMatch(/^HTTP\/1\.1 200/);
  });
  expectBounded(cost);
});
