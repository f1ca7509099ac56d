/** One HTTP exchange with a Redfish service, over undici: bounded in time, size and redirects; failures as RedfishError. */
import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Agent, buildConnector } from 'undici';
import { readAuthorities } from '../authorities';
import { JSON_LIMITS, JsonLimitError, parseJson } from '../bounded-json';
import { createAgent, requestOn } from '../http-agent';
import { connectionText } from '../http/connection-text';
import { echoesOf, withoutEchoes, RedfishError, errorWords, type Echoes } from './errors';
import { lenientRequest } from './lenient';

export interface RedfishTarget {
  /** scheme://host[:port][/prefix] */
  readonly address: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly authType: 'basic' | 'session' | 'auto';
  /** false: any certificate; true: the system's certificate authorities; a path: the authorities there. */
  readonly verifyCa: boolean | string;
  readonly tls?: { readonly minVersion?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' | undefined; readonly ciphers?: string | undefined } | undefined;
}
export interface RedfishAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The path of the Location header. Its host is ignored, since services do not know the name under which we reach them. */
  readonly location?: string | undefined;
  /** Parsed JSON; undefined for an empty response. */
  readonly body: unknown;
}
/** Content of any size in place of a JSON body. */
export interface RedfishUpload {
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** Called for each time that the content is sent. */
  open(): Promise<Readable>;
}
export interface RedfishRequestOptions {
  readonly body?: unknown;
  readonly upload?: RedfishUpload;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Sending it twice does no harm. Always so for all methods but POST. */
  readonly repeatable?: boolean;
}
export type RedfishMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** The service root's path: `/redfish/v1/`, or the path in the address. */
export function rootPath(target: Pick<RedfishTarget, 'address'>): string {
  const { pathname } = new URL(target.address);
  return pathname === '/' ? '/redfish/v1/' : pathname.replace(/(?<!\/)\/*$/, '/');
}

/** Bytes. The largest resources of real services (message and attribute registries) have a few MiB. */
const MAX_BODY = 8 << 20;
const MAX_REDIRECTS = 3;
/** Concurrent requests to one service: BMCs are small. */
const CONNECTIONS = 4;
/** Cached TLS sessions, so that the next connection to a service needs no full handshake. */
const TLS_SESSIONS = 10_000;
/** Milliseconds: longer demands of a service are cut to this. */
const MAX_RETRY_AFTER = 60_000;

async function certificates(path: string): Promise<string[]> {
  try {
    return [...(await readAuthorities(path, /(?:)/))];
  } catch (error) {
    throw new RedfishError('untrusted', `cannot read the authorities ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** The connections to all services with the same certificate rules. */
interface ServiceConnections {
  readonly agent: Agent;
  /** Without reuse of connections. */
  readonly freshAgent: Agent;
  readonly tls: ConnectionOptions;
}
export async function connectionsFor({ verifyCa, tls }: RedfishTarget, connectTimeoutMs: number): Promise<ServiceConnections> {
  const options: ConnectionOptions = {
    rejectUnauthorized: verifyCa !== false,
    ...(typeof verifyCa === 'string' ? { ca: await certificates(verifyCa) } : {}),
    ...(tls?.minVersion ? { minVersion: tls.minVersion } : {}),
    ...(tls?.ciphers ? { ciphers: tls.ciphers } : {}),
  };
  const connect = buildConnector({ ...options, timeout: connectTimeoutMs, maxCachedSessions: TLS_SESSIONS } as buildConnector.BuildOptions);
  return {
    agent: createAgent({ connections: CONNECTIONS, bodyBytes: 'streamed', connect }),
    freshAgent: createAgent({ connections: CONNECTIONS, bodyBytes: 'streamed', connect, reuses: false }),
    tls: options,
  };
}
/** A service, and what its answers have taught about it. */
export interface Service extends ServiceConnections {
  readonly target: RedfishTarget;
  /** It drops connections that are used again. Each request has its own then. */
  dropsConnections?: true;
  /** Its HTTP is malformed ([decision 0017](../../docs/decisions/0017-malformed-http-of-bmcs.md)). */
  isMalformed?: true;
}

/** Connection errors before anything was sent. */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPROTO|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|ERR_SSL_.*)$/;
/** Certificate errors (OpenSSL's X509_V_ERR_*, as Node names them). */
const CERTIFICATE = /^(CERT_.*|UNABLE_TO_.*|.*_SIGNED_CERT.*|ERR_TLS_CERT_.*|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)$/;
export function connectionError(url: string, error: unknown): RedfishError {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const { code = '' } = first as { code?: string };
  const untrusted = CERTIFICATE.test(code);
  const kind = untrusted ? 'untrusted' : NOT_SENT.test(code) ? 'unreachable' : 'interrupted';
  const why = `${untrusted ? 'certificate verify failed: ' : ''}${connectionText(first)}`;
  return new RedfishError(kind, `Unable to connect to ${url}. Error: ${why}`, { cause: error });
}

/** Names of the content coding (RFC 9110 §8.4.1). */
const GZIP = /^(?:x-)?gzip$/i;

/** A response whose body is not read yet. */
interface Answered {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}
async function read(body: AsyncIterable<Uint8Array>, url: string, encoding: unknown): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > MAX_BODY) throw new RedfishError('protocol', `${url} answered with more than ${MAX_BODY} bytes`);
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  if (!GZIP.test(String(encoding)) || size === 0) return bytes;
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: MAX_BODY });
  } catch (error) {
    throw new RedfishError('protocol', `${url} answered with something that cannot be unpacked`, { cause: error });
  }
}
const SPACE = 0x20;
const LESS_THAN = 0x3c;
/** Undefined for an empty response, and for error pages that are not JSON. */
async function parsed(bytes: Uint8Array, status: number, url: string): Promise<unknown> {
  if (bytes.every((byte) => byte <= SPACE)) return undefined;
  try {
    return await parseJson(bytes, JSON_LIMITS.bmc);
  } catch (error) {
    if (status >= 300) return undefined;
    if (error instanceof JsonLimitError) throw new RedfishError('protocol', `${url} answered with more than is read: ${error.message}`);
    const isPage = bytes.find((byte) => byte > SPACE) === LESS_THAN;
    throw new RedfishError('protocol', `the response of ${url} is not valid JSON`, { cause: error, isPage });
  }
}

/** Retry-After in milliseconds (RFC 9110 §10.2.3), bounded; undefined for none. @param now for the form with a date */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const wait = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), MAX_RETRY_AFTER);
}

/** What a path has no place for; services write some of it into their links. */
const UNESCAPED = /[^\x21-\x7e]/gu;
/** Characters of a link. Messages name it. */
const MAX_LINK = 2000;
/** Links come from the service. They must not send the credentials to another host. Some are URLs of the service itself. */
function checkedPath(link: string, origin: string): string {
  const { hostname } = new URL(origin);
  const own = /^https?:/i.test(link) && URL.canParse(link) && new URL(link).hostname === hostname;
  const path = own ? `${new URL(link).pathname}${new URL(link).search}` : link.trim();
  if (path.length <= MAX_LINK && /^\/(?!\/)\P{Cc}*$/u.test(path) && !/\p{Surrogate}/u.test(path))
    return path.replace(UNESCAPED, encodeURIComponent);
  throw new RedfishError('protocol', `${origin} gave a link that is not a path: ${link.slice(0, 200)}`);
}
/** The path of a Location on the same service, whatever its host; undefined: not a URL. */
function locationPath(location: string, url: string): string | undefined {
  if (!URL.canParse(location, url)) return undefined;
  const { pathname, search } = new URL(location, url);
  return `${pathname}${search}`;
}

/**
 * Evaluates a response. Throws RedfishError for a status ≥ 400, and for anything but JSON.
 * @param echoes secrets of the request, which the messages of the response must not contain
 * @internal
 */
export async function evaluate(
  method: RedfishMethod,
  url: string,
  status: number,
  raw: Readonly<Record<string, string | string[] | undefined>>,
  bytes: Uint8Array,
  echoes?: Echoes,
): Promise<RedfishAnswer> {
  const received = await parsed(bytes, status, url);
  const body = echoes?.written.some((text) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(text))
    ? withoutEchoes(received, echoes.pattern)
    : received;
  const headers = Object.fromEntries(Object.entries(raw).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
  if (status >= 400) {
    const { words, messageIds } = errorWords(body);
    const retryAfterMs = retryAfter(headers['retry-after'], Date.now());
    throw new RedfishError('status', `HTTP ${method} ${url} returned code ${status}. ${words}`, { status, messageIds, retryAfterMs });
  }
  const location = headers['location'] === undefined ? undefined : locationPath(headers['location'], url);
  return { status, headers, body, location };
}

/** The connection ended before the first byte of an answer. */
const DROPPED = /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/;
/** Notes what a failure teaches about the service. Whether the request may succeed now. */
function learn(service: Service, error: unknown): boolean {
  const { name, code = '' } = error as { readonly name?: string; readonly code?: string };
  if (name === 'HTTPParserError' && !service.isMalformed) return (service.isMalformed = true);
  if (DROPPED.test(code) && !service.dropsConnections) return (service.dropsConnections = true);
  return false;
}

/**
 * Sends one request, without login. Follows redirects on the same host only (GET: all; others: 307 and 308).
 * @param path absolute on the service's host, as links are, or a URL of this host; a fragment is not sent
 * @throws RedfishError; the signal's reason
 */
export async function exchange(
  service: Service,
  method: RedfishMethod,
  path: string,
  { body, upload, headers = {}, timeoutMs, signal, repeatable = method !== 'POST' }: RedfishRequestOptions,
): Promise<RedfishAnswer> {
  const { target } = service;
  const { origin } = new URL(target.address);
  const first = checkedPath(path, origin).replace(/#.*/, '');
  signal?.throwIfAborted();
  const stop = new AbortController();
  const aborted = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', aborted);
  const echoes = echoesOf([target.password, headers['x-auth-token'], headers['authorization']?.replace('Basic ', '')]);
  const late = new RedfishError('interrupted', `Unable to connect to ${origin}${first}. Error: no answer within ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => stop.abort(late), timeoutMs);
  const content = body === undefined ? null : JSON.stringify(body);

  const send = async (at: string, more: Readonly<Record<string, string>>): Promise<Answered> => {
    const request = {
      origin,
      path: at,
      method,
      signal: stop.signal,
      body: upload ? await upload.open() : content,
      headers: {
        accept: 'application/json',
        // Some services give compressed responses weak ETags, which they then do not accept.
        'accept-encoding': 'identity',
        'odata-version': '4.0',
        ...(content === null ? {} : { 'content-type': 'application/json' }),
        ...(upload ? { 'content-type': upload.type, 'content-length': String(upload.size) } : {}),
        ...headers,
        ...more,
      },
    };
    if (service.isMalformed) return lenientRequest(request, service.tls);
    // What must not be sent twice cannot be repeated when a connection that was used before turns out to be dead (iLO).
    const agent = service.dropsConnections || !repeatable ? service.freshAgent : service.agent;
    return requestOn(agent, { ...request, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  };
  const once = async (at: string, more: Readonly<Record<string, string>>): Promise<RedfishAnswer> => {
    const url = `${origin}${at}`;
    const answer = await send(at, more).catch((error: unknown) => {
      if (stop.signal.aborted || !learn(service, error) || !repeatable) throw error;
      return send(at, more);
    });
    const bytes = await read(answer.body, url, answer.headers['content-encoding']).catch((error: unknown) => {
      // The status alone says that the request failed.
      if (stop.signal.aborted || answer.statusCode < 400) throw error;
      return Buffer.alloc(0);
    });
    return evaluate(method, url, answer.statusCode, answer.headers, bytes, echoes);
  };

  let at = first;
  try {
    for (let redirects = 0, packed = {}; ;) {
      try {
        const answer = await once(at, packed);
        if (answer.status < 300) return answer;
        at = redirected(answer, method, `${origin}${at}`, redirects++);
      } catch (error) {
        // Some services offer their registries only compressed.
        const again = method === 'GET' && error instanceof RedfishError && error.status === 406 && !('accept-encoding' in packed);
        if (!again) throw error;
        packed = { 'accept-encoding': 'gzip' };
      }
    }
  } catch (error) {
    // The lenient reader fails with an error of its own when it is aborted.
    if (stop.signal.aborted) throw stop.signal.reason;
    throw error instanceof RedfishError ? error : connectionError(`${origin}${at}`, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', aborted);
  }
}

/** The target of a redirect on the same host. */
function redirected({ status, headers }: RedfishAnswer, method: RedfishMethod, url: string, redirects: number): string {
  const place = headers['location'] ?? '';
  const to = URL.canParse(place, url) ? new URL(place, url) : undefined;
  const same = to !== undefined && to.origin === new URL(url).origin;
  const follow = method === 'GET' ? [301, 302, 303, 307, 308] : [307, 308];
  if (same && follow.includes(status) && redirects < MAX_REDIRECTS) return `${to.pathname}${to.search}`;
  const why = same ? 'which is not followed' : 'which is another host: redfish_address must name the service itself';
  throw new RedfishError('protocol', `${url} answered with code ${status} and leads to ${place.slice(0, 200) || 'nowhere'}, ${why}`);
}
