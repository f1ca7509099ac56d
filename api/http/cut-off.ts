/** Ends the connection of a client whose body is refused. */
import type { IncomingMessage } from 'node:http';

/** How long a client may continue to send a refused body. */
const LINGER_MS = 5000;
/** The most chunks of the rest that are received. Each is work, however few bytes it has. */
const MAX_DISCARDED = 1000;
/**
 * Discards the rest of the body for a moment, so that the client can read the response. Then closes the connection. To be called when the
 * response is written. Node would close a connection with unread bytes at once, which resets it: then a client that still sends may lose
 * the response (RFC 9112 §9.6).
 */
export function cutOff(request: IncomingMessage, lingerMs = LINGER_MS): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  let left = MAX_DISCARDED;
  request.on('data', () => {
    // Pausing the request would not help: Node continues to read from the socket.
    if (--left === 0) socket.destroy();
  });
  request.resume();
  // Node calls this function when the last response of a connection is written.
  socket.destroySoon = () => void socket.end();
  request.once('end', () => socket.end(() => socket.destroy()));
  const late = setTimeout(() => socket.destroy(), lingerMs);
  late.unref();
  socket.once('close', () => clearTimeout(late));
}
