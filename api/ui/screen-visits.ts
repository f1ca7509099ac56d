/** One visit to a node's screen: its place among the viewers, the connection to the machine, the limits, and the audit log. */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocketServer, type WebSocket } from 'ws';
import type { LocalScreens, ScreenPlaces } from '../../conductor/conductor';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { startProxy } from '../../wire/rfb/proxy';
import { createShares, shareLimits } from '../../wire/shares';
import { timeoutSignal } from '../../wire/timeout-signal';
import type { AuditLog } from '../http/audit';
import { sourceOf } from '../http/source';
import { lastWords, relay } from './screen-relay';
import { recordVisit } from './visit-audit';
import { close, CLOSE, refuse, statusOf, watch } from './web-sockets';

export interface VisitParts {
  readonly options: Options;
  readonly screens: ScreenPlaces;
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
  /** More header lines for the response that accepts the WebSocket. */
  readonly answer?: readonly string[];
}
/** Where a viewer sees the screen. */
interface Place {
  readonly controls: boolean;
  /** Present: why there is no place. */
  readonly refusal?: string | undefined;
  /** Shows the screen until one side ends it. @param gone aborted when the viewer has left. @returns why it ended */
  show(client: WebSocket, visit: Visit, gone: AbortSignal): Promise<string>;
  leave(): void;
}

/**
 * The page offers the first two, and the server chooses: so the page knows whether the user controls the machine. Another process of this
 * program offers the third one too, and knows by it that there is no place.
 */
const PROTOCOLS = { control: 'bloomery.screen', view: 'bloomery.screen.view', none: 'bloomery.screen.none' } as const;
/** Other clients with noVNC. */
const BINARY = 'binary';
/** Bytes. noVNC sends at most 10 KiB at a time. */
const MAX_FRAME = 64 * 1024;
/** Milliseconds for the connection to the machine and the handshakes. */
const HANDSHAKE_MS = 20_000;

