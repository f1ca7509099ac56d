/** The console in the browser: an independent WebSocket client, our bridge, and a TCP server as the console of a conductor. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttp, type Server as HttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { WebSocket } from 'undici';
import { WebSocket as OtherWebSocket, WebSocketServer } from 'ws';
import type { AuditEntry } from '../../../api/http/audit';
import { Unauthenticated } from '../../../api/http/errors';
import { createConsoleBridge } from '../../../api/ui/console';
import { Fault } from '../../../model/errors';
import { silentLog } from '../../../model/log';
import type { NodeRecord } from '../../../model/records';
import { NOBODY } from '../../../policy/caller';
import { answerUpgrades } from '../../../wire/http/upgrades';
import { optionsOf } from '../../support/options';
import { until } from '../../support/until';

const UUID: string = randomUUID();
const options = optionsOf({ 'console.terminal_timeout': 600, 'console.max_session_time': 3600 });
/** What the tests change. */
let now: number;
let identity: 'valid' | 'expired' | 'unknown' | 'slow';
/** The users of the next connections; afterwards it is ann. */
let users: string[];
/** Lets slow identifications end. */
let identify: (() => void)[];
let allowed: readonly string[];
let info: Readonly<Record<string, string>> | null;
let localPort: number | undefined;
/** The WebSocket to another process, where the console is. */
let elsewhere: OtherWebSocket | undefined;
let stopping: AbortController;
let wake: () => void;
/** Ends the waits of the clock. */
let sleeps: (() => void)[];
let raws: Socket[];
let audited: AuditEntry[];

let line: Server;
let lines: Socket[];
let server: HttpServer;
const clients: WebSocket[] = [];
const portOf = (of: Server | HttpServer): number => (of.address() as AddressInfo).port;
beforeEach(async () => {
  now = 1_000_000;
  [identity, allowed, lines, users, identify] = ['valid', ['node:get', 'node:get_console'], [], [], []];
  stopping = new AbortController();
  audited = [];
  wake = () => {};
  [sleeps, raws] = [[], []];
  line = createServer((socket) => {
    lines.push(socket);
    socket.on('error', () => {});
    socket.write('login: ');
  });
  line.listen(0, '127.0.0.1');
  await once(line, 'listening');
  info = { type: 'socat', url: `tcp://127.0.0.1:${portOf(line)}` };
  localPort = portOf(line);
  elsewhere = undefined;
  server = createHttp((_, response) => void response.end('no console'));
  const bridge = createConsoleBridge({
    options,
    log: silentLog,
    audit: { record: (entry) => void audited.push(entry) },
    stopping: stopping.signal,
    sessions: {
      auth: {
        allowed: (_, policy) => allowed.includes(policy),
        identify: async ({ 'x-csrf-token': csrf }, _, method) => {
          if (identity === 'slow') await new Promise<void>((done) => identify.push(done));
          if (identity === 'unknown') throw new Unauthenticated(503, 'cannot be checked');
          if (identity === 'expired' || csrf !== 'token' || method !== 'PUT') throw new Unauthenticated(401, 'no');
          return { ...NOBODY, user: users.shift() ?? 'ann' };
        },
      },
    },
    store: {
      nodes: {
        find: async (uuid) => {
          if (uuid !== UUID) throw new Fault('NodeNotFound', { node: uuid });
          return { uuid, owner: null, lessee: null } as NodeRecord;
        },
      },
    },
    conductor: { consoleInfo: async () => info },
    localConsole: async () => localPort,
    connect: async () => elsewhere,
    clock: {
      now: () => now,
      sleep: (_, signal) =>
        new Promise((done, fail) => {
          wake = done;
          sleeps.push(done);
          signal?.addEventListener('abort', () => fail(new Error('aborted')));
        }),
    },
  });
  answerUpgrades(server, 'connection', bridge);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  for (const socket of [...lines, ...raws]) socket.destroy();
  server.closeAllConnections();
  await Promise.all([server, line].map((each) => new Promise((done) => each.close(done))));
});

interface Client {
  readonly socket: WebSocket;
  text: string;
  end?: { readonly code: number; readonly reason: string };
}
function client({ uuid = UUID, origin = `http://127.0.0.1:${portOf(server)}`, csrf = 'token' } = {}): Client {
  const socket = new WebSocket(`ws://127.0.0.1:${portOf(server)}/ui/console/${uuid}`, {
    protocols: ['bloomery.console', ...(csrf === '' ? [] : [`csrf.${csrf}`])],
    headers: origin === '' ? {} : { origin },
  });
  clients.push(socket);
  socket.binaryType = 'arraybuffer';
  const made: Client = { socket, text: '' };
  socket.addEventListener('message', ({ data }) => (made.text += Buffer.from(data as ArrayBuffer).toString('latin1')));
  socket.addEventListener('error', () => {});
  socket.addEventListener('close', ({ code, reason }) => (made.end = { code, reason }));
  return made;
}
const untilText = (of: Client, text: string): Promise<void> => until(text, () => of.text.includes(text));
const endOf = async (of: Client): Promise<NonNullable<Client['end']>> => {
  await until('the end', () => of.end !== undefined);
  return of.end!;
};
const connected = async (): Promise<Client> => {
  const made = client();
  await untilText(made, 'login: ');
  return made;
};
/** The connections to the conductor's console end with the browser's connections. */
const untilNoLine = (): Promise<void> => until('no connection to the line', () => lines.every(({ destroyed }) => destroyed));

