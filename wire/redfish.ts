/** Redfish client (DSP0266) over undici: kept connections, session or basic authentication, errors as values. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, type Dispatcher } from 'undici';

export interface RedfishTarget {
  /** scheme://host[:port][/prefix] */
  readonly address: string;
  readonly username?: string;
  readonly password?: string;
  readonly authType: 'basic' | 'session' | 'auto';
  /** false: any certificate; true: the system's authorities; a path: these. */
  readonly verifyCa: boolean | string;
  readonly tls?: { readonly minVersion?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'; readonly ciphers?: string };
}
export interface RedfishAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON; undefined for an empty answer. */
  readonly body: unknown;
}
export interface RedfishRequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}
export type RedfishMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';
export interface RedfishPool {
  /**
   * @param path absolute on the service's host, as links (`@odata.id`) are
   * @throws RedfishError for an unreachable service or a status ≥ 400 (with the message of its ExtendedInfo); the signal's reason
   */
  request(target: RedfishTarget, method: RedfishMethod, path: string, options: RedfishRequestOptions): Promise<RedfishAnswer>;
  /** Ends the sessions and the connections. */
  close(): Promise<void>;
}

/**
 * `unreachable` nothing was sent; `interrupted` no (whole) answer came, so the service may have done what was asked;
 * `status` it answered with an error status; `protocol` what it answered is no Redfish; `closed` the client is closed.
 */
export type RedfishFailure = 'unreachable' | 'interrupted' | 'status' | 'protocol' | 'closed';
export class RedfishError extends Error {
  override readonly name = 'RedfishError';
  readonly status?: number;
  constructor(
    readonly kind: RedfishFailure,
    message: string,
    more: { readonly status?: number; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    if (more.status !== undefined) this.status = more.status;
  }
}

/** The service root's path: `/redfish/v1/`, or the path in the address. */
export function rootPath(target: Pick<RedfishTarget, 'address'>): string {
  const { pathname } = new URL(target.address);
  return pathname === '/' ? '/redfish/v1/' : pathname.replace(/\/*$/, '/');
}

/** A member of a JSON object, whatever the value is. */
export const member = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined),
    value,
  );
/** The path of a link: `{ "@odata.id": "/redfish/…" }`. */
export const linkOf = (value: unknown): string | undefined => {
  const path = member(value, '@odata.id');
  return typeof path === 'string' ? path : undefined;
};

/** Bytes; the largest resources of real services are some hundred KiB. */
const MAX_BODY = 4 << 20;
/** Characters of a service's own words in a message. */
const MAX_WORDS = 1000;
const CONNECT_TIMEOUT = 30_000;
/** What a session that is ended at the close of the client may take. */
const LOGOUT_TIMEOUT = 2000;

/** Code and message of an error answer, with the messages of its ExtendedInfo (DSP0266 §8.6). */
function errorWords(body: unknown): string {
  const error = member(body, 'error');
  const extended = member(error, '@Message.ExtendedInfo');
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  const messages = (Array.isArray(extended) ? extended : []).map(
    (info) => text(member(info, 'Message')) ?? text(member(info, 'MessageId')),
  );
  const [code, message] = [text(member(error, 'code')), text(member(error, 'message'))];
  const more = messages.filter((one) => one !== undefined && one !== message).join(' ');
  return `${code ?? 'unknown error'}: ${message ?? ''}${more === '' ? '' : ` Extended information: ${more}`}`.slice(0, MAX_WORDS);
}

async function certificates(path: string): Promise<Buffer[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [await readFile(path)];
    const entries = await readdir(path, { withFileTypes: true });
    return await Promise.all(entries.filter((entry) => !entry.isDirectory()).map((entry) => readFile(join(path, entry.name))));
  } catch (error) {
    throw new RedfishError('unreachable', `cannot read the authorities ${path}: ${(error as Error).message}`, { cause: error });
  }
}

async function agentFor({ verifyCa, tls }: RedfishTarget): Promise<Agent> {
  return new Agent({
    connections: 4,
    connect: {
      timeout: CONNECT_TIMEOUT,
      rejectUnauthorized: verifyCa !== false,
      ...(typeof verifyCa === 'string' ? { ca: await certificates(verifyCa) } : {}),
      ...(tls?.minVersion ? { minVersion: tls.minVersion } : {}),
      ...(tls?.ciphers ? { ciphers: tls.ciphers } : {}),
    },
  });
}

/** Failures of the connection itself, before anything was sent. */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPROTO|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|ERR_SSL_.*|CERT_.*|UNABLE_TO_.*|.*_SIGNED_CERT.*)$/;
function connectionError(url: string, error: unknown): RedfishError {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const { code = '', message = '' } = first as { code?: string; message?: string };
  const kind = NOT_SENT.test(code) ? 'unreachable' : 'interrupted';
  return new RedfishError(kind, `Unable to connect to ${url}. Error: ${message || code || String(first)}`, { cause: error });
}

