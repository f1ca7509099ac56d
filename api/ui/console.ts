/**
 * The serial console of a node in the browser: a WebSocket (RFC 6455) at /ui/console/NODE, connected to the TCP port of the console that
 * the conductor serves (drivers/consoles.ts). Pages of other origins cannot open it: they have neither this origin nor the CSRF token.
 */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocketServer, type WebSocket } from 'ws';
import type { Options } from '../../config/options';
import type { Conductor, ScreenPlaces } from '../../conductor/conductor';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { canonicalAddress, isLoopback, isUuid, networksOf } from '../../model/idents';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';
import type { UpgradeListener } from '../../wire/http/upgrades';
import { createShares, shareLimits, type ShareLimits } from '../../wire/shares';
import type { Sessions } from '../auth/sessions';
import type { AuditLog } from '../http/audit';
import { isOfOwnPage } from '../http/cors';
import { sourceOf } from '../http/source';
import { targetOf } from '../http/target';
import { createConsoleRights } from './console-rights';
import { recordVisit } from './visit-audit';
import { close, CLOSE, refuse, statusOf, watch, watchProcess } from './web-sockets';

interface LineParts {
  readonly options: Options;
  readonly conductor: Pick<Conductor, 'consoleInfo'>;
  /** The port of a console that this process serves. */
  readonly localConsole: (uuid: string) => Promise<number | undefined>;
  /** Reaches consoles of other processes. Absent: there is no other process. */
  readonly connect?: ScreenPlaces['connect'];
  readonly log: Log;
  readonly clock: Clock;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}
interface ConsoleParts extends LineParts {
  readonly sessions: Pick<Sessions, 'auth'>;
  readonly store: { readonly nodes: Pick<Store['nodes'], 'find'> };
  readonly audit?: AuditLog | undefined;
}

const PATH = '/ui/console/';
/** Where a conductor accepts consoles from other processes. */
const RELAY_PATH = '/consoles/';
const PROTOCOL = 'bloomery.console';
/** Consoles of this process that are open at once, in all and of a user. Only users with the right to the console have one. */
const OPEN: ShareLimits = shareLimits(200, null);
/** Bytes. The page sends what a user types or pastes in pieces of at most this size. */
const MAX_FRAME = 16 * 1024;
/** Bytes of output that wait for the browser. Above it nothing is read from the console, which then disconnects (drivers/consoles.ts). */
const MAX_UNSENT = 256 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

/** `tcp://HOST:PORT`; undefined for other kinds of consoles. */
function addressIn(info: Readonly<Record<string, unknown>>): { readonly host: string; readonly port: number } | undefined {
  const { type, url } = info;
  if (type !== 'socat' || typeof url !== 'string' || !URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  return protocol === 'tcp:' && port !== '' ? { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) } : undefined;
}
const UNSPECIFIED = networksOf(['0.0.0.0/8', '::']);
/** Whether the address is a loopback or unspecified one, which reaches this host itself, or a name, which may resolve to one. */
function mayBeThisHost(host: string): boolean {
  const address = canonicalAddress(host);
  return address === undefined || isLoopback(address) || UNSPECIFIED.contains(address);
}

function connectTo(address: { readonly host: string; readonly port: number }, signal: AbortSignal): Promise<Socket> {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const line = connect(address);
    line.on('error', () => {});
    const abandon = (error: Error): void => {
      line.destroy();
      fail(error);
    };
    const late = setTimeout(() => abandon(new Error('The console does not answer.')), CONNECT_TIMEOUT_MS);
    const leave = (): void => abandon(new Error('The browser has gone.'));
    signal.addEventListener('abort', leave, { once: true });
    line.once('error', () => abandon(new Error('The console cannot be reached.')));
    line.once('close', () => clearTimeout(late));
    line.once('connect', () => {
      clearTimeout(late);
      signal.removeEventListener('abort', leave);
      line.setNoDelay(true);
      done(line);
    });
  });
}
/** Copies in both directions, each no faster than the other side reads. */
function join(client: WebSocket, line: Duplex, onTraffic: () => void): void {
  client.on('message', (data) => {
    onTraffic();
    if (line.write(data)) return;
    client.pause();
    line.once('drain', () => client.resume());
  });
  line.on('data', (bytes: Buffer) => {
    onTraffic();
    client.send(bytes, () => {
      if (client.bufferedAmount < MAX_UNSENT) line.resume();
    });
    if (client.bufferedAmount >= MAX_UNSENT) line.pause();
  });
  line.once('close', () => close(client, CLOSE.ended, 'The console was disconnected.'));
}

