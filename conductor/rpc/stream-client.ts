/** The calling side of streams.ts: opens a WebSocket to a conductor in another process, and checks that it is this conductor. */
import { WebSocket } from 'ws';
import { authorize, digestOf, isAnswerOf } from './codec';

/** Bytes of a message. What a machine sends is cut into smaller pieces. */
const MAX_MESSAGE = 1 << 20;
const HANDSHAKE_MS = 5000;
const SIGNATURE = 'x-bloomery-signature';

interface StreamSetup {
  readonly callee: { readonly hostname: string; readonly address: string };
  readonly path: string;
  /** Subprotocols, of which the conductor chooses one. */
  readonly protocols: readonly string[];
  readonly secret: string;
  readonly nonce: string;
  readonly now: number;
  readonly tls: { readonly ca: Buffer | undefined; readonly rejectUnauthorized: boolean };
  readonly signal: AbortSignal;
}
/** @returns a WebSocket that is paused, so that no message is lost. @throws Error, the signal's reason */
export function openStream({
  callee: { hostname, address },
  path,
  protocols,
  secret,
  nonce,
  now,
  tls,
  signal,
}: StreamSetup): Promise<WebSocket> {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const socket = new WebSocket(`${address.replace(/^http/, 'ws')}${path}`, [...protocols], {
      ...tls,
      headers: { authorization: authorize(secret, hostname, { time: Math.round(now), nonce, digest: digestOf(path) }) },
      handshakeTimeout: HANDSHAKE_MS,
      maxPayload: MAX_MESSAGE,
      perMessageDeflate: false,
      followRedirects: false,
    });
    let isConductor = false;
    const abort = (): void => {
      socket.terminate();
      fail(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    // Also later: the library reports a malformed frame, and closes the connection.
    socket.on('error', fail);
    socket.once('upgrade', ({ headers }) => {
      const signature = headers[SIGNATURE];
      isConductor = isAnswerOf(secret, nonce, path, typeof signature === 'string' ? signature : undefined);
    });
    socket.once('open', () => {
      signal.removeEventListener('abort', abort);
      if (isConductor) {
        socket.pause();
        done(socket);
        return;
      }
      socket.terminate();
      fail(new Error('the service there is not this conductor of this database'));
    });
  });
}
