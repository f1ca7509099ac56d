/** What the WebSockets of serial consoles and of screens share: refusals, closing, and the watch over open ones. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';
import { Unauthenticated } from '../http/errors';

/** The browser must answer a ping before the next one. The session and the rights are checked again at each ping. */
const CHECK_EVERY_MS = 10_000;
/** The time that a client has to answer a close frame. */
const CLOSE_TIMEOUT_MS = 1000;
/** RFC 6455 §7.4; those from 4000 on are private. The page shows the reason. */
export const CLOSE = { ended: 1000, stopping: 1001, failed: 4000, refused: 4003 } as const;

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  503: 'Service Unavailable',
};
export function refuse(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? 'Error'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.resume();
  setTimeout(() => socket.destroy(), CLOSE_TIMEOUT_MS).unref();
}
export const statusOf = (error: unknown): number => (error instanceof Unauthenticated || error instanceof Fault ? error.status : 500);
/** A reason has at most 123 bytes (RFC 6455 §5.5). */
export const close = (client: WebSocket, code: number, reason: string): void => {
  client.close(
    code,
    Buffer.from(reason)
      .subarray(0, 120)
      .toString()
      .replace(/\uFFFD$/, ''),
  );
  setTimeout(() => client.terminate(), CLOSE_TIMEOUT_MS).unref();
};

/** What decides when a console ends. */
interface ConsoleWatch {
  readonly clock: Clock;
  /** Seconds; 0: no limit. */
  readonly limits: { readonly idle: number; readonly session: number };
  /** When the browser or the machine last sent something, in milliseconds of `clock`. */
  readonly lastTraffic: () => number;
  /** Rejects when the user may not use the console any more. */
  readonly authorise: () => Promise<unknown>;
  readonly signal: AbortSignal;
}
/**
 * Pings the browser. Closes the console when the browser does not answer, the session ends, a policy refuses the user, or a time limit
 * passes.
 */
export async function watch(client: WebSocket, { clock, limits, lastTraffic, authorise, signal }: ConsoleWatch): Promise<void> {
  const begun = clock.now();
  const isOver = (since: number, seconds: number): boolean => seconds > 0 && clock.now() - since >= seconds * 1000;
  let answered = true;
  client.on('pong', () => (answered = true));
  for (;;) {
    await clock.sleep(CHECK_EVERY_MS, signal);
    // A paused client cannot answer: it sends faster than the console takes its input, so nothing is read from it.
    if (!answered && !client.isPaused) {
      client.terminate();
      return;
    }
    answered = false;
    client.ping();
    if (isOver(lastTraffic(), limits.idle)) close(client, CLOSE.ended, 'There was no traffic for too long.');
    if (isOver(begun, limits.session)) close(client, CLOSE.ended, 'The session reached its time limit.');
    await authorise().catch((error: unknown) => {
      if (statusOf(error) < 500) close(client, CLOSE.refused, 'The session has ended, or you may not use this console any more.');
    });
  }
}
/** Ends a connection to another process that answers no ping: a host that has gone closes nothing. */
export function watchProcess(remote: WebSocket, clock: Clock, signal: AbortSignal): void {
  watch(remote, { clock, limits: { idle: 0, session: 0 }, lastTraffic: () => 0, authorise: async () => {}, signal }).catch(() => {});
}