function createSockets(answers: WeakMap<IncomingMessage, readonly string[]>): WebSocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: () => PROTOCOL,
  });
  sockets.on('headers', (lines, request) => void lines.push(...(answers.get(request) ?? [])));
  return sockets;
}
/** The code of a connection that ended without a close frame (RFC 6455 §7.4.1). */
const CUT = 1006;
/** Connects a browser, or another process, to the line of a console. */
type Serve = (client: WebSocket, uuid: string, authorise: () => Promise<unknown>) => Promise<void>;
function createLines(parts: LineParts): Serve {
  const { options, conductor, log, clock, stopping } = parts;
  const limits = { idle: options['console.terminal_timeout'], session: options['console.max_session_time'] };
  // Each console listens to the end of the server.
  setMaxListeners(0, stopping);

  /** @throws Error with a message for the user */
  async function addressOf(uuid: string): Promise<{ readonly host: string; readonly port: number }> {
    const info = await conductor.consoleInfo(uuid);
    if (info === null) throw new Error('The console is off.');
    const address = addressIn(info);
    if (address === undefined) throw new Error('The console of this node is not a serial console.');
    // Another node may have the same port on this host as this node on its conductor's host.
    if (mayBeThisHost(address.host) && (await parts.localConsole(uuid)) !== address.port)
      throw new Error('Another process serves this console on a local address: set [console]socat_address on its conductor.');
    return address;
  }
  /** The line of a console in another process. Undefined: it is here, or at an address that all processes reach. */
  async function lineThere(client: WebSocket, uuid: string, signal: AbortSignal): Promise<Duplex | undefined> {
    const remote = await parts.connect?.(uuid, `${RELAY_PATH}${uuid}`, [PROTOCOL], signal).catch((error: unknown) => {
      log.warn('the conductor of a node gives no console', { node: uuid, error: reasonOf(error) });
      return undefined;
    });
    if (!remote) return undefined;
    // The stream reports errors, too. With `allowHalfOpen`, it would not close when the other process closes the WebSocket.
    const line = createWebSocketStream(remote, { allowHalfOpen: false }).on('error', () => {});
    remote.once('close', (code, reason) => {
      if (code === CLOSE.failed) close(client, CLOSE.failed, reason.toString());
      // After a connection that was cut, the stream waits for its end.
      if (code === CUT) line.destroy();
    });
    watchProcess(remote, clock, signal);
    return line;
  }
  return async (client, uuid, authorise) => {
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Error('the browser has gone'));
    client.once('close', leave);
    // The library closes the connection after a frame that is too large or malformed.
    client.on('error', () => {});
    client.pause();
    const stop = (): void => close(client, CLOSE.stopping, 'The server stops.');
    stopping.addEventListener('abort', stop, { once: true });
    let line: Duplex | undefined;
    try {
      line = (await lineThere(client, uuid, gone.signal)) ?? (await connectTo(await addressOf(uuid), gone.signal));
      let last = clock.now();
      watch(client, { clock, limits, lastTraffic: () => last, authorise, signal: gone.signal }).catch(() => {});
      join(client, line, () => (last = clock.now()));
      client.resume();
      if (!gone.signal.aborted) await new Promise((done) => gone.signal.addEventListener('abort', done, { once: true }));
    } catch (error) {
      client.resume();
      close(client, CLOSE.failed, reasonOf(error));
    } finally {
      stopping.removeEventListener('abort', stop);
      line?.destroy();
    }
  };
}

export function createConsoleBridge(parts: ConsoleParts): UpgradeListener {
  const { options, log, clock, stopping } = parts;
  const sockets = createSockets(new WeakMap());
  const serve = createLines(parts);
  const rights = createConsoleRights(parts);
  const open = createShares(OPEN);

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer, uuid: string): Promise<void> {
    const source = sourceOf(request, options);
    let user: string | null;
    try {
      user = await rights.checkOpening(request, uuid);
    } catch (error) {
      if (statusOf(error) === 500) log.error('a console in the browser failed', { node: uuid, error: reasonOf(error) });
      log.info('a console in the browser was refused', { node: uuid, status: statusOf(error), source });
      refuse(socket, statusOf(error));
      return;
    }
    if (socket.destroyed) return;
    const owner = user ?? source;
    if (!open.take(owner, 1)) refuse(socket, 503);
    else await show(request, socket, head, uuid, user).finally(() => open.give(owner, 1));
  }
  async function show(request: IncomingMessage, socket: Duplex, head: Buffer, uuid: string, user: string | null): Promise<void> {
    const client = await new Promise<WebSocket | undefined>((done) => {
      // The library refuses a request that is not for a WebSocket.
      socket.once('close', () => done(undefined));
      sockets.handleUpgrade(request, socket, head, done);
    });
    if (client === undefined) return;
    const visit = { uuid, user, path: `${PATH}${uuid}`, source: sourceOf(request, options) };
    const begun = clock.now();
    log.info('a console was opened in the browser', { node: uuid, user });
    recordVisit(parts, visit, 'openConsole');
    await serve(client, uuid, () => rights.check(request, uuid));
    log.info('a console in the browser was closed', { node: uuid, user });
    recordVisit(parts, visit, 'closeConsole', { seconds: Math.round((clock.now() - begun) / 1000) });
  }

  return (request, socket, head) => {
    const { bare } = targetOf(request.url ?? '/');
    if (!bare.startsWith(PATH)) return false;
    const uuid = bare.slice(PATH.length);
    socket.on('error', () => {});
    if (!isUuid(uuid)) refuse(socket, 404);
    else if (!isOfOwnPage(request, options)) refuse(socket, 403);
    else if (stopping.aborted) refuse(socket, 503);
    else void accept(request, socket, head, uuid);
    return true;
  };
}

/** For other processes of this program, which have checked the user, and ask the conductor of the node. @returns whether it is a console */
export function createRelayedConsoles(
  parts: LineParts,
): (request: IncomingMessage, socket: Duplex, head: Buffer, answer: readonly string[]) => boolean {
  const answers = new WeakMap<IncomingMessage, readonly string[]>();
  const sockets = createSockets(answers);
  const serve = createLines(parts);
  return (request, socket, head, answer) => {
    const { bare } = targetOf(request.url ?? '/');
    if (!bare.startsWith(RELAY_PATH)) return false;
    const uuid = bare.slice(RELAY_PATH.length);
    answers.set(request, answer);
    if (!isUuid(uuid)) refuse(socket, 404);
    else if (parts.stopping.aborted) refuse(socket, 503);
    else sockets.handleUpgrade(request, socket, head, (client) => void serve(client, uuid, async () => {}));
    return true;
  };
}
