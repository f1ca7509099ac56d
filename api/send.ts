/** Writes responses to the socket. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from './resource/handler';

type Sent = Pick<Answer, 'status' | 'headers' | 'body' | 'text' | 'bytes'>;

/** @param head send the headers only */
export function send(response: ServerResponse, head: boolean, { status, headers, body, text, bytes }: Sent): void {
  if (response.headersSent || response.destroyed) return;
  const content = bytes ?? text ?? (body === undefined ? '' : JSON.stringify(body));
  const length = typeof content === 'string' ? Buffer.byteLength(content) : content.reduce((sum, piece) => sum + piece.length, 0);
  const all: Record<string, string> = {};
  if (content.length > 0) all['Content-Type'] = 'application/json';
  Object.assign(all, headers);
  // RFC 9110 §8.6: 204 has no length.
  if (status !== 204) all['Content-Length'] = String(length);
  response.writeHead(status, all);
  if (head) response.end();
  // Headers and text leave in one write.
  else if (typeof content === 'string') response.end(content);
  else sendPieces(response, content);
}
/** Corked, so that the pieces leave in one write. */
function sendPieces(response: ServerResponse, pieces: readonly Buffer[]): void {
  response.cork();
  for (const piece of pieces.slice(0, -1)) response.write(piece);
  response.end(pieces.at(-1));
}

/** How long a client may continue to send a refused body. */
const LINGER_MS = 5000;
/** Chunks of the rest that are received. Each is work, however few bytes it has. */
const MOST_DISCARDED = 1000;
/**
 * Discards the rest of the body for a moment, so that the client can read the response. Then closes the connection. To be called when the
 * response is written. Node would close a connection with unread bytes at once, which resets it: then a client that still sends may lose
 * the response (RFC 9112 §9.6).
 */
export function cutOff(request: IncomingMessage, lingerMs = LINGER_MS): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  let left = MOST_DISCARDED;
  request.on('data', () => {
    if (--left === 0) socket.pause();
  });
  request.resume();
  // What Node calls when the last response of a connection is written.
  socket.destroySoon = () => void socket.end();
  request.once('end', () => socket.end(() => socket.destroy()));
  const late = setTimeout(() => socket.destroy(), lingerMs);
  late.unref();
  socket.once('close', () => clearTimeout(late));
}
