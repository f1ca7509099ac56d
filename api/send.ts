/** Writes responses to the socket. */
import type { ServerResponse } from 'node:http';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { sendRest } from './http/sliced-answers';
import type { Answer } from './pipeline/handler';

type Sent = Pick<Answer, 'status' | 'headers' | 'body'> & { readonly [Form in 'text' | 'bytes']?: Answer[Form] | undefined };

/**
 * Sends the beginning of an answer and its further slices. The length is not known. An error after the headers ends the connection, so that
 * the client does not take the part for the whole.
 */
export async function sendLong(
  response: ServerResponse,
  head: boolean,
  { status, headers, bytes = [] }: Pick<Sent, 'status' | 'headers' | 'bytes'>,
  rest: AsyncIterator<readonly Buffer[]>,
  log: Log,
): Promise<void> {
  if (response.destroyed) return;
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  if (head) {
    response.end();
    return;
  }
  try {
    await sendRest(response, bytes, rest);
  } catch (error) {
    log.error('an answer is incomplete', { reason: reasonOf(error) });
    response.destroy();
  }
}
/** @param head send the headers only */
export function send(response: ServerResponse, head: boolean, { status, headers, body, text, bytes }: Sent): void {
  if (response.headersSent || response.destroyed) return;
  const content = bytes ?? text ?? (body === undefined ? '' : JSON.stringify(body));
  const length = typeof content === 'string' ? Buffer.byteLength(content) : content.reduce((sum, piece) => sum + piece.length, 0);
  const all: Record<string, string> = {};
  if (content.length > 0) all['Content-Type'] = 'application/json';
  Object.assign(all, headers);
  // RFC 9110 §8.6: 204 has no length, and that of 304 would be the one of 200.
  if (status !== 204 && status !== 304) all['Content-Length'] = String(length);
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
