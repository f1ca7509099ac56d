/**
 * HTTP with a service whose header lines a strict reader refuses: lines that begin with a space or have one before the colon, bare LF, control
 * characters (docs/decisions/0017-malformed-http-of-bmcs.md). Each request has a connection of its own, so that nothing that one answer leaves
 * over can become part of the next.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { Duplex, Readable, Transform, pipeline } from 'node:stream';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

interface LenientRequest {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The headers have the length of a stream. */
  readonly body: string | Readable | null;
  readonly signal: AbortSignal;
}
interface LenientAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Bytes. A longer head stays as it is, and the parser refuses it. */
const MAX_HEAD = 64 << 10;
/** A status line or header line without what a strict reader refuses. */
function mendedLine(line: string): string {
  const text = line.trim();
  const colon = text.indexOf(':');
  return colon < 0 ? text : `${text.slice(0, colon).trimEnd()}${text.slice(colon)}`;
}
/** Mends the head of the connection's answer. */
function headMender(): Transform {
  let head: Buffer | undefined = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _, done) {
      if (head === undefined) {
        done(null, chunk);
        return;
      }
      head = Buffer.concat([head, chunk]);
      const text = head.toString('latin1', 0, MAX_HEAD);
      const [end] = /\n\r?\n/.exec(text) ?? [];
      if (end === undefined && head.length < MAX_HEAD) {
        done();
        return;
      }
      const length = end === undefined ? 0 : text.indexOf(end) + end.length;
      const rest = head.subarray(length);
      head = undefined;
      const lines = text.slice(0, length).trimEnd().split('\n').map(mendedLine);
      if (length > 0) this.push(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
      done(null, rest);
    },
  });
}
function connectionTo(url: URL, tls: ConnectionOptions): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (url.protocol === 'http:') return connectTcp({ host, port: Number(url.port || 80) });
  return connectTls({ ...tls, host, port: Number(url.port || 443), ...(isIP(host) === 0 ? { servername: host } : {}) });
}

/** Rejects with the connection's error, or the parser's. The body fails with the signal's end. */
export function lenientRequest(
  { origin, path, method, headers, body, signal }: LenientRequest,
  tls: ConnectionOptions,
): Promise<LenientAnswer> {
  return new Promise((resolve, reject) => {
    const url = new URL(origin);
    const socket = connectionTo(url, tls);
    const request = httpRequest(
      {
        path,
        method,
        signal,
        host: url.host,
        insecureHTTPParser: true,
        headers: {
          ...headers,
          host: url.host,
          connection: 'close',
          ...(typeof body !== 'string' ? {} : { 'content-length': Buffer.byteLength(body) }),
        },
        createConnection: () => Duplex.from({ readable: socket.pipe(headMender()), writable: socket }),
      },
      (response: IncomingMessage) => resolve({ statusCode: response.statusCode!, headers: response.headers, body: response }),
    );
    socket.on('error', (error) => request.destroy(error));
    request.on('error', reject);
    request.on('close', () => socket.destroy());
    if (body instanceof Readable) pipeline(body, request, () => {});
    else request.end(body ?? undefined);
  });
}
