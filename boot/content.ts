/**
 * Sends bytes of a known size to an HTTP client, with HEAD, single ranges and conditional requests (RFC 9110 §13, §14). Streams, so
 * memory use is constant.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

interface Content {
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  readonly type: string;
  /** Both ends included; not called for empty content. */
  read(start: number, end: number): Readable;
  /** As `read`, and cheaper: a piece may change when `write` has resolved. Absent: there is only `read`. */
  copy?: ((start: number, end: number, write: (piece: Buffer) => Promise<void>) => Promise<void>) | undefined;
}
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Resolves with the number of bytes when the whole body was sent. Rejects if the client disconnected or the source failed. */
export async function sendContent(request: IncomingMessage, response: ServerResponse, content: Content): Promise<number> {
  const { size, modified } = content;
  const etag = `"${size.toString(16)}-${modified.toString(16)}"`;
  const head = {
    'accept-ranges': 'bytes',
    'content-type': content.type,
    'last-modified': new Date(modified).toUTCString(),
    etag,
  };
  if (isUnchanged(request, etag, modified)) {
    response.writeHead(304, head).end();
    return 0;
  }
  const range = mayBeRange(request, etag, modified) ? parseRange(request.headers.range, size) : undefined;
  if (range === 'outside') {
    response.writeHead(416, { 'content-range': `bytes */${size}`, 'Content-Length': 0 }).end();
    return 0;
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  response.writeHead(range ? 206 : 200, {
    ...head,
    'Content-Length': end - start + 1,
    ...(range ? { 'content-range': `bytes ${start}-${end}/${size}` } : {}),
  });
  if (request.method === 'HEAD' || end < start) {
    response.end();
    return 0;
  }
  if (content.copy) await copyTo(response, (write) => content.copy!(start, end, write));
  else await pipeline(content.read(start, end), response);
  return end - start + 1;
}

/** Resolves when all was sent. Rejects if the client disconnects before. */
async function copyTo(response: ServerResponse, copy: (write: (piece: Buffer) => Promise<void>) => Promise<void>): Promise<void> {
  const unlessClosed = (work: (done: (error?: Error | null) => void) => void): Promise<void> =>
    new Promise((resolve, reject) => {
      const closed = (): void => reject(new Error('the client disconnected'));
      response.once('close', closed);
      work((error) => {
        response.off('close', closed);
        if (error) reject(error);
        else resolve();
      });
    });
  await copy((piece) => unlessClosed((done) => void response.write(piece, done)));
  await unlessClosed((done) => void response.end(done));
}

const seconds = (milliseconds: number): number => Math.trunc(milliseconds / 1000);

/** RFC 9110 §13.2.2: If-Modified-Since is ignored if If-None-Match is present. */
function isUnchanged({ headers }: IncomingMessage, etag: string, modified: number): boolean {
  const wanted = headers['if-none-match'];
  if (wanted !== undefined) return wanted === '*' || wanted.split(',').some((part) => part.trim().replace(/^W\//, '') === etag);
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return !Number.isNaN(since) && seconds(modified) <= seconds(since);
}

/** RFC 9110 §13.1.5: with If-Range, a range is sent only if the client's copy is current. */
function mayBeRange({ headers }: IncomingMessage, etag: string, modified: number): boolean {
  const wanted = headers['if-range'];
  if (typeof wanted !== 'string') return true;
  return wanted.startsWith('"') ? wanted === etag : seconds(Date.parse(wanted)) === seconds(modified);
}

/** Parses a single range. Undefined: absent, several or malformed, so the whole content is sent (RFC 9110 §14.2). @internal */
export function parseRange(text: string | undefined, size: number): Range | 'outside' | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(text ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  if (match[1] === '') {
    const last = Number(match[2]);
    return last === 0 || size === 0 ? 'outside' : { start: Math.max(size - last, 0), end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== '' && Number(match[2]) < start) return undefined;
  return start >= size ? 'outside' : { start, end };
}
