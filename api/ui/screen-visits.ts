/** One visit to a node's screen: its place among the viewers, the connection to the machine, the limits, and the audit log. */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocketServer, type WebSocket } from 'ws';
import type { LocalScreens } from '../../conductor/conductor';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { startProxy } from '../../wire/rfb/proxy';
import { timeoutSignal } from '../../wire/timeout-signal';
import type { AuditLog } from '../http/audit';
import { sourceOf } from '../http/source';
import { recordVisit } from './visit-audit';
import { close, CLOSE, watch } from './web-sockets';

export interface VisitParts {
  readonly options: Options;
  readonly screens: LocalScreens;
  readonly audit?: AuditLog | undefined;
  readonly log: Log;
  readonly clock: Clock;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}
/** Who wants to look at what. */
export interface Visit {
  readonly uuid: string;
  /** Null: whoever has the token. */
  readonly user: string | null;
  readonly path: string;
  readonly wish: 'control' | 'view';
  /** Rejects when the user may not look any more. */
  readonly authorise: () => Promise<unknown>;
}

/** The page offers both, and the server chooses: so the page knows whether the user controls the machine. */
const PROTOCOLS = { control: 'bloomery.screen', view: 'bloomery.screen.view' } as const;
/** Other clients with noVNC. */
const BINARY = 'binary';
/** Bytes. noVNC sends at most 10 KiB at a time. */
const MAX_FRAME = 64 * 1024;
/** Milliseconds for the connection to the machine and the handshakes. */
const HANDSHAKE_MS = 20_000;

/**
 * Shows the screen until one side ends it.
 * @param gone aborted when the viewer has left
 * @returns why it ended
 */
async function show(
  client: WebSocket,
  { uuid, authorise }: Visit,
  mayControl: boolean,
  { screens, clock, options }: VisitParts,
  gone: AbortSignal,
): Promise<string> {
  const handshake = timeoutSignal(HANDSHAKE_MS, gone);
  const viewer = createWebSocketStream(client);
  viewer.on('error', () => {});
  let machine: Duplex | undefined;
  try {
    const screen = await screens.open(uuid, handshake);
    if (screen.kind === 'page') {
      // There, the BMC decides what its users may do.
      if (!mayControl) throw new Error('The BMC shows the screen on a page of its own, where you could use keys and mouse.');
      client.send(JSON.stringify({ page: screen.url }));
      close(client, CLOSE.ended, 'The BMC shows the screen on a page of its own.');
      return 'a page of the BMC';
    }
    const { stream, password } = screen;
    machine = stream;
    const ended = new Promise<string>((done) => {
      stream.once('error', (error) => done(reasonOf(error)));
      stream.once('close', () => done('The machine ended the connection.'));
    });
    const tooEarly = ended.then((reason) => {
      throw new Error(reason);
    });
    await Promise.race([startProxy({ machine, viewer, password, mayControl, handshake }), tooEarly]);
    const limits = { idle: 0, session: options['vnc.max_session_time'] };
    watch(client, { clock, limits, lastTraffic: () => clock.now(), authorise, signal: gone }).catch(() => {});
    const left = new Promise<string>((done) => {
      gone.addEventListener('abort', () => done(reasonOf(gone.reason)), { once: true });
      if (gone.aborted) done(reasonOf(gone.reason));
    });
    const reason = await Promise.race([ended, left]);
    close(client, CLOSE.ended, reason);
    return reason;
  } catch (error) {
    const reason = handshake.aborted && !gone.aborted ? 'The screen does not answer.' : reasonOf(error);
    close(client, CLOSE.failed, reason);
    return reason;
  } finally {
    machine?.destroy();
  }
}

type Receive = (request: IncomingMessage, socket: Duplex, head: Buffer, visit: Visit) => Promise<void>;
export function createVisits(parts: VisitParts): Receive {
  const { options, screens, log, clock, stopping } = parts;
  /** Whether the user of a request controls the machine. */
  const controls = new WeakMap<IncomingMessage, boolean>();
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered, request) =>
      [controls.get(request) ? PROTOCOLS.control : PROTOCOLS.view, BINARY].find((name) => offered.has(name)) ?? false,
  });
  // Each screen listens to the end of the server.
  setMaxListeners(0, stopping);
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket | undefined> =>
    new Promise((done) => {
      // The library refuses a request that is not for a WebSocket.
      socket.once('close', () => done(undefined));
      sockets.handleUpgrade(request, socket, head, done);
    });
  /** Who looked, from when to when. */
  const record = (visit: Visit, source: string, operation: 'openScreen' | 'closeScreen', more: object): void => {
    const { uuid, user } = visit;
    log.info(operation === 'openScreen' ? 'a screen was opened' : 'a screen was closed', { node: uuid, user, source, ...more });
    recordVisit(parts, { ...visit, source }, operation, more);
  };

  return async (request, socket, head, visit) => {
    const gone = new AbortController();
    let client: WebSocket | undefined;
    const seat = screens.enter(visit.uuid, visit.wish, (reason) => {
      if (client) close(client, CLOSE.refused, reason);
    });
    const stop = (): void => {
      if (client) close(client, CLOSE.stopping, 'The server stops.');
    };
    try {
      const mayControl = !('refusal' in seat) && seat.controls;
      controls.set(request, mayControl);
      client = await upgrade(request, socket, head);
      if (!client) return;
      client.once('close', () => gone.abort(new Error('The viewer left.')));
      // The library closes the connection after a frame that is too large or malformed.
      client.on('error', () => {});
      if ('refusal' in seat) {
        close(client, CLOSE.refused, seat.refusal);
        return;
      }
      stopping.addEventListener('abort', stop, { once: true });
      const [begun, source] = [clock.now(), sourceOf(request, options)];
      record(visit, source, 'openScreen', { view_only: !mayControl });
      const reason = await show(client, visit, mayControl, parts, gone.signal);
      record(visit, source, 'closeScreen', { view_only: !mayControl, seconds: Math.round((clock.now() - begun) / 1000), reason });
    } finally {
      stopping.removeEventListener('abort', stop);
      if (!('refusal' in seat)) seat.leave();
    }
  };
}
