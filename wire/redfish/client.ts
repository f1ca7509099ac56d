/** Redfish client (DSP0266): reuses connections and logins; session or basic authentication. */
import type { Duplex } from 'node:stream';
import { RedfishError, isStatus } from './errors';
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
}
interface TargetState {
  readonly target: RedfishTarget;
  service?: Promise<Service> | undefined;
  login?: Promise<Login> | undefined;
  /** A session was opened once. After that, a failure does not lead to basic authentication. */
  hadSession?: true;
  users: number;
}

const basic = ({ username = '', password = '' }: RedfishTarget): Login => ({
  kind: 'basic',
  forbidden: new Set(),
  headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
});

/** Opens a session (DSP0266 §13.3.4) at the path in the service root. */
async function openSession(service: Service, options: RedfishRequestOptions): Promise<Login> {
  const { target } = service;
  // Some services require authentication even for their root.
  const root = await exchange(service, 'GET', rootPath(target), options).catch((error: unknown) => {
    if (isStatus(error)) return undefined;
    throw error;
  });
  const sessions = linkOf(member(root?.body, 'Links', 'Sessions')) ?? `${rootPath(target)}SessionService/Sessions`;
  const body = { UserName: target.username ?? '', Password: target.password ?? '' };
  const answer = await exchange(service, 'POST', sessions, { ...options, body, repeatable: true });
  const token = answer.headers['x-auth-token'];
  if (token === undefined || !TOKEN.test(token))
    throw new RedfishError('protocol', `${target.address} opened a session without a token that can be sent`);
  return { kind: 'session', headers: { 'x-auth-token': token }, session: answer.location ?? linkOf(answer.body), forbidden: new Set() };
}

async function login(service: Service, state: TargetState, options: RedfishRequestOptions): Promise<Login> {
  const { target } = state;
  if (target.username === undefined) return { kind: 'none', headers: {}, forbidden: new Set() };
  if (target.authType === 'basic') return basic(target);
  try {
    const session = await openSession(service, options);
    state.hadSession = true;
    return session;
  } catch (error) {
    // Without a usable session service, each request carries the password.
    const answered = error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
    if (target.authType === 'auto' && answered && !state.hadSession) return basic(target);
    throw error;
  }
}

/** Whether a 403 stands. Some services answer so when the session has ended, others when the account may not do this. */
function isFinal({ kind, forbidden }: Login, request: string, renewed: boolean): boolean {
  if (kind !== 'session' || forbidden.has(request)) return true;
  if (renewed && forbidden.size < MAX_FORBIDDEN) forbidden.add(request);
  return renewed;
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

/**
 * Logins and connections to services, shared by all callers. Each service gets few concurrent requests; others wait.
 * @param options.maxSessions most logins to keep; above, the least recently used one is ended. 0: none is kept
 */
export function createRedfishPool(options: { readonly maxSessions?: number; readonly connectTimeoutMs?: number } = {}): RedfishPool {
  const { maxSessions = 1000, connectTimeoutMs = CONNECT_TIMEOUT } = options;
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
  const logout = async (state: Pick<TargetState, 'login' | 'service'>): Promise<void> => {
    const ended = await state.login?.catch(() => undefined);
    const service = await state.service?.catch(() => undefined);
    if (ended?.session === undefined || service === undefined) return;
    const bounds = { headers: ended.headers, timeoutMs: LOGOUT_TIMEOUT };
    await exchange(service, 'DELETE', ended.session, bounds).catch(() => undefined);
  };
  const startLogout = (state: Pick<TargetState, 'login' | 'service'>): void => {
    const done = logout(state).finally(() => logouts.delete(done));
    logouts.add(done);
  };
  /** The target's login, marked as used last. Logins in use are not ended. */
  const enter = (target: RedfishTarget): { readonly state: TargetState; readonly exit: () => void } => {
    const key = JSON.stringify(target);
    const state: TargetState = logins.get(key) ?? { target, users: 0 };
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
    timeoutMs: number,
    work: (service: Service, headers: Login['headers']) => Promise<T>,
  ): Promise<T> {
    if (closed) throw new RedfishError('closed', 'the Redfish client is closed');
    const { state, exit } = enter(target);
    try {
      const service = await serviceOf(state);
      for (let renewed = false; ; renewed = true) {
        // Without the caller's signal: other requests may wait for the same login.
        const pending = (state.login ??= login(service, state, { timeoutMs }));
        const proof = await pending.catch((error: unknown) => {
          if (state.login === pending) state.login = undefined;
          throw error;
        });
        try {
          return await work(service, proof.headers);
        } catch (error) {
          if (!isStatus(error, 401, 403)) throw error;
          if (error.status === 403 && isFinal(proof, name, renewed)) throw error;
          if (error.status === 403 && state.login === pending) startLogout({ login: pending, service: state.service });
          // The session has ended, or the password may be right next time.
          if (state.login === pending) state.login = undefined;
          if (proof.kind !== 'session' || renewed) throw error;
        }
      }
    } finally {
      exit();
    }
  }

  return {
    request: (target, method, path, requestOptions) =>
      withLogin(target, `${method} ${path}`, requestOptions.timeoutMs, (service, headers) =>
        exchange(service, method, path, { ...requestOptions, headers: { ...requestOptions.headers, ...headers } }),
      ),
    openWebSocket: (target, path, socketOptions) =>
      withLogin(target, `WebSocket ${path}`, socketOptions.timeoutMs, (service, headers) =>
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
