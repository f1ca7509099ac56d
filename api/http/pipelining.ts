/** A client may send requests before it reads responses (RFC 9112 §9.3.2). Node starts all of them at once and keeps their responses. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Of one connection. Clients of APIs have one. */
const MAX_UNANSWERED = 16;
const unanswered = new WeakMap<Socket, number>();

/** Closes a connection with too many unanswered requests. @returns whether it is closed */
export function isFlooded({ socket }: IncomingMessage, response: ServerResponse): boolean {
  const count = (unanswered.get(socket) ?? 0) + 1;
  if (count > MAX_UNANSWERED) {
    socket.destroy();
    return true;
  }
  unanswered.set(socket, count);
  response.once('close', () => unanswered.set(socket, unanswered.get(socket)! - 1));
  return socket.destroyed;
}
