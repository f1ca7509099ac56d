/**
 * Sessions of the page (/ui): a browser sends a cookie in place of credentials. The credentials stay in the memory of this process. Each
 * request is authenticated with them again, so that a session never outlives a revoked token or a changed password.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../model/clock';
import { newSecret } from '../../model/masks';
import type { Caller } from '../../policy/caller';
import { Unauthenticated } from '../http/errors';
import type { Auth } from '../pipeline/handler';
import { isPublic } from './public-paths';

/** The credentials of a session, as the request header that carries them. */
type Credentials = { readonly authorization: string } | { readonly 'x-auth-token': string };
/** What a log-in results in. */
export interface Login {
  readonly credentials: Credentials;
  /** Absent: the session ends with the credentials. */
  readonly renewal?: {
    /** Milliseconds since the epoch. */
    readonly at: number;
    /** @throws Unauthenticated */
    readonly renew: () => Promise<Login>;
  };
}
interface Session {
  readonly caller: Caller;
  /** Requests other than GET and HEAD must repeat this value in X-CSRF-Token. */
  readonly csrf: string;
}
export interface Sessions {
  /** The authentication of requests with credentials or with a cookie. */
  readonly auth: Auth;
  /** @returns the session and its cookie. @throws Unauthenticated */
  open(login: Login, source: string): Promise<Session & { readonly cookie: string }>;
  /** Undefined: the request has no valid cookie, or the credentials of its session are not accepted any more. */
  find(headers: IncomingHttpHeaders, source: string): Promise<Session | undefined>;
  close(headers: IncomingHttpHeaders): void;
}

export const SESSION_COOKIE = 'bloomery_session';
/** The lifetime of a session that is not used, and of any session. */
const IDLE_MS = 3_600_000;
export const SESSION_SECONDS = 43_200;
/** The time until the next attempt after a renewal that failed for a temporary reason. */
const RENEW_AGAIN_MS = 10_000;
const MAX_SESSIONS = 1000;
const MAX_SESSIONS_OF_USER = 20;
/** A path that needs authentication. Credentials are checked as if they came with a request for it. */
const PROTECTED = '/v1/nodes';
const SAFE_METHODS = ['GET', 'HEAD'];

/** Cookies come in one header (RFC 6265 §5.4). */
export function cookieOf({ cookie = '' }: IncomingHttpHeaders, name: string): string | undefined {
  for (const pair of cookie.split(';')) {
    const [key, value] = pair.trim().split('=', 2);
    if (key === name) return value;
  }
  return undefined;
}
const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');
const isSame = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(hashOf(a)), Buffer.from(hashOf(b)));
/** Browsers say in Sec-Fetch-Site where a request comes from. The cookie is ignored in requests of other origins, even of the same site. */
const isFromElsewhere = (headers: IncomingHttpHeaders): boolean => !['same-origin', 'none', undefined].includes(headers['sec-fetch-site']);

interface StoredSession {
  login: Login;
  renewing?: Promise<void>;
  readonly user: string | null;
  readonly csrf: string;
  readonly end: number;
  lastUsed: number;
}
export function createSessions(auth: Auth, clock: Clock, random: (bytes: number) => Buffer): Sessions {
  /** By the hash of the cookie, the oldest first. */
  const sessions = new Map<string, StoredSession>();
  const isLive = ({ end, lastUsed }: StoredSession): boolean => clock.now() < Math.min(end, lastUsed + IDLE_MS);

  function stored(headers: IncomingHttpHeaders): StoredSession | undefined {
    const value = cookieOf(headers, SESSION_COOKIE);
    if (value === undefined || isFromElsewhere(headers)) return undefined;
    const key = hashOf(value);
    const session = sessions.get(key);
    if (session === undefined) return undefined;
    if (isLive(session)) return session;
    sessions.delete(key);
    return undefined;
  }
  function makeRoom(user: string | null): void {
    for (const [key, session] of sessions) if (!isLive(session)) sessions.delete(key);
    const ofUser = [...sessions].filter(([, session]) => session.user === user);
    const oldest = ofUser.length >= MAX_SESSIONS_OF_USER ? ofUser[0] : sessions.size >= MAX_SESSIONS ? [...sessions][0] : undefined;
    if (oldest) sessions.delete(oldest[0]);
  }

  async function renew(session: StoredSession, { renew: next }: NonNullable<Login['renewal']>): Promise<void> {
    try {
      session.login = await next();
    } catch (error) {
      if (error instanceof Unauthenticated && error.status === 401) throw error;
      session.login = { ...session.login, renewal: { at: clock.now() + RENEW_AGAIN_MS, renew: next } };
    }
  }
  /** The credentials, renewed if that is due. Concurrent requests wait for the same renewal. @throws Unauthenticated */
  async function credentialsOf(session: StoredSession): Promise<Credentials> {
    const { renewal } = session.login;
    if (renewal && clock.now() >= renewal.at) {
      session.renewing ??= renew(session, renewal).finally(() => delete session.renewing);
      await session.renewing;
    }
    return session.login.credentials;
  }

  const identify: Auth['identify'] = async (headers, path, method, source) => {
    const hasOwn = headers.authorization !== undefined || headers['x-auth-token'] !== undefined;
    const session = hasOwn || isPublic(path, method) ? undefined : stored(headers);
    if (session === undefined) return auth.identify(headers, path, method, source);
    if (!SAFE_METHODS.includes(method) && !isSame(String(headers['x-csrf-token']), session.csrf))
      throw new Unauthenticated(401, 'The CSRF token of the session is missing');
    session.lastUsed = clock.now();
    return auth.identify({ ...headers, ...(await credentialsOf(session)) }, path, method, source);
  };
  return {
    auth: { ...auth, identify },
    async open(login, source) {
      const caller = await auth.identify(login.credentials, PROTECTED, 'GET', source);
      makeRoom(caller.user);
      const value = newSecret(random);
      const csrf = newSecret(random);
      const now = clock.now();
      sessions.set(hashOf(value), { login, user: caller.user, csrf, end: now + SESSION_SECONDS * 1000, lastUsed: now });
      return { caller, csrf, cookie: value };
    },
    async find(headers, source) {
      const session = stored(headers);
      if (session === undefined) return undefined;
      try {
        const caller = await auth.identify(await credentialsOf(session), PROTECTED, 'GET', source);
        return { caller, csrf: session.csrf };
      } catch (error) {
        if (error instanceof Unauthenticated && error.status === 401) return undefined;
        throw error;
      }
    },
    close(headers) {
      const value = cookieOf(headers, SESSION_COOKIE);
      if (value !== undefined) sessions.delete(hashOf(value));
    },
  };
}
