/**
 * Limits what the clients of an HTTP server hold: connections, in all and of each source; requests without a response; responses that
 * they do not read.
 */
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { isIPv6, type DropArgument, type Socket } from 'node:net';
import { createShares, type ShareLimits } from '../shares';
import { createSourceTurns } from '../turns';

export interface ClientLimits {
  readonly connections: ShareLimits;
  /** Milliseconds for a client to read a part of its response. */
  readonly readTimeoutMs: number;
  /** Bytes of complete responses that clients have not read. Absent: no limit. */
  readonly unreadBytes?: ShareLimits;
  /** Called for each connection that a limit refuses or closes. */
  readonly onRefused?: ((limit: ClientLimit) => void) | undefined;
}
/**
 * The limits in this order: connections in all, connections of a source, requests without a response, the time to read a response, and
 * bytes of unread responses.
 */
type ClientLimit = 'total' | 'source' | 'pipelined' | 'slow' | 'unread';
type OnRefused = (limit: ClientLimit) => void;
/** For clients of APIs. Firmware may stop reading for longer. */
export const API_READ_TIMEOUT_MS = 90_000;
export const API_UNREAD_BYTES: ShareLimits = { inAll: 192 << 20, ofSource: 96 << 20 };

interface LimitLog {
  warn(message: string, fields?: object): void;
}

/** Requests of one connection: a client may send some before it reads responses (RFC 9112 §9.3.2). Clients of APIs send one. */
const MAX_UNANSWERED = 16;
const WARN_EVERY_MS = 60_000;

/** An IPv6 source has a whole /64 at its disposal (RFC 4291 §2.5.4); `::ffff:` is IPv4 (§2.5.5.2). */
export function networkOf(address: string): string {
  if (!address.includes(':') || !isIPv6(address) || address.toLowerCase().startsWith('::ffff:')) return address;
  const [head = '', tail = ''] = address.split('::');
  const front = head.split(':').filter(Boolean);
  const back = address.includes('::') ? tail.split(':').filter(Boolean) : [];
  const zeros = Array.from({ length: Math.max(8 - front.length - back.length, 0) }, () => '0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}

/** Refuses connections beyond the limits. Connections to a Unix socket have no source. */
function limitConnections(server: Server, most: ShareLimits, onRefused: OnRefused, log: LimitLog): void {
  const open = createShares(most);
  let warned = -Infinity;
  const refuse = (source: string | undefined, limit: ClientLimit): void => {
    onRefused(limit);
    if (performance.now() - warned < WARN_EVERY_MS) return;
    warned = performance.now();
    log.warn('connections are refused: there are too many', { source, limit: most.inAll, limit_of_source: most.ofSource });
  };
  // upgrades.ts emits the event again for a connection that it returns to the server.
  const counted = new WeakSet<Socket>();
  server.maxConnections = most.inAll;
  server.on('drop', (dropped?: DropArgument) => refuse(dropped?.remoteAddress, 'total'));
  server.on('connection', (socket: Socket) => {
    if (socket.remoteAddress === undefined || counted.has(socket)) return;
    counted.add(socket);
    const source = networkOf(socket.remoteAddress);
    if (!open.take(source, 1)) {
      refuse(source, open.taken < most.inAll ? 'source' : 'total');
      socket.destroy();
      return;
    }
    socket.once('close', () => open.give(source, 1));
  });
}

/** Disconnects clients that do not read a response. A handler may take any time. */
function limitReading(server: Server, readTimeoutMs: number, onRefused: OnRefused): void {
  server.timeout = readTimeoutMs;
  server.on('timeout', (socket: Socket) => {
    // Any other timeout is that of an idle connection (keepAliveTimeout).
    const isIdle = socket.timeout !== readTimeoutMs;
    if (!isIdle && socket.writableLength === 0) return;
    if (!isIdle) onRefused('slow');
    socket.destroy();
  });
}

/** Whether no response can be sent any more. Requests after the last response are not processed (RFC 9112 §9.6). */
const isOver = ({ destroyed, writableEnded }: Socket): boolean => destroyed || writableEnded;

/** Handles the requests of a connection one after another, so that a connection holds at most one response. */
function inOrder(handler: RequestListener, onRefused: OnRefused): RequestListener {
  const unanswered = new WeakMap<Socket, ServerResponse[]>();
  return (request, response) => {
    const { socket } = request;
    if (isOver(socket)) return;
    const before = unanswered.get(socket);
    const all = before ?? [];
    if (all.length >= MAX_UNANSWERED) {
      onRefused('pipelined');
      socket.destroy();
      return;
    }
    const previous = all.at(-1);
    if (!before) unanswered.set(socket, all);
    all.push(response);
    response.once('close', () => all.splice(all.indexOf(response), 1));
    if (!previous) handler(request, response);
    else
      previous.once('close', () => {
        if (!isOver(socket)) handler(request, response);
      });
  };
}

/** Requests of a source that are started at once. */
const STARTED_AT_ONCE = 8;
/** Starts some requests of each source in a turn of the event loop: other sources do not wait for all that one sends at once. */
function inTurns(handler: RequestListener): RequestListener {
  const inTurn = createSourceTurns(STARTED_AT_ONCE);
  return (request, response) =>
    inTurn(networkOf(request.socket.remoteAddress ?? ''), () => {
      if (!isOver(request.socket)) handler(request, response);
    });
}

/** Of a response: counts its bytes that its client has not read yet. A property, because a WeakMap slows garbage collection. */
const HOLD = Symbol('hold');
interface Limited extends ServerResponse {
  [HOLD]?: () => (() => void) | undefined;
}
/**
 * Counts the unread bytes of a response that is sent in slices, or disconnects the client.
 * @returns ends the count, when the client has read them; undefined: there is nothing to count
 */
export const holdUnread = (response: Limited): (() => void) | undefined => response[HOLD]?.();

/** Disconnects a client that leaves too many bytes of responses unread. One response alone never exceeds the limit of its source. */
function limitUnread(handler: RequestListener, most: ShareLimits, onRefused: OnRefused): RequestListener {
  const unread = createShares(most);
  return (request, response: Limited) => {
    const hold = (): (() => void) | undefined => {
      const { socket } = response;
      const bytes = Math.min(socket?.writableLength ?? 0, most.ofSource);
      if (bytes === 0) return undefined;
      const source = networkOf(request.socket.remoteAddress ?? '');
      if (unread.take(source, bytes)) return () => unread.give(source, bytes);
      onRefused('unread');
      socket?.destroy();
      return undefined;
    };
    response[HOLD] = hold;
    response.once('prefinish', () => {
      const release = hold();
      if (release) response.once('close', release);
    });
    handler(request, response);
  };
}

/** @param server without a listener for requests */
export function limitClients(
  server: Server,
  { connections, readTimeoutMs, unreadBytes, onRefused = () => {} }: ClientLimits,
  handler: RequestListener,
  log: LimitLog,
): void {
  // All fields; maxHeaderSize bounds them. By default Node drops those after the thousandth, such as the length of the body, or the field
  // that a proxy adds.
  server.maxHeadersCount = 0;
  limitConnections(server, connections, onRefused, log);
  limitReading(server, readTimeoutMs, onRefused);
  server.on('request', inOrder(inTurns(unreadBytes ? limitUnread(handler, unreadBytes, onRefused) : handler), onRefused));
}