async function read(body: AsyncIterable<Buffer>, url: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > MAX_BODY) throw new RedfishError('protocol', `${url} answered with more than ${MAX_BODY} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** How requests to one target prove who they are. */
type Login =
  | { readonly kind: 'none' | 'basic'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'session'; readonly headers: Readonly<Record<string, string>>; readonly session: string | undefined };
interface Kept {
  readonly target: RedfishTarget;
  login?: Promise<Login> | undefined;
}

/** One request, without login. */
async function exchange(
  agent: Agent,
  target: RedfishTarget,
  method: RedfishMethod,
  path: string,
  { body, headers = {}, timeoutMs, signal }: RedfishRequestOptions,
): Promise<RedfishAnswer> {
  const { origin } = new URL(target.address);
  // A link comes from the service: it must not lead the credentials to another host.
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(path))
    throw new RedfishError('protocol', `${origin} gave a link that is no path: ${path.slice(0, 200)}`);
  signal?.throwIfAborted();
  const url = `${origin}${path}`;
  const stop = new AbortController();
  const aborted = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', aborted);
  const late = new RedfishError('interrupted', `Unable to connect to ${url}. Error: no answer within ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => stop.abort(late), timeoutMs);
  try {
    const answer: Dispatcher.ResponseData = await agent.request({
      ...{ origin, path, method, signal: stop.signal, headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
      headers: {
        accept: 'application/json',
        'odata-version': '4.0',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const bytes = await read(answer.body as AsyncIterable<Buffer>, url);
    const status = answer.statusCode;
    const parsed = ((): unknown => {
      if (bytes.length === 0) return undefined;
      try {
        return JSON.parse(bytes.toString());
      } catch (error) {
        if (status >= 400) return undefined;
        throw new RedfishError('protocol', `${url} answered with something that is no JSON`, { cause: error });
      }
    })();
    if (status >= 400) throw new RedfishError('status', `HTTP ${method} ${url} returned code ${status}. ${errorWords(parsed)}`, { status });
    const names = Object.entries(answer.headers).filter(([, value]) => value !== undefined);
    return { status, headers: Object.fromEntries(names.map(([name, value]) => [name, String(value)])), body: parsed };
  } catch (error) {
    if (error === late || error instanceof RedfishError || (signal?.aborted && error === signal.reason)) throw error;
    throw connectionError(url, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', aborted);
  }
}

const basic = ({ username = '', password = '' }: RedfishTarget): Login => ({
  kind: 'basic',
  headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
});

/** Makes a session (DSP0266 §13.3.4), at the place that the service root names. */
async function openSession(agent: Agent, target: RedfishTarget, options: RedfishRequestOptions): Promise<Login> {
  const root = await exchange(agent, target, 'GET', rootPath(target), options);
  const sessions = linkOf(member(root.body, 'Links', 'Sessions')) ?? `${rootPath(target)}SessionService/Sessions`;
  const body = { UserName: target.username ?? '', Password: target.password ?? '' };
  const answer = await exchange(agent, target, 'POST', sessions, { ...options, body });
  const token = answer.headers['x-auth-token'];
  if (token === undefined) throw new RedfishError('protocol', `${target.address} opened a session without a token`);
  const place = answer.headers['location'] ?? linkOf(answer.body);
  const session = place === undefined ? undefined : new URL(place, target.address).pathname;
  return { kind: 'session', headers: { 'x-auth-token': token }, session };
}

async function login(agent: Agent, target: RedfishTarget, options: RedfishRequestOptions): Promise<Login> {
  if (target.username === undefined) return { kind: 'none', headers: {} };
  if (target.authType === 'basic') return basic(target);
  try {
    return await openSession(agent, target, options);
  } catch (error) {
    // No session service, or one that we do not understand: then each request carries the password.
    const answered = error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
    if (target.authType === 'auto' && answered) return basic(target);
    throw error;
  }
}

/** @param options.maxSessions logins kept; above, the one that is oldest in use is ended */
export function createRedfishPool(options: { readonly maxSessions?: number } = {}): RedfishPool {
  const { maxSessions = 1000 } = options;
  const agents = new Map<string, Promise<Agent>>();
  const logins = new Map<string, Kept>();
  let closed = false;

  const agentOf = (target: RedfishTarget): Promise<Agent> => {
    const key = JSON.stringify([target.verifyCa, target.tls]);
    const made = agents.get(key) ?? agentFor(target);
    agents.set(key, made);
    // Authorities that could not be read may be there next time.
    made.catch(() => agents.delete(key));
    return made;
  };
  const logout = async ({ target, login: pending }: Kept): Promise<void> => {
    const it = await pending?.catch(() => undefined);
    if (it?.kind !== 'session' || it.session === undefined) return;
    const bounds = { headers: it.headers, timeoutMs: LOGOUT_TIMEOUT };
    await exchange(await agentOf(target), target, 'DELETE', it.session, bounds).catch(() => undefined);
  };
  /** The target's place, as the one used last. */
  const keep = (target: RedfishTarget): Kept => {
    const key = JSON.stringify(target);
    const it: Kept = logins.get(key) ?? { target };
    logins.delete(key);
    logins.set(key, it);
    const [oldest] = logins;
    if (logins.size > maxSessions && oldest) {
      logins.delete(oldest[0]);
      void logout(oldest[1]);
    }
    return it;
  };

  return {
    request: async (target, method, path, asked) => {
      if (closed) throw new RedfishError('closed', 'the Redfish client is closed');
      const agent = await agentOf(target);
      const it = keep(target);
      for (let renewed = false; ; renewed = true) {
        // Without the caller's signal: others may wait for the same login.
        const pending = (it.login ??= login(agent, target, { timeoutMs: asked.timeoutMs }));
        const proof = await pending.catch((error: unknown) => {
          if (it.login === pending) it.login = undefined;
          throw error;
        });
        try {
          return await exchange(agent, target, method, path, { ...asked, headers: { ...asked.headers, ...proof.headers } });
        } catch (error) {
          const ended = error instanceof RedfishError && error.status === 401 && proof.kind === 'session';
          if (it.login === pending && ended) it.login = undefined;
          if (!ended || renewed) throw error;
        }
      }
    },
    close: async () => {
      closed = true;
      await Promise.all([...logins.values()].map(logout));
      logins.clear();
      await Promise.all([...agents.values()].map(async (agent) => (await agent.catch(() => undefined))?.destroy()));
      agents.clear();
    },
  };
}
