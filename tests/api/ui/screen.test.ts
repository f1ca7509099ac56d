/** Screens in the browser: an independent WebSocket client, our bridge, and the test picture as the machine. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WebSocket } from 'undici';
import { Unauthenticated } from '../../../api/http/errors';
import type { AuditEntry } from '../../../api/http/audit';
import { createPageScreens, createTokenScreens } from '../../../api/ui/screen';
import { createScreens, type Screens } from '../../../drivers/screens';
import type { Screen } from '../../../drivers/interfaces';
import { Fault } from '../../../model/errors';
import { silentLog } from '../../../model/log';
import type { NodeRecord } from '../../../model/records';
import { tokenTime } from '../../../model/rules/screen-token';
import { NOBODY } from '../../../policy/caller';
import { answerUpgrades } from '../../../wire/http/upgrades';
import { openTestPicture } from '../../../wire/rfb/test-picture';
import { optionsOf } from '../../support/options';
import { BOTH, endOfScreen, openScreenClient, shakeHands, type ScreenClient } from '../../support/screen-client';
import { until } from '../../support/until';

const UUID: string = randomUUID();
const TOKEN = 'a-token';
let now: number;
let allowed: readonly string[];
let isOn: boolean;
let internal: NodeRecord['driver_internal_info'];
let audited: AuditEntry[];
let stopping: AbortController;
let sleeps: (() => void)[];
let opened: Screen[];
let opens: (signal: AbortSignal) => Promise<Screen>;
let viewers: Screens;
let server: Server;
const clients: WebSocket[] = [];

async function start(changes: object = {}): Promise<void> {
  const options = optionsOf({ 'vnc.token_timeout': 600, 'vnc.max_session_time': 3600, ...changes });
  server = createServer((_, response) => void response.end('no screen'));
  const parts = {
    options,
    log: silentLog,
    audit: { record: (entry: AuditEntry) => void audited.push(entry) },
    stopping: stopping.signal,
    screens: {
      local: {
        enter: viewers.enter,
        open: async (_: string, signal: AbortSignal) => {
          const screen = await opens(signal);
          opened.push(screen);
          return screen;
        },
      },
    },
    store: {
      nodes: {
        find: async (uuid: string) => {
          if (uuid !== UUID) throw new Fault('NodeNotFound', { node: uuid });
          return { uuid, owner: null, lessee: null, console_enabled: isOn, driver_internal_info: internal } as NodeRecord;
        },
      },
    },
    sessions: {
      auth: {
        allowed: (_: unknown, policy: string) => allowed.includes(policy),
        identify: async ({ 'x-csrf-token': csrf }: Readonly<Record<string, unknown>>) => {
          if (csrf !== 'token') throw new Unauthenticated(401, 'no');
          return { ...NOBODY, user: 'ann' };
        },
      },
    },
    clock: {
      now: () => now,
      sleep: (_: number, signal?: AbortSignal) =>
        new Promise<void>((done, fail) => {
          sleeps.push(done);
          signal?.addEventListener('abort', () => fail(new Error('aborted')));
        }),
    },
  };
  const [ofPage, ofToken] = [createPageScreens(parts), createTokenScreens(parts)];
  answerUpgrades(server, 'connection', (...given) => ofPage(...given) || ofToken(...given));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
}
beforeEach(() => {
  now = Date.parse('2026-02-03T04:05:06Z');
  [allowed, isOn, audited, sleeps, opened] = [['node:get', 'node:get_console'], true, [], [], []];
  internal = { novnc_secret_token: TOKEN, novnc_secret_token_created: tokenTime(now) };
  stopping = new AbortController();
  opens = async () => ({ kind: 'rfb', stream: openTestPicture(stopping.signal), password: '' });
  viewers = createScreens({ inAll: 4, ofNode: 2 });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  stopping.abort();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

interface Given {
  readonly path?: string;
  readonly origin?: string;
  readonly csrf?: string;
  readonly protocols?: readonly string[];
}
const base = (): string => `127.0.0.1:${(server.address() as AddressInfo).port}`;
function client({ path = `/ui/screen/${UUID}`, origin = `http://${base()}`, csrf = 'token', protocols = BOTH }: Given = {}): ScreenClient {
  const offered = [...protocols, ...(csrf === '' ? [] : [`csrf.${csrf}`])];
  const made = openScreenClient(`ws://${base()}${path}`, origin === '' ? {} : { origin }, offered);
  clients.push(made.socket);
  return made;
}
const byToken = (token = TOKEN, more = '', uuid = UUID): Given => ({ path: `/websockify?node=${uuid}&token=${token}${more}`, csrf: '' });
/** Plays the handshake of RFB. */
async function connected(given: Given = {}): Promise<ScreenClient> {
  const made = client(given);
  expect(await shakeHands(made)).toEqual([640, 400]);
  return made;
}
const lastStream = () => {
  const screen = opened.at(-1);
  if (screen?.kind !== 'rfb') throw new Error('no stream');
  return screen.stream;
};

