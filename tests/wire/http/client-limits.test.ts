import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { limitClients, networkOf, type ClientLimits } from '../../../wire/http/client-limits';
import { until } from '../../support/until';

type ClientLimit = Parameters<NonNullable<ClientLimits['onRefused']>>[0];
const LIMITS: ClientLimits = { connections: { inAll: 4, ofSource: 2 }, readTimeoutMs: 30_000 };
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const MIB = 2 ** 20;
const warnings: object[] = [];
const refused: ClientLimit[] = [];
const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
  warnings.length = 0;
  refused.length = 0;
});
async function limited(handler: RequestListener, limits: Partial<ClientLimits> = {}): Promise<Server> {
  const server = createServer();
  limitClients(server, { ...LIMITS, ...limits, onRefused: (limit) => void refused.push(limit) }, handler, {
    warn: (_, fields = {}) => void warnings.push(fields),
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
interface Client {
  readonly socket: Socket;
  text: string;
  isClosed: boolean;
}
function client(server: Server, localAddress = '127.0.0.1'): Client {
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  const made: Client = { socket, text: '', isClosed: false };
  socket.on('data', (data: Buffer) => (made.text += data.toString()));
  socket.on('error', () => {});
  socket.once('close', () => (made.isClosed = true));
  return made;
}
const isAnswered = ({ text }: Client): boolean => text.startsWith('HTTP/1.1 200');
const answerAll: RequestListener = (_, response) => void response.end('answer');
/** A client with an answered request, so that its connection is known. */
async function answered(server: Server, localAddress?: string): Promise<Client> {
  const made = client(server, localAddress);
  made.socket.write(REQUEST);
  await until('it is answered', () => isAnswered(made));
  return made;
}

it('reads all header fields, so that none hides behind others', async () => {
  let seen: string | undefined;
  const server = await limited(({ headers }, response) => {
    seen = headers['x-last'] as string;
    response.end('answer');
  });
  const made = client(server);
  made.socket.write(REQUEST.replace('\r\n\r\n', `\r\n${'A: 1\r\n'.repeat(2000)}X-Last: 1\r\n\r\n`));
  await until('it is answered', () => isAnswered(made));
  expect(seen).toBe('1');
});

it('refuses connections beyond the limits per source and in total, until others are closed', async () => {
  const server = await limited(answerAll);
  const first = await answered(server);
  await answered(server);
  const third = client(server);
  await until('the third is refused', () => third.isClosed);
  await answered(server, '127.0.0.2');
  await answered(server, '127.0.0.2');
  const fifth = client(server, '127.0.0.3');
  await until('the fifth is refused', () => fifth.isClosed);
  expect(refused).toEqual(['source', 'total']);
  // One line a minute.
  expect(warnings).toEqual([{ source: '127.0.0.1', limit: 4, limit_of_source: 2 }]);
  first.socket.destroy();
  await until('there is room', async () => {
    const again = client(server);
    again.socket.write(REQUEST);
    await until('it ends', () => again.isClosed || isAnswered(again));
    return isAnswered(again);
  });
});

it('handles the requests of a connection in order, and closes a connection with too many pipelined requests', async () => {
  const started: (() => void)[] = [];
  const server = await limited((_, response) => void started.push(() => response.end('answer')));
  const polite = client(server);
  polite.socket.write(REQUEST.repeat(3));
  for (let turn = 1; turn <= 3; turn++) {
    await until('one is handled', () => started.length === turn);
    started.at(-1)!();
    await until('it is answered', () => polite.text.split('answer').length === turn + 1);
  }
  const flood = client(server);
  flood.socket.write(REQUEST.repeat(17));
  await until('it is closed', () => flood.isClosed);
  expect(started).toHaveLength(4);
  expect(refused).toEqual(['pipelined']);
});

it('disconnects a client that does not read, but not one that waits for its handler', async () => {
  const handled: (() => void)[] = [];
  const server = await limited(
    (request, response) => {
      if (request.url === '/slow') handled.push(() => response.end('answer'));
      else response.end(Buffer.alloc(16 * MIB));
    },
    { readTimeoutMs: 300 },
  );
  const slow = client(server);
  slow.socket.write(REQUEST.replace('/', '/slow'));
  await until('it is handled', () => handled.length === 1);
  const deaf = client(server);
  deaf.socket.pause();
  deaf.socket.write(REQUEST);
  const connections = (): Promise<number> => new Promise((done) => server.getConnections((_, count) => done(count)));
  await until('both are open', async () => (await connections()) === 2);
  await until('one is closed', async () => (await connections()) === 1);
  handled[0]!();
  await until('the other one is answered', () => isAnswered(slow));
  expect(refused).toEqual(['slow']);
});

it('disconnects only the source that leaves too many bytes unread', async () => {
  const server = await limited((_, response) => void response.end(Buffer.alloc(16 * MIB)), {
    connections: { inAll: 10, ofSource: 10 },
    unreadBytes: { inAll: 64 * MIB, ofSource: 20 * MIB },
  });
  const deaf = Array.from({ length: 3 }, () => client(server));
  for (const { socket } of deaf) {
    socket.pause();
    socket.write(REQUEST);
  }
  const connections = (): Promise<number> => new Promise((done) => server.getConnections((_, count) => done(count)));
  await until('all but one are closed', async () => (await connections()) === 1);
  const other = await answered(server, '127.0.0.2');
  await until('it has all', () => other.text.length > 16 * MIB);
  expect(refused).toEqual(['unread', 'unread']);
});

it.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '::ffff:10.1.2.3'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['::1', '0:0:0:0'],
])('networkOf(%s) is %s', (address, source) => {
  expect(networkOf(address)).toBe(source);
});

it('starts only a few requests of a source per turn of the event loop, together with those of other sources', async () => {
  const started: string[] = [];
  const turns: number[] = [];
  const server = await limited(
    ({ socket }, response) => {
      started.push(socket.remoteAddress!);
      response.end('answer');
    },
    { connections: { inAll: 50, ofSource: 40 } },
  );
  const clients = Array.from({ length: 30 }, () => client(server));
  const other = client(server, '127.0.0.2');
  const count = (): Promise<number> => new Promise((done) => server.getConnections((_, all) => done(all)));
  await until('all are connected', async () => (await count()) === 31);
  // As if all had arrived in one turn of the event loop.
  const [arrived] = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  const held: (() => void)[] = [];
  server.on('request', (request, response) => void held.push(() => arrived!(request, response)));
  for (const { socket } of [...clients, other]) socket.write(REQUEST);
  await until('all requests are here', () => held.length === 31);
  held.forEach((handle) => handle());
  while (started.length < 31) {
    turns.push(started.length);
    await new Promise((done) => setImmediate(done));
  }
  // Fewer where the machine is so busy that the time of a turn is used up.
  expect(turns[0]).toBeLessThanOrEqual(9);
  turns.slice(1).forEach((sum, index) => expect(sum - turns[index]!).toBeLessThanOrEqual(8));
  expect(started.slice(0, turns[0])).toContain('127.0.0.2');
  await until('all are answered', () => [...clients, other].every(isAnswered));
});