/** Connects to the machine. */
async function show(
  client: WebSocket,
  { uuid, authorise }: Visit,
  mayControl: boolean,
  { screens, clock, options }: VisitParts & { readonly screens: LocalScreens },
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
    let lastInput = clock.now();
    const onInput = (): void => void (lastInput = clock.now());
    await Promise.race([startProxy({ machine, viewer, password, mayControl, onInput, handshake }), tooEarly]);
    const limits = { idle: mayControl ? options['vnc.max_idle_time'] : 0, session: options['vnc.max_session_time'] };
    watch(client, { clock, limits, lastTraffic: () => lastInput, authorise, signal: gone }).catch(() => {});
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

const refused = (refusal: string): Place => ({ controls: false, refusal, show: async () => refusal, leave: () => {} });
/** A place among the viewers of a machine of this process. */
function placeHere(visit: Visit, parts: VisitParts, hangUp: (reason: string) => void): Place {
  const { local } = parts.screens;
  if (!local) return refused('The conductor of the node shows no screens: [vnc]enabled is false.');
  const seat = local.enter(visit.uuid, visit.wish, hangUp);
  if ('refusal' in seat) return refused(seat.refusal);
  const { controls } = seat;
  return {
    controls,
    show: (client, of, gone) => show(client, of, controls, { ...parts, screens: local }, gone),
    leave: () => seat.leave(),
  };
}
const pathOf = ({ uuid, wish }: Visit): string => `${RELAY_PATH}${uuid}${wish === 'view' ? '?view=1' : ''}`;
/** Where a conductor accepts visits from other processes. */
export const RELAY_PATH = '/screens/';
/** The place that the node's conductor gives, in another process; undefined: it is this process. */
async function placeThere(visit: Visit, { screens, clock, options, log }: VisitParts, signal: AbortSignal): Promise<Place | undefined> {
  const { uuid } = visit;
  let remote: WebSocket | undefined;
  try {
    remote = await screens.connect?.(uuid, pathOf(visit), Object.values(PROTOCOLS), timeoutSignal(HANDSHAKE_MS, signal));
  } catch (error) {
    if (statusOf(error) < 500) throw error;
    log.warn('the conductor of a node shows no screen', { node: uuid, error: reasonOf(error) });
    return refused('The conductor of the node does not answer, or shows no screens.');
  }
  if (!remote) return undefined;
  const refusal = remote.protocol === PROTOCOLS.none ? await lastWords(remote) : undefined;
  return {
    controls: remote.protocol === PROTOCOLS.control,
    refusal,
    show(client, { authorise }, gone) {
      const limits = { idle: 0, session: options['vnc.max_session_time'] };
      watch(client, { clock, limits, lastTraffic: () => clock.now(), authorise, signal: gone }).catch(() => {});
      return relay(client, remote, clock, gone);
    },
    leave: () => remote.close(),
  };
}

/** What users of this process look at: one count for the page and for the port of screens. */
const OPEN = new WeakMap<ScreenPlaces, ReturnType<typeof createShares>>();
function openScreens({ screens, options }: VisitParts): ReturnType<typeof createShares> {
  const open = OPEN.get(screens) ?? createShares(shareLimits(options['vnc.max_screens'], null));
  OPEN.set(screens, open);
  return open;
}

type Receive = (request: IncomingMessage, socket: Duplex, head: Buffer, visit: Visit) => Promise<void>;
export function createVisits(parts: VisitParts): Receive {
  const { options, log, clock, stopping } = parts;
  /** What the response to a request says. */
  const answers = new WeakMap<IncomingMessage, { readonly protocol: string; readonly lines: readonly string[] }>();
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME,
    perMessageDeflate: false,
    clientTracking: false,
    handleProtocols: (offered, request) =>
      [answers.get(request)!.protocol, PROTOCOLS.view, BINARY].find((name) => offered.has(name)) ?? false,
  });
  sockets.on('headers', (lines, request) => void lines.push(...answers.get(request)!.lines));
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

  const visitOf = async (...[request, socket, head, visit]: Parameters<Receive>): Promise<void> => {
    const gone = new AbortController();
    let client: WebSocket | undefined;
    const leave = (): void => gone.abort(new Error('The viewer left.'));
    const hangUp = (reason: string): void => {
      if (client) close(client, CLOSE.refused, reason);
    };
    const stop = (): void => {
      if (client) close(client, CLOSE.stopping, 'The server stops.');
    };
    socket.once('close', leave);
    const place = (await placeThere(visit, parts, gone.signal)) ?? placeHere(visit, parts, hangUp);
    const { controls, refusal } = place;
    try {
      // The viewer may have gone meanwhile.
      if (socket.destroyed) return;
      const protocol = refusal === undefined ? PROTOCOLS[controls ? 'control' : 'view'] : PROTOCOLS.none;
      answers.set(request, { protocol, lines: visit.answer ?? [] });
      client = await upgrade(request, socket, head);
      if (!client) return;
      // The library closes the connection after a frame that is too large or malformed.
      client.on('error', () => {});
      if (refusal !== undefined) {
        close(client, CLOSE.refused, refusal);
        return;
      }
      stopping.addEventListener('abort', stop, { once: true });
      const [begun, source] = [clock.now(), sourceOf(request, options)];
      record(visit, source, 'openScreen', { view_only: !controls });
      const reason = await place.show(client, visit, gone.signal);
      record(visit, source, 'closeScreen', { view_only: !controls, seconds: Math.round((clock.now() - begun) / 1000), reason });
    } finally {
      stopping.removeEventListener('abort', stop);
      place.leave();
    }
  };
  const open = openScreens(parts);
  return async (request, socket, head, visit) => {
    const owner = visit.user ?? sourceOf(request, options);
    // Another process has counted its users.
    if (visit.answer) await visitOf(request, socket, head, visit);
    else if (!open.take(owner, 1)) refuse(socket, 503);
    else await visitOf(request, socket, head, visit).finally(() => open.give(owner, 1));
  };
}