it('carries bytes in both directions, and closes its connection when the browser disconnects', async () => {
  const made = await connected();
  expect(made.socket.protocol).toBe('bloomery.console');
  made.socket.send(Buffer.from('root\r'));
  const [bytes] = (await once(lines[0]!, 'data')) as [Buffer];
  expect(bytes.toString()).toBe('root\r');
  lines[0]!.write(Buffer.from([0xff, 0x1b, 0x5b]));
  await untilText(made, '\xff\x1b[');
  now += 5000;
  made.socket.close();
  await untilNoLine();
  await until('the audit log', () => audited.length === 2);
  expect(audited.map(({ user, operation, node_uuid: node, seconds }) => [user, operation, node, seconds])).toEqual([
    ['ann', 'openConsole', UUID, undefined],
    ['ann', 'closeConsole', UUID, 5],
  ]);
});
it.each([
  ['a page of another origin', { origin: 'http://evil.example' }],
  ['a page of another port', { origin: 'http://127.0.0.1:1' }],
  ['a page without an origin', { origin: 'null' }],
  ['no origin', { origin: '' }],
  ['no CSRF token', { csrf: '' }],
  ['a wrong CSRF token', { csrf: 'guess' }],
  ['an unknown node', { uuid: randomUUID() }],
  ['no UUID', { uuid: '../session' }],
])('refuses %s', async (_, what) => {
  expect(await endOf(client(what))).toMatchObject({ code: 1006 });
  expect(lines).toEqual([]);
});
it.each([['node:get'], ['node:get_console']])('refuses a user without %s', async (policy) => {
  allowed = allowed.filter((name) => name !== policy);
  expect(await endOf(client())).toMatchObject({ code: 1006 });
  expect(lines).toEqual([]);
});
it.each([
  ['the console is off', null, 'The console is off.'],
  ['another kind of console', { type: 'vnc', url: 'http://127.0.0.1:1/' }, 'The console of this node is not a serial console.'],
  ['no port', { type: 'socat', url: 'tcp://127.0.0.1' }, 'The console of this node is not a serial console.'],
])('gives the reason for no console: %s', async (_, given, reason) => {
  info = given;
  expect(await endOf(client())).toEqual({ code: 4000, reason });
});
it.each(['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', 'localhost'])(
  'does not connect to a local address (%s) that a conductor of another process gives',
  async (host) => {
    localPort = undefined;
    info = { type: 'socat', url: `tcp://${host}:${portOf(line)}` };
    const { code, reason } = await endOf(client());
    expect(`${code} ${reason}`).toContain('4000 Another process serves this console');
    expect(lines).toEqual([]);
  },
);
it('reports that a console cannot be reached', async () => {
  const gone = createServer().listen(0, '127.0.0.1');
  await once(gone, 'listening');
  localPort = portOf(gone);
  info = { type: 'socat', url: `tcp://127.0.0.1:${localPort}` };
  await new Promise((done) => gone.close(done));
  expect(await endOf(client())).toEqual({ code: 4000, reason: 'The console cannot be reached.' });
});
it.each([
  ['the session has ended', () => (identity = 'expired'), 4003],
  ['the user has lost a right', () => (allowed = ['node:get']), 4003],
  ['nothing was typed or shown', () => (now += 600_000), 1000],
])('ends an open console when %s', async (_, change, code) => {
  const made = await connected();
  change();
  wake();
  expect(await endOf(made)).toMatchObject({ code });
  await untilNoLine();
});
it('ends a console after max_session_time, even with traffic', async () => {
  const made = await connected();
  for (let minutes = 0; minutes < 60; minutes += 5) {
    now += 300_000;
    lines[0]!.write(`${minutes};`);
    await untilText(made, `${minutes};`);
  }
  wake();
  expect(await endOf(made)).toEqual({ code: 1000, reason: 'The session reached its time limit.' });
});
it('keeps a console while the session cannot be checked', async () => {
  const made = await connected();
  identity = 'unknown';
  wake();
  lines[0]!.write('still here');
  await untilText(made, 'still here');
  expect(made.end).toBeUndefined();
});
/** A client without a WebSocket library, which can open many. @returns the status of the answer */
function opened(path = `/ui/console/${UUID}`, protocols = 'bloomery.console, csrf.token'): Promise<number> {
  return new Promise((done) => {
    const raw = connect(portOf(server), '127.0.0.1', () => {
      const host = `127.0.0.1:${portOf(server)}`;
      const key = `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`;
      const headers = `Host: ${host}\r\nOrigin: http://${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${key}`;
      raw.write(`GET ${path} HTTP/1.1\r\n${headers}\r\nSec-WebSocket-Protocol: ${protocols}\r\n\r\n`);
    });
    raws.push(raw);
    raw.on('error', () => {});
    raw.once('data', (bytes: Buffer) => done(Number(bytes.toString('latin1').split(' ')[1])));
    raw.once('close', () => done(0));
  });
}
const times = (count: number, make: () => Promise<number>): Promise<number>[] => Array.from({ length: count }, make);