it('shows the screen to a user of the page and to the holder of the token, and the audit log says who looked', async () => {
  await start();
  const page = await connected();
  expect(page.socket.protocol).toBe('bloomery.screen');
  const foreign = await connected({ ...byToken(), protocols: ['binary'], origin: '' });
  expect(foreign.socket.protocol).toBe('binary');
  page.socket.send(Buffer.from([3, 0, 0, 0, 0, 0, 2, 128, 1, 144]));
  await until('a picture', () => page.bytes.length >= 18 + 36 + 16 + 640 * 400 * 4);
  now += 90_000;
  page.socket.close();
  await until('the end of the first', () => audited.length === 3);
  lastStream().destroy();
  expect(await endOfScreen(foreign)).toEqual({ code: 1000, reason: 'The machine ended the connection.' });
  await until('both ends', () => audited.length === 4);
  expect(
    audited.map(({ user, operation, view_only, seconds, reason, node_uuid, path }) => [
      user,
      operation,
      view_only,
      seconds,
      reason,
      node_uuid,
      path,
    ]),
  ).toEqual([
    ['ann', 'openScreen', false, undefined, undefined, UUID, `/ui/screen/${UUID}`],
    [null, 'openScreen', true, undefined, undefined, UUID, '/websockify'],
    ['ann', 'closeScreen', false, 90, 'The viewer left.', UUID, `/ui/screen/${UUID}`],
    [null, 'closeScreen', true, 90, 'The machine ended the connection.', UUID, '/websockify'],
  ]);
  expect(viewers.isWatched(UUID)).toBe(false);
});

it.each<readonly [string, Given]>([
  ['a page of another origin', { origin: 'http://evil.example' }],
  ['no origin', { origin: '' }],
  ['no CSRF token', { csrf: '' }],
  ['an unknown node', { path: `/ui/screen/${randomUUID()}` }],
  ['no UUID', { path: '/ui/screen/x' }],
  ['a token from another origin', { ...byToken(), origin: 'http://evil.example' }],
  ['a wrong token', byToken('b-token')],
  ['no token', byToken('')],
  ['a long token', byToken('a'.repeat(300))],
  ['the token of another node', byToken(TOKEN, '', randomUUID())],
  ['no node', byToken(TOKEN, '', '')],
])('refuses %s', async (_, given) => {
  await start();
  expect(await endOfScreen(client(given))).toMatchObject({ code: 1006 });
  expect(audited).toEqual([]);
});
it('refuses a token that has ended, or whose console is off', async () => {
  await start();
  isOn = false;
  expect(await endOfScreen(client(byToken()))).toMatchObject({ code: 1006 });
  isOn = true;
  now += 600_000;
  expect(await endOfScreen(client(byToken()))).toMatchObject({ code: 1006 });
});
it('an allowed origin may use a token', async () => {
  await start({ 'cors.allowed_origin': ['http://horizon.example'] });
  await connected({ ...byToken(), origin: 'http://horizon.example' });
});
it.each(['node:get', 'node:get_console'])('refuses a user without %s', async (policy) => {
  await start();
  allowed = allowed.filter((name) => name !== policy);
  expect(await endOfScreen(client())).toMatchObject({ code: 1006 });
});

it('only the first user controls the machine, and who wishes to look only looks', async () => {
  await start();
  const first = await connected(byToken(TOKEN, '&view=1'));
  expect(first.socket.protocol).toBe('bloomery.screen.view');
  const second = await connected();
  expect(second.socket.protocol).toBe('bloomery.screen');
  expect(await endOfScreen(client())).toEqual({ code: 4003, reason: 'Too many users look at this screen.' });
  // What only looks sends no keys: an unknown message shows that the key before it was read.
  const keys: Buffer[] = [];
  const machine = opened[0];
  if (machine?.kind !== 'rfb') throw new Error('no stream');
  const write = machine.stream.write.bind(machine.stream) as (bytes: Buffer) => boolean;
  machine.stream.write = ((bytes: Buffer) => {
    keys.push(bytes);
    return write(bytes);
  }) as typeof machine.stream.write;
  first.socket.send(Buffer.from([4, 1, 0, 0, 0, 0, 0, 97, 99]));
  expect(await endOfScreen(first)).toEqual({ code: 1000, reason: 'The viewer sent a message that is not known here.' });
  expect(keys).toEqual([]);
});
it('[vnc]read_only lets nobody control a machine', async () => {
  await start({ 'vnc.read_only': true });
  expect((await connected()).socket.protocol).toBe('bloomery.screen.view');
});

