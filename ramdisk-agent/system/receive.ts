/**
 * Receives a large file by HTTP or HTTPS, in pieces of a MiB. Node's client reads each 64 KiB of a connection into new memory, which costs
 * more than the checksum of an image. This one reads into the memory of the pieces themselves.
 */
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { type HttpRequest, redirected, withClock } from './http';
import type { Pieces } from './pieces';
import { type Body, bodyOf, type Head, MAX_HEAD, parseHead } from './response';

type Request = Pick<HttpRequest, 'headers' | 'redirects' | 'signal' | 'timeoutMs' | 'trust' | 'url'>;
interface Received extends Head {
  /** The URL that answered, after redirects. */
  readonly url: string;
  /** Bytes, if the server tells them. */
  readonly length: number | null;
  /** Pieces of the body: whole ones but for the last. Rejects when the connection breaks off, and when nothing arrives for `timeoutMs`. */
  readonly chunks: AsyncIterable<Buffer>;
  close(): void;
}

/** Sends GET, and follows redirects. Resolves when the head has arrived; the caller reads the body, or closes. Rejects without a response. */
export async function receive(request: Request, memory: Pieces): Promise<Received> {
  const received = await receiveOnce(request, memory);
  const next = redirected(request, received.status, received.headers.get('location'));
  if (!next) return received;
  received.close();
  return receive(next, memory);
}

/** Characters of a header's value. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** @throws Error for a header that would end its line */
function requestOf(url: URL, headers: HttpRequest['headers'] = {}): string {
  const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const all = Object.entries({
    host: url.host,
    ...(login === ':' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
    ...headers,
    connection: 'close',
  }).map(([name, value]) => [name, String(value)] as const);
  for (const [name, value] of all) if (!VALUE.test(value)) throw new Error(`Invalid character in header content ["${name}"]`);
  return [`GET ${url.pathname}${url.search} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
}

function open(url: URL, { signal, trust }: Request, onread: OnReadOpts): Socket {
  const isSecure = url.protocol === 'https:';
  if (!isSecure && url.protocol !== 'http:') throw new Error(`Unsupported protocol in ${url.href}`);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const options = { host, port: Number(url.port || (isSecure ? 443 : 80)), signal, onread };
  if (!isSecure) return connect(options);
  return connectSecurely({
    ...options,
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: !trust.insecure,
    ca: trust.ca,
  });
}

/** What has arrived of one response, in the memory of its pieces. */
function arrivals(memory: Pieces) {
  let room = memory.take();
  /** Of `room`: bytes of the body, or of a head that is not complete. */
  let length = 0;
  let response: { readonly head: Head; readonly body: Body } | undefined;
  const whole: Buffer[] = [];

  /** Where the head begins: behind responses 1xx, which a server may send before (RFC 9110, 15.2). */
  let begin = 0;
  function takeHead(): void {
    for (;;) {
      const end = room.subarray(0, length).indexOf('\r\n\r\n', begin);
      if ((end < 0 ? length : end) > MAX_HEAD) throw new Error(`the head of the response is larger than ${MAX_HEAD} bytes`);
      if (end < 0) return;
      const found = parseHead(room.toString('latin1', begin, end));
      begin = end + 4;
      if (found.status === 101) throw new Error('the response changes the protocol');
      if (found.status < 200) continue;
      response = { head: found, body: bodyOf(found) };
      room.copyWithin(0, begin, length);
      length = response.body.take(room, 0, length - begin);
      return;
    }
  }
  return {
    whole,
    response: () => response,
    room: () => room.subarray(length),
    /** @throws Error for a response that is not valid */
    take(count: number): void {
      if (response) length = response.body.take(room, length, length + count);
      else {
        length += count;
        takeHead();
      }
      if (length < room.length) return;
      whole.push(room);
      [room, length] = [memory.take(), 0];
    },
    rest: () => room.subarray(0, length),
  };
}

async function receiveOnce(request: Request, memory: Pieces): Promise<Received> {
  const { timeoutMs, trust } = request;
  const url = new URL(request.url);
  const text = requestOf(url, request.headers);
  const arrived = arrivals(memory);
  let end: { readonly error: Error | null } | undefined;
  let wake = (): void => {};
  const over = (error: Error | null): void => {
    end ??= { error };
    socket.destroy();
    wake();
  };
  /** @returns whether to read more */
  const take = (count: number): boolean => {
    if (end) return false;
    try {
      const before = arrived.response();
      arrived.take(count);
      const response = arrived.response();
      if (response?.body.isComplete()) over(null);
      if (response !== before) wake();
    } catch (error) {
      over(error as Error);
    }
    if (arrived.whole.length === 0) return !end;
    // Nobody is late while the reader works.
    socket.setTimeout(0);
    wake();
    return false;
  };
  const socket = open(url, request, { buffer: () => arrived.room(), callback: take });
  socket.setTimeout(timeoutMs);
  socket.on('timeout', () => {
    const seconds = timeoutMs / 1000;
    over(
      new Error(arrived.response() ? `${request.url} sent nothing for ${seconds} s` : `${request.url} did not answer within ${seconds} s`),
    );
  });
  socket.on('error', (error) => over(arrived.response() ? new Error('aborted', { cause: error }) : withClock(error, trust)));
  socket.on('close', () =>
    over(arrived.response()?.body.endsWithConnection ? null : new Error(arrived.response() ? 'aborted' : 'socket hang up')),
  );
  socket.write(text, 'latin1');

  const waking = (): Promise<void> => new Promise((woken) => (wake = woken));
  while (!arrived.response() && !end) await waking();
  const response = arrived.response();
  if (!response) throw end!.error!;
  async function* chunks(): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const piece = arrived.whole.shift();
        if (piece) {
          if (!end) {
            socket.setTimeout(timeoutMs);
            socket.resume();
          }
          yield piece;
        } else if (!end) await waking();
        else if (end.error) throw end.error;
        else {
          if (arrived.rest().length > 0) yield arrived.rest();
          return;
        }
      }
    } finally {
      socket.destroy();
    }
  }
  return { ...response.head, url: request.url, length: response.body.length, chunks: chunks(), close: () => socket.destroy() };
}