it('openings without a login take no place of a console', async () => {
  identity = 'slow';
  const refused = times(8, () => opened());
  await until('the openings are checked', () => identify.length === 8);
  // More of the same source are refused at once.
  expect(await opened()).toBe(503);
  identity = 'expired';
  for (const end of identify) end();
  expect(await Promise.all(refused)).toEqual(Array(8).fill(401));
  for (let round = 0; round < 30; round++) expect(await Promise.all(times(8, () => opened()))).toEqual(Array(8).fill(401));
  identity = 'valid';
  await connected();
});
it('refuses an opening that cannot be checked in time, and counts it until the check ends', async () => {
  identity = 'slow';
  const waiting = times(8, () => opened());
  await until('the openings are checked', () => identify.length === 8 && sleeps.length === 8);
  for (const end of sleeps.splice(0)) end();
  expect(await Promise.all(waiting)).toEqual(Array(8).fill(503));
  expect(await opened()).toBe(503);
  identity = 'valid';
  for (const end of identify) end();
  await connected();
  expect(lines).toHaveLength(1);
});
it('a user takes at most half of the places', async () => {
  for (let count = 0; count < 100; count += 5) expect(await Promise.all(times(5, () => opened()))).toEqual(Array(5).fill(101));
  expect(await opened()).toBe(503);
  users = ['bob'];
  expect(await opened()).toBe(101);
});
it('disconnects a client that sends too large a frame', async () => {
  const made = await connected();
  made.socket.send(Buffer.alloc(20_000));
  await endOf(made);
  await untilNoLine();
});
it('ends a console when the conductor disconnects, and when the server stops', async () => {
  const first = await connected();
  lines[0]!.end();
  expect(await endOf(first)).toEqual({ code: 1000, reason: 'The console was disconnected.' });
  const second = await connected();
  stopping.abort();
  expect(await endOf(second)).toEqual({ code: 1001, reason: 'The server stops.' });
  expect(await endOf(client())).toMatchObject({ code: 1006 });
  await untilNoLine();
});
it('stops reading from the conductor while the browser does not read', async () => {
  const key = Buffer.alloc(16).toString('base64');
  const raw = connect(portOf(server), '127.0.0.1');
  raw.write(
    `GET /ui/console/${UUID} HTTP/1.1\r\nHost: 127.0.0.1:${portOf(server)}\r\nOrigin: http://127.0.0.1:${portOf(server)}\r\n` +
      `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n` +
      'Sec-WebSocket-Protocol: bloomery.console, csrf.token\r\n\r\n',
  );
  await once(raw, 'readable');
  await until('a line', () => lines.length === 1);
  const block = Buffer.alloc(1 << 20, 'x');
  // All buffers fill up: ours, and those of the kernel.
  for (let sent = 0; sent < 64; sent++) if (!lines[0]!.write(block)) break;
  for (let more = 0; more < 63; more++) lines[0]!.write(block);
  await until('the line waits', () => lines[0]!.writableLength > 32 << 20);
  raw.destroy();
  await untilNoLine();
});

it('ends when the process that has the console answers no more', async () => {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong: false });
  await once(sockets, 'listening');
  const opened = once(sockets, 'connection') as Promise<[OtherWebSocket]>;
  elsewhere = new OtherWebSocket(`ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`);
  elsewhere.once('open', () => elsewhere!.pause());
  const [[there]] = await Promise.all([opened, once(elsewhere, 'open')]);
  there.send('login: ');
  const made = await connected();
  const pinged = once(there, 'ping');
  sleeps.splice(0).forEach((end) => end());
  await pinged;
  // When these have come, the browser has answered its own ping.
  const said = once(there, 'message');
  there.send('more');
  await until('more', () => made.text.endsWith('more'));
  made.socket.send('x');
  await said;
  await until('the next waits', () => sleeps.length >= 2);
  sleeps.splice(0).forEach((end) => end());
  await until('the end', () => made.end !== undefined);
  expect(made.end).toEqual({ code: 1000, reason: 'The console was disconnected.' });
  await new Promise((done) => sockets.close(done));
});
