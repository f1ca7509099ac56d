/** WebSockets of a service beside Redfish, such as the screen of OpenBMC, as streams of bytes. */
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocket } from 'ws';
import { RedfishError } from './errors';
import { connectionError, type RedfishRequestOptions, type Service } from './transport';

/** The most bytes of a message. bmcweb sends at most 50 KiB. */
const MAX_MESSAGE = 1 << 20;

/** @throws RedfishError, the signal's reason */
export function openWebSocket(
  { target, tls }: Pick<Service, 'target' | 'tls'>,
  path: string,
  { headers = {}, timeoutMs, signal }: Pick<RedfishRequestOptions, 'headers' | 'timeoutMs' | 'signal'>,
): Promise<Duplex> {
  const { origin } = new URL(target.address);
  const url = `${origin}${path}`;
  return new Promise((done, fail) => {
    signal?.throwIfAborted();
    const socket = new WebSocket(url.replace(/^http/, 'ws'), {
      ...tls,
      headers,
      handshakeTimeout: timeoutMs,
      maxPayload: MAX_MESSAGE,
      perMessageDeflate: false,
      followRedirects: false,
    });
    // Made before the connection, so that no message is lost. With `allowHalfOpen`, a BMC that ends the connection would not close the stream.
    const stream = createWebSocketStream(socket, { allowHalfOpen: false });
    const abort = (): void => {
      socket.terminate();
      fail(signal!.reason as Error);
    };
    signal?.addEventListener('abort', abort, { once: true });
    stream.on('error', (error) => fail(connectionError(url, error)));
    socket.once('unexpected-response', (_, { statusCode = 0 }) => {
      socket.terminate();
      fail(new RedfishError('status', `${url} answers the request for a WebSocket with code ${statusCode}`, { status: statusCode }));
    });
    socket.once('open', () => {
      signal?.removeEventListener('abort', abort);
      done(stream);
    });
  });
}
