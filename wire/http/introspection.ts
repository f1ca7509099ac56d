/**
 * Client of an introspection service: the HTTP API of ironic-discoverd and ironic-inspector (`/v1/introspection/<node>`). Bounded in time,
 * size and connections. Redirects are not followed.
 */
import { isObject } from '../../model/json';
import { JSON_LIMITS, parseSmallJson } from '../bounded-json';
import { timeoutSignal } from '../timeout-signal';
import { oneLine } from '../../model/log';
import { shortened } from '../../model/text';
import { createAgent, request } from '../http-agent';
import { connectionText } from './connection-text';

interface IntrospectionSetup {
  /** http(s)://host[:port][/prefix][/v1] */
  readonly url: string;
  readonly timeoutMs: number;
  readonly user?: { readonly name: string; readonly password: string } | undefined;
  readonly tls?: {
    /** PEM. */
    readonly ca?: string | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
    /** Accepts any certificate. */
    readonly insecure?: boolean;
  };
}
interface IntrospectionStatus {
  readonly finished: boolean;
  /** Null: no error. */
  readonly error: string | null;
}
export interface IntrospectionClient {
  /** All functions throw IntrospectionError. */
  start(node: string, signal: AbortSignal): Promise<void>;
  status(node: string, signal: AbortSignal): Promise<IntrospectionStatus>;
  abort(node: string, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
/**
 * `unreachable`: no response; `failing`: a response without information about the node, so retry later; `refused`: the service refuses the
 * request; `unknown`: the service does not know the node.
 */
export class IntrospectionError extends Error {
  constructor(
    readonly kind: 'unreachable' | 'failing' | 'refused' | 'unknown',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Real responses are smaller. */
const MAX_ANSWER_BYTES = 1 << 20;
/** Concurrent requests. */
const CONNECTIONS = 16;
/** Characters of a service's text for people. */
const MAX_TEXT = 1000;
/** Statuses besides 5xx that are temporary: timeout, node locked, too early, too many requests. */
const RETRY_LATER: readonly number[] = [408, 409, 425, 429];

/** Why the URL of a service is invalid; undefined: it is valid. */
export function urlProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return 'it is not a URL';
  const { protocol, username, password, search, hash } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return 'it is neither http:// nor https://';
  if (username !== '' || password !== '') return 'it has a user name or password in it';
  return search !== '' || hash !== '' ? 'it has a query or a fragment' : undefined;
}

/** A text for people: one line, bounded, without control characters. */
const readable = (text: string): string => shortened(oneLine(text), MAX_TEXT);
function parsed(text: string): unknown {
  try {
    return parseSmallJson(Buffer.from(text), JSON_LIMITS.introspection);
  } catch {
    return undefined;
  }
}
/** The service's own error message, {error: {message}}; undefined: another program answered, for instance a proxy. */
function errorMessageOf(body: unknown): string | undefined {
  const error = isObject(body) ? body['error'] : undefined;
  const message = isObject(error) ? error['message'] : undefined;
  return typeof message === 'string' ? readable(message) : undefined;
}
function refusal(status: number, text: string, location: string | undefined): IntrospectionError {
  const own = errorMessageOf(parsed(text));
  const words = own ?? (shortened(readable(text), 200) || 'no reason given');
  if (status >= 500 || RETRY_LATER.includes(status)) return new IntrospectionError('failing', `HTTP status ${status}: ${words}`);
  if (status === 404 && own !== undefined) return new IntrospectionError('unknown', own);
  if (status < 400)
    return new IntrospectionError(
      'refused',
      `HTTP status ${status}: it redirects${location === undefined ? '' : ` to ${readable(location)}`}`,
    );
  return new IntrospectionError('refused', own ?? `HTTP status ${status}: ${words}`);
}

/** Throws unless `finished` is a boolean and `error` a text or null. */
function statusOf(text: string): IntrospectionStatus {
  const body = parsed(text);
  if (isObject(body) && typeof body['finished'] === 'boolean') {
    const { finished, error = null } = body;
    if (error === null || error === '') return { finished, error: null };
    if (typeof error === 'string') return { finished, error: readable(error) || 'no reason given' };
  }
  throw new IntrospectionError('failing', `the answer is not the status of an introspection: ${shortened(readable(text), 200)}`);
}

export function createIntrospectionClient({ url, timeoutMs, user, tls = {} }: IntrospectionSetup): IntrospectionClient {
  const { origin, pathname } = new URL(url);
  const base = `${origin}${pathname.replace(/(?:\/v1)?(?<!\/)\/*$/, '')}/v1/introspection`;
  const { insecure = false, ...certificates } = tls;
  const dispatcher = createAgent({
    connections: CONNECTIONS,
    bodyBytes: MAX_ANSWER_BYTES,
    connect: { timeout: timeoutMs, rejectUnauthorized: !insecure, ...certificates },
  });
  const headers = {
    accept: 'application/json',
    'x-openstack-ironic-inspector-api-version': '1.0',
    ...(user ? { authorization: `Basic ${Buffer.from(`${user.name}:${user.password}`).toString('base64')}` } : {}),
  };
  async function send(method: 'GET' | 'POST', path: string, signal: AbortSignal): Promise<string> {
    let status: number;
    let location: string | undefined;
    let text: string;
    try {
      const answer = await request(`${base}/${path}`, { method, dispatcher, headers, signal: timeoutSignal(timeoutMs, signal) });
      status = answer.statusCode;
      location = answer.headers['location']?.toString();
      text = await answer.body.text();
    } catch (error) {
      signal.throwIfAborted();
      throw new IntrospectionError('unreachable', readable(connectionText(error)), { cause: error });
    }
    if (status >= 300) throw refusal(status, text, location);
    return text;
  }
  return {
    start: async (node, signal) => {
      await send('POST', node, signal);
    },
    status: async (node, signal) => statusOf(await send('GET', node, signal)),
    abort: async (node, signal) => {
      await send('POST', `${node}/abort`, signal);
    },
    close: () => dispatcher.destroy(),
  };
}
