/** Redfish client (DSP0266): reuses connections and logins; session or basic authentication. */
import type { Duplex } from 'node:stream';
import { unlessAborted } from '../timeout-signal';
import { RedfishError, hasMessage, isStatus, remarksOf } from './errors';
import { linkOf, member } from './json';
import {
  connectionsFor,
  exchange,
  rootPath,
  type RedfishAnswer,
  type RedfishMethod,
  type RedfishRequestOptions,
  type RedfishTarget,
  type Service,
} from './transport';
import { openWebSocket } from './web-socket';

export interface RedfishPool {
  /**
   * @param path absolute on the service's host, as links (`@odata.id`) are
   * @throws RedfishError for an unreachable service or a status ≥ 400 (with the message of its ExtendedInfo); the signal's reason
   */
  request(target: RedfishTarget, method: RedfishMethod, path: string, options: RedfishRequestOptions): Promise<RedfishAnswer>;
  /**
   * Opens a WebSocket (RFC 6455) of the service, with the login of its requests. Absent: the pool of a test.
   * @throws RedfishError, the signal's reason
   */
  openWebSocket?(target: RedfishTarget, path: string, options: Omit<RedfishRequestOptions, 'body' | 'headers'>): Promise<Duplex>;
  /** Ends the sessions and closes the connections. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT = 30_000;
/** Milliseconds for the request that ends a session. */
const LOGOUT_TIMEOUT = 2000;
/** A token that a header can carry back unchanged. */
const TOKEN = /^[\x21-\x7e]+$/;
/** Remembered requests that an account may not make. Above, each of them opens a session. */
const MAX_FORBIDDEN = 100;

/** How requests to one target authenticate. */
interface Login {
  readonly kind: 'none' | 'basic' | 'session';
  readonly headers: Readonly<Record<string, string>>;
  /** The session's own path, for ending it. */
  readonly session?: string | undefined;
  /** Requests that were answered with 403 when the session was new: their 403 is no sign that it has ended. */
  readonly forbidden: Set<string>;
  /** The account must get a new password before it may do anything else. The path of the account, if the service tells it. */
  readonly mustChange?: { readonly account: string | undefined } | undefined;
}
interface TargetState {
  readonly target: RedfishTarget;
  service?: Promise<Service> | undefined;
  login?: Promise<Login> | undefined;
  /** A session was opened once. After that, a failure does not lead to basic authentication. */
  hadSession?: true;
  /** Basic authentication in place of a session until then, in milliseconds since the epoch: the service has too many sessions. */
  basicUntil?: number | undefined;
  /** The service has accepted these credentials. */
  hasWorked?: true;
  /** How often in turn the service has refused these credentials. */
  refusals: number;
  /** They are not sent again before that time, in milliseconds since the epoch, so that the service does not lock the account. */
  blockedUntil: number;
  users: number;
}

/** Refusals in turn after which credentials rest. Services lock accounts after three to five. */
const FREE_REFUSALS = 3;
/** Milliseconds of the first rest; each further one is twice as long. */
const FIRST_REST = 30_000;
const LONGEST_REST = 300_000;
/** Milliseconds until a service with too many sessions is asked for one again. */
const BASIC_MS = 600_000;
/** A 401 that does not concern the credentials. */
const OTHER_REFUSAL = /licen[cs]e|privilege/i;
const refusesCredentials = (error: unknown): error is RedfishError =>
  isStatus(error, 401) && !error.messageIds.some((id) => OTHER_REFUSAL.test(id));
function noteRefusal(state: TargetState, now: number): void {
  state.refusals++;
  const rest = Math.min(FIRST_REST * 2 ** (state.refusals - FREE_REFUSALS), LONGEST_REST);
  if (state.refusals >= FREE_REFUSALS) state.blockedUntil = now + rest;
}
function noteSuccess(state: TargetState): void {
  state.hasWorked = true;
  state.refusals = 0;
  state.blockedUntil = 0;
}
/** Throws while the credentials rest. */
function checkRest({ target, refusals, blockedUntil }: TargetState, now: number): void {
  if (now >= blockedUntil) return;
  const seconds = Math.ceil((blockedUntil - now) / 1000);
  const why = `${target.address} has refused the credentials ${refusals} times; so that it does not lock the account, they are sent again in ${seconds} s`;
  throw new RedfishError('status', why, { status: 401 });
}

const basic = ({ username = '', password = '' }: RedfishTarget): Login => ({
  kind: 'basic',
  forbidden: new Set(),
  headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
});

/** A session service that is not there. */
const isNoPlace = (error: unknown): boolean => isStatus(error, 404, 405, 501);
/** Opens a session (DSP0266 §13.3.4) at the path in the service root, or where services have it that name none: old ones have another place. */
async function openSession(service: Service, options: RedfishRequestOptions): Promise<Login> {
  const { target } = service;
  const root = rootPath(target);
  // Some services require authentication even for their root.
  const { body: described } = await exchange(service, 'GET', root, options).catch((error: unknown) => {
    if (isStatus(error)) return { body: undefined };
    throw error;
  });
  const named = linkOf(member(described, 'Links', 'Sessions'));
  const first = named ?? `${root}SessionService/Sessions`;
  const body = { UserName: target.username ?? '', Password: target.password ?? '' };
  const open = (place: string): Promise<RedfishAnswer> => exchange(service, 'POST', place, { ...options, body, repeatable: true });
  const answer = await open(first).catch((error: unknown) => {
    if (named !== undefined || !isNoPlace(error)) throw error;
    return open(`${root}Sessions`);
  });
  const token = answer.headers['x-auth-token'];
  if (token === undefined || !TOKEN.test(token))
    throw new RedfishError('protocol', `${target.address} opened a session without a token that can be sent`);
  const change = remarksOf(answer.body).find(({ id }) => id?.endsWith(CHANGE_REQUIRED));
  return {
    kind: 'session',
    headers: { 'x-auth-token': token },
    session: answer.location ?? linkOf(answer.body),
    forbidden: new Set(),
    ...(change ? { mustChange: { account: change.args.find((value) => value.startsWith('/')) } } : {}),
  };
}
/** The message of DSP2065 for an account that may only change its password. */
const CHANGE_REQUIRED = 'PasswordChangeRequired';
/** Says of a refusal that the account must get a new password, where only the answer to the log-in has told it. */
function withChange(error: RedfishError, { mustChange }: Login): RedfishError {
  if (!mustChange || hasMessage(error, CHANGE_REQUIRED)) return error;
  const { status, messageIds } = error;
  const message = `${error.message} The password must be changed first${mustChange.account === undefined ? '' : ` (${mustChange.account})`}.`;
  return new RedfishError('status', message, { status, messageIds: [...messageIds, CHANGE_REQUIRED], cause: error });
}

/** Whether a service opens no session because there are too many. */
const hasTooMany = (error: RedfishError): boolean =>
  hasMessage(error, 'SessionLimitExceeded') ||
  hasMessage(error, 'CreateLimitReachedForResource') ||
  /(?:too many|limit|maximum)[^.]{0,100}sessions?\b|\bsessions?\b[^.]{0,100}(?:limit|maximum|exceeded)/i.test(error.message);

async function login(service: Service, state: TargetState, options: RedfishRequestOptions, now: () => number): Promise<Login> {
  const { target } = state;
  if (target.username === undefined) return { kind: 'none', headers: {}, forbidden: new Set() };
  if (target.authType === 'basic') return basic(target);
  try {
    const session = await openSession(service, options);
    state.hadSession = true;
    noteSuccess(state);
    return session;
  } catch (error) {
    // Without a usable session service, each request carries the password.
    const answered = error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
    if (refusesCredentials(error)) noteRefusal(state, now());
    if (target.authType !== 'auto' || !answered || state.blockedUntil > now()) throw error;
    const isFull = hasTooMany(error);
    if (state.hadSession && !isFull) throw error;
    if (isFull) state.basicUntil = now() + BASIC_MS;
    return basic(target);
  }
}

/** Whether a 403 or a page stands. Some services answer so when the session has ended, others when the account may not do this. */
function isFinal({ kind, forbidden }: Login, request: string, renewed: boolean): boolean {
  if (kind !== 'session' || forbidden.has(request)) return true;
  if (renewed && forbidden.size < MAX_FORBIDDEN) forbidden.add(request);
  return renewed;
}

/** The caller leaves with the error. Where nobody else waits for the login, its failure is not the next caller's. */
function leftAlone(state: TargetState, pending: Promise<Login>, error: unknown): unknown {
  void pending.catch(() => state.login === pending && (state.login = undefined));
  return error;
}

/** A request that failed. */
interface Refused {
  readonly state: TargetState;
  /** Absent: the log-in failed. */
  readonly proof: Login | undefined;
  /** Of the request. */
  readonly name: string;
  /** A new session has been opened for it. */
  readonly renewed: boolean;
}
/**
 * What a failure means: `final`; `again`, which may succeed with a new log-in, or with the same credentials once more, as some services (iLO)
 * refuse good credentials now and then; or `ended`, where the old session may still be open.
 */
function verdictOn(error: unknown, { state, proof, name, renewed }: Refused, now: () => number): 'final' | 'again' | 'ended' {
  const doubted = (): 'final' | 'again' => (state.hasWorked === true && state.blockedUntil <= now() ? 'again' : 'final');
  if (proof === undefined) return refusesCredentials(error) ? doubted() : 'final';
  if (isStatus(error, 401)) {
    if (proof.kind === 'session') return renewed ? 'final' : 'again';
    if (proof.kind === 'none' || !refusesCredentials(error)) return 'final';
    noteRefusal(state, now());
    return doubted();
  }
  const mayHaveEnded = isStatus(error, 403) || (error instanceof RedfishError && error.isPage);
  return mayHaveEnded && !isFinal(proof, name, renewed) ? 'ended' : 'final';
}
/** The connections to services by their certificate rules. */
function createConnections(connectTimeoutMs: number) {
  const agents = new Map<string, ReturnType<typeof connectionsFor>>();
  return {
    of(target: RedfishTarget): ReturnType<typeof connectionsFor> {
      const key = JSON.stringify([target.verifyCa, target.tls]);
      const connections = agents.get(key) ?? connectionsFor(target, connectTimeoutMs);
      agents.set(key, connections);
      // Certificates that cannot be read now may be readable next time.
      connections.catch(() => agents.delete(key));
      return connections;
    },
    async close(): Promise<void> {
      for (const connections of agents.values()) {
        const made = await connections.catch(() => undefined);
        await Promise.all([made?.agent.destroy(), made?.freshAgent.destroy()]);
      }
      agents.clear();
    },
  };
}

/** Ends the session of a log-in, if it has one. */
async function logout(state: Pick<TargetState, 'login' | 'service'>): Promise<void> {
  const ended = await state.login?.catch(() => undefined);
  const service = await state.service?.catch(() => undefined);
  if (ended?.session === undefined || service === undefined) return;
  const bounds = { headers: ended.headers, timeoutMs: LOGOUT_TIMEOUT };
  await exchange(service, 'DELETE', ended.session, bounds).catch(() => undefined);
}

/**
 * Logins and connections to services, shared by all callers. Each service gets few concurrent requests; others wait.
 * @param options.maxSessions most logins to keep; above, the least recently used one is ended. 0: none is kept
 */
export function createRedfishPool(
  options: { readonly maxSessions?: number; readonly connectTimeoutMs?: number; readonly now?: () => number } = {},
): RedfishPool {
  const { maxSessions = 1000, connectTimeoutMs = CONNECT_TIMEOUT, now = Date.now } = options;
  const connections = createConnections(connectTimeoutMs);
  const logins = new Map<string, TargetState>();
  /** Logouts in progress. */
  const logouts = new Set<Promise<void>>();
  let closed = false;

  const serviceOf = (state: TargetState): Promise<Service> => {
    const { target } = state;
    const service = (state.service ??= connections.of(target).then((made) => ({ ...made, target })));
    service.catch(() => (state.service = undefined));
    return service;
  };
  const startLogout = (state: Pick<TargetState, 'login' | 'service'>): void => {
    const done = logout(state).finally(() => logouts.delete(done));
    logouts.add(done);
  };
  /** The target's login, marked as used last. Logins in use are not ended. */
  const enter = (target: RedfishTarget): { readonly state: TargetState; readonly exit: () => void } => {
    const key = JSON.stringify(target);
    const state: TargetState = logins.get(key) ?? { target, users: 0, refusals: 0, blockedUntil: 0 };
    state.users++;
    logins.delete(key);
    logins.set(key, state);
    const exit = (): void => {
      state.users--;
      for (const [oldest, item] of logins) {
        if (logins.size <= maxSessions || closed) break;
        if (item.users > 0) continue;
        logins.delete(oldest);
        startLogout(item);
      }
    };
    return { state, exit };
  };

  /** Does the work with the headers of the target's login. @param name of the request, for what the account may not do */
  async function withLogin<T>(
    target: RedfishTarget,
    name: string,
    { timeoutMs, signal }: Omit<RedfishRequestOptions, 'body' | 'headers'>,
    work: (service: Service, headers: Login['headers']) => Promise<T>,
  ): Promise<T> {
    if (closed) throw new RedfishError('closed', 'the Redfish client is closed');
    const { state, exit } = enter(target);
    try {
      const service = await serviceOf(state);
      for (let renewed = false; ;) {
        checkRest(state, now());
        if ((state.basicUntil ?? Infinity) < now()) [state.login, state.basicUntil] = [undefined, undefined];
        // The login goes on when the caller leaves: other requests may wait for it.
        const pending = (state.login ??= login(service, state, { timeoutMs }, now));
        let proof: Login | undefined;
        try {
          proof = await unlessAborted(pending, signal);
          const result = await work(service, proof.headers);
          // Services answer for their root without a log-in.
          if (proof.kind === 'basic' && name !== `GET ${rootPath(target)}`) noteSuccess(state);
          return result;
        } catch (error) {
          if (!proof && signal?.aborted) throw leftAlone(state, pending, error);
          const verdict = verdictOn(error, { state, proof, name, renewed }, now);
          if (state.login === pending) {
            if (verdict === 'ended') startLogout({ login: pending, service: state.service });
            // The session has ended, or the password may be right next time.
            if (verdict !== 'final' || proof === undefined || isStatus(error, 401)) state.login = undefined;
          }
          if (verdict === 'final')
            throw proof && error instanceof RedfishError && isStatus(error, 401, 403) ? withChange(error, proof) : error;
          if (proof?.kind === 'session') renewed = true;
        }
      }
    } finally {
      exit();
    }
  }

  return {
    request: (target, method, path, requestOptions) =>
      withLogin(target, `${method} ${path}`, requestOptions, (service, headers) =>
        exchange(service, method, path, { ...requestOptions, headers: { ...requestOptions.headers, ...headers } }),
      ),
    openWebSocket: (target, path, socketOptions) =>
      withLogin(target, `WebSocket ${path}`, socketOptions, (service, headers) =>
        openWebSocket(service, path, { ...socketOptions, headers }),
      ),
    close: async () => {
      closed = true;
      await Promise.all([...[...logins.values()].map(logout), ...logouts]);
      logins.clear();
      await connections.close();
    },
  };
}