it('closes a screen when the console is turned off, the token is replaced, or the time is over', async () => {
  await start();
  const rows: readonly (readonly [Given, () => void, string])[] = [
    [{}, () => (isOn = false), 'The session has ended, or you may not use this console any more.'],
    [{}, () => (allowed = []), 'The session has ended, or you may not use this console any more.'],
    [
      byToken(),
      () => (internal = { ...internal, novnc_secret_token: 'new' }),
      'The session has ended, or you may not use this console any more.',
    ],
    [{}, () => (now += 3_600_000), 'The session reached its time limit.'],
  ];
  for (const [given, change, reason] of rows) {
    const before = { isOn, allowed, internal, now };
    const made = await connected(given);
    await until('a check', () => sleeps.length > 0);
    change();
    sleeps.splice(0).forEach((wake) => wake());
    expect(await endOfScreen(made)).toMatchObject({ reason });
    ({ isOn, allowed, internal, now } = before);
    await until('nobody looks', () => !viewers.isWatched(UUID));
    sleeps.splice(0);
  }
  const made = await connected();
  viewers.hangUp(UUID, 'The console was turned off.');
  expect(await endOfScreen(made)).toEqual({ code: 4003, reason: 'The console was turned off.' });
  const last = await connected();
  stopping.abort();
  expect(await endOfScreen(last)).toMatchObject({ reason: expect.stringMatching(/stops|left|ended/) as string });
});

it('closes the screen of a user who does not use what he may use, and another user may', async () => {
  await start({ 'vnc.max_idle_time': 300 });
  const [first, second] = [await connected(), await connected()];
  // Each opening has a time limit, too.
  await until('checks', () => sleeps.length === 4);
  now += 299_000;
  first.socket.send(Buffer.from([4, 1, 0, 0, 0, 0, 0, 97, 3, 0, 0, 0, 0, 0, 0, 1, 0, 1]));
  await until('the picture after the key', () => first.bytes.length > 18 + 36);
  now += 299_000;
  sleeps.splice(0).forEach((wake) => wake());
  await until('checks', () => sleeps.length === 2);
  expect([first.end, second.end]).toEqual([undefined, undefined]);
  now += 1000;
  sleeps.splice(0).forEach((wake) => wake());
  expect(await endOfScreen(first)).toEqual({ code: 1000, reason: 'There was no traffic for too long.' });
  expect(second.end).toBeUndefined();
  second.socket.close();
  await until('the places are free', () => !viewers.isWatched(UUID));
  expect((await connected()).socket.protocol).toBe('bloomery.screen');
});

it('a user has at most half of the screens of a process', async () => {
  await start({ 'vnc.max_screens': 3 });
  const [first] = [await connected(), await connected()];
  expect(await endOfScreen(client())).toMatchObject({ code: 1006 });
  first.socket.close();
  await until('a place', async () => {
    const made = client();
    await until('an answer', () => made.end !== undefined || made.bytes.length > 0);
    return made.end === undefined;
  });
});

it('the page and the port of screens have one limit', async () => {
  await start({ 'vnc.max_screens': 1 });
  const ofPage = await connected();
  expect(await endOfScreen(client(byToken(TOKEN)))).toMatchObject({ code: 1006 });
  ofPage.socket.close();
  await until('a place', async () => {
    const made = client(byToken(TOKEN));
    await until('an answer', () => made.end !== undefined || made.bytes.length > 0);
    return made.end === undefined;
  });
});

it('says why a screen cannot be shown, and names the page of a BMC', async () => {
  await start();
  opens = async () => {
    throw new Fault('DriverOperationError', { message: 'The VNC server of the machine cannot be reached.' });
  };
  expect(await endOfScreen(client())).toEqual({ code: 4000, reason: 'The VNC server of the machine cannot be reached.' });
  opens = async () => ({ kind: 'page', url: 'https://bmc.example/console?x=1' });
  const made = client();
  expect(await endOfScreen(made)).toMatchObject({ code: 1000 });
  expect(JSON.parse(made.text)).toEqual({ page: 'https://bmc.example/console?x=1' });
  const looking = client(byToken(TOKEN, '&view=1'));
  expect(await endOfScreen(looking)).toMatchObject({
    code: 4000,
    reason: expect.stringMatching(/^The BMC shows the screen on a page/) as string,
  });
  expect(looking.text).toBe('');
});

it('leaves other requests to the server', async () => {
  await start();
  expect(await (await fetch(`http://${base()}/websockify`)).text()).toBe('no screen');
});
