/** HTTP client over node:http(s): bounded responses, timeouts, redirects, a stream for images. */
import { Agent as PlainAgent, request as plain, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { Agent as SecureAgent, request as secure } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { timeoutSignal } from '../../wire/timeout-signal';

export interface Trust {
  /** Accepts any certificate. */
  readonly insecure: boolean;
  /** PEM of certificate authorities that replace the usual ones. */
  readonly ca?: string | undefined;
  /** The clock that certificates are checked by; an error about their dates tells it. */
  readonly now?: () => number;
}
export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly url: string;
  readonly headers?: OutgoingHttpHeaders | undefined;
  readonly body?: string | Buffer;
  /** The request fails after this time without any data from the server, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly trust: Trust;
  /** Absent: a connection of its own. */
  readonly connections?: Connections;
  /** Redirects that led here; default 0. */
  readonly redirects?: number;
}
/** Connections that several requests use, one after another. */
export interface Connections {
  readonly plain: PlainAgent;
  readonly secure: SecureAgent;
  close(): void;
}
export function openConnections(): Connections {
  const [ofPlain, ofSecure] = [new PlainAgent({ keepAlive: true }), new SecureAgent({ keepAlive: true })];
  const close = (): void => {
    ofPlain.destroy();
    ofSecure.destroy();
  };
  return { plain: ofPlain, secure: ofSecure, close };
}
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}
const MAX_ANSWER = 8 * 2 ** 20;
const MAX_REDIRECTS = 5;

/** The response to `ask` must be complete within this multiple of `timeoutMs`. */
const MAX_RESPONSE = 4;

/** Rejects without a response, and for one that is very slow or larger than `largest` bytes. An error status (400 and more) does not reject. */
export async function ask(request: HttpRequest, largest = MAX_ANSWER): Promise<HttpAnswer> {
  const limited = timeoutSignal(MAX_RESPONSE * request.timeoutMs, ...(request.signal ? [request.signal] : []));
  const { answer } = await open({ ...request, signal: limited });
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > largest) throw new Error(`The answer of ${request.url} is larger than ${largest} bytes`);
    parts.push(part);
  }
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(parts).toString('utf8') };
}

interface Opened {
  readonly answer: IncomingMessage;
  /** The URL that answered, after redirects. */
  readonly url: string;
}
/** Follows redirects. Resolves when the headers have arrived; the caller reads or destroys the body. */
export async function open(request: HttpRequest): Promise<Opened> {
  const answer = await once(request);
  const next = ['GET', 'HEAD'].includes(request.method) ? redirected(request, answer.statusCode ?? 0, answer.headers.location) : undefined;
  if (!next) return { answer, url: request.url };
  answer.destroy();
  return open(next);
}
/**
 * The request that a redirect leads to: without credentials if it is another server's. Undefined: the response is none.
 * @throws Error after too many redirects
 */
export function redirected<T extends Pick<HttpRequest, 'headers' | 'redirects' | 'url'>>(
  request: T,
  status: number,
  location: string | undefined,
): T | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const { redirects = 0 } = request;
  if (redirects === MAX_REDIRECTS) throw new Error(`Too many redirects from ${request.url}`);
  const url = new URL(location, request.url);
  const others = Object.fromEntries(Object.entries(request.headers ?? {}).filter(([name]) => name.toLowerCase() !== 'authorization'));
  const headers = url.origin === new URL(request.url).origin ? request.headers : others;
  return { ...request, url: url.href, headers, redirects: redirects + 1 };
}

interface Content {
  readonly content: AsyncIterable<Buffer>;
  /** Bytes. */
  readonly length: number;
}
/** Characters of an answer to a file that are read. */
const MAX_REASON = 500;
/** Sends a file of a known length, and follows no redirect. Rejects as `ask`. */
export async function put(
  request: Pick<HttpRequest, 'signal' | 'timeoutMs' | 'trust' | 'url'> & Content,
): Promise<Pick<HttpAnswer, 'status' | 'text'>> {
  const answer = await once({ ...request, method: 'PUT' }, request);
  const limited = timeoutSignal(request.timeoutMs, ...(request.signal ? [request.signal] : []));
  limited.addEventListener('abort', () => answer.destroy(), { once: true });
  let text = '';
  for await (const part of answer as AsyncIterable<Buffer>) {
    text += part.toString('utf8');
    if (text.length > MAX_REASON) break;
  }
  return { status: answer.statusCode ?? 0, text: text.slice(0, MAX_REASON).trim() };
}

const OF_DATES: readonly unknown[] = ['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED'];
export const withClock = (error: NodeJS.ErrnoException, { now }: Trust): Error =>
  OF_DATES.includes(error.code) && now
    ? new Error(`${error.message} (the machine's clock says ${new Date(now()).toISOString()})`, { cause: error })
    : error;

const once = (
  { method, url, headers, body, timeoutMs, signal, trust, connections }: HttpRequest,
  file?: Content,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const target = new URL(url);
    const isSecure = target.protocol === 'https:';
    if (!isSecure && target.protocol !== 'http:') throw new Error(`Unsupported protocol in ${url}`);
    const call = (isSecure ? secure : plain)(
      target,
      {
        method,
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          ...(file === undefined ? {} : { 'content-length': file.length, 'content-type': 'application/octet-stream' }),
        },
        timeout: timeoutMs,
        agent: connections ? connections[isSecure ? 'secure' : 'plain'] : false,
        signal,
        rejectUnauthorized: !trust.insecure,
        ca: trust.ca,
      },
      (answer) => {
        answered = answer;
        resolve(answer);
      },
    );
    let answered: IncomingMessage | undefined;
    call.on('timeout', () => {
      const seconds = timeoutMs / 1000;
      if (answered) answered.destroy(new Error(`${url} sent nothing for ${seconds} s`));
      else call.destroy(new Error(`${url} did not answer within ${seconds} s`));
    });
    call.on('error', (error: NodeJS.ErrnoException) => reject(withClock(error, trust)));
    // A server may answer and close before it has the whole file: then its answer counts.
    if (file) pipeline(Readable.from(file.content), call).catch(reject);
    else call.end(body);
  });
