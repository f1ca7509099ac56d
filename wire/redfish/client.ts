/** Redfish client (DSP0266): reuses connections and logins; session or basic authentication. */
import type { Agent } from 'undici';
import { RedfishError, isStatus } from './errors';
import { linkOf, member } from './json';
import {
  agentFor,
  exchange,
  rootPath,
  type RedfishAnswer,
  type RedfishMethod,
  type RedfishRequestOptions,
  type RedfishTarget,
} from './transport';

export interface RedfishPool {
  /**
   * @param path absolute on the service's host, as links (`@odata.id`) are
   * @throws RedfishError for an unreachable service or a status ≥ 400 (with the message of its ExtendedInfo); the signal's reason
   */
  request(target: RedfishTarget, method: RedfishMethod, path: string, options: RedfishRequestOptions): Promise<RedfishAnswer>;
  /** Ends the sessions and closes the connections. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT = 30_000;
/** Milliseconds for the request that ends a session. */
const LOGOUT_TIMEOUT = 2000;

/** How requests to one target authenticate. */
interface Login {
  readonly kind: 'none' | 'basic' | 'session';
  readonly headers: Readonly<Record<string, string>>;
  /** The session's own path, for ending it. */
  readonly session?: string | undefined;
}
interface TargetState {
  readonly target: RedfishTarget;
  login?: Promise<Login> | undefined;
  /** A session was opened once. After that, a failure does not lead to basic authentication. */
  hadSession?: true;
  users: number;
}

const basic = ({ username = '', password = '' }: RedfishTarget): Login => ({
  kind: 'basic',
  headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
});

/** Opens a session (DSP0266 §13.3.4) at the path in the service root. */
async function openSession(agent: Agent, target: RedfishTarget, options: RedfishRequestOptions): Promise<Login> {
  // Some services require authentication even for their root.
  const root = await exchange(agent, target, 'GET', rootPath(target), options).catch((error: unknown) => {
    if (isStatus(error)) return undefined;
    throw error;
  });
  const sessions = linkOf(member(root?.body, 'Links', 'Sessions')) ?? `${rootPath(target)}SessionService/Sessions`;
  const body = { UserName: target.username ?? '', Password: target.password ?? '' };
  const answer = await exchange(agent, target, 'POST', sessions, { ...options, body });
  const token = answer.headers['x-auth-token'];
  if (token === undefined) throw new RedfishError('protocol', `${target.address} opened a session without a token`);
  return { kind: 'session', headers: { 'x-auth-token': token }, session: answer.location ?? linkOf(answer.body) };
}

async function login(agent: Agent, state: TargetState, options: RedfishRequestOptions): Promise<Login> {
  const { target } = state;
  if (target.username === undefined) return { kind: 'none', headers: {} };
  if (target.authType === 'basic') return basic(target);
  try {
    const session = await openSession(agent, target, options);
    state.hadSession = true;
    return session;
  } catch (error) {
    // Without a usable session service, each request carries the password.
    const answered = error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
    if (target.authType === 'auto' && answered && !state.hadSession) return basic(target);
    throw error;
  }
}

/**
 * Logins and connections to services, shared by all callers. Each service gets few concurrent requests; others wait.
 * @param options.maxSessions most logins to keep; above, the least recently used one is ended. 0: none is kept
 */
export function createRedfishPool(options: { readonly maxSessions?: number; readonly connectTimeoutMs?: number } = {}): RedfishPool {
  const { maxSessions = 1000, connectTimeoutMs = CONNECT_TIMEOUT } = options;
  const agents = new Map<string, Promise<Agent>>();
  const logins = new Map<string, TargetState>();
  /** Logouts in progress. */
  const logouts = new Set<Promise<void>>();
  let closed = false;

  const agentOf = (target: RedfishTarget): Promise<Agent> => {
    const key = JSON.stringify([target.verifyCa, target.tls]);
    const agent = agents.get(key) ?? agentFor(target, connectTimeoutMs);
    agents.set(key, agent);
    // Certificates that cannot be read now may be readable next time.
    agent.catch(() => agents.delete(key));
    return agent;
  };
  const logout = async ({ target, login: pending }: TargetState): Promise<void> => {
    const ended = await pending?.catch(() => undefined);
    if (ended?.session === undefined) return;
    const bounds = { headers: ended.headers, timeoutMs: LOGOUT_TIMEOUT };
    await exchange(await agentOf(target), target, 'DELETE', ended.session, bounds).catch(() => undefined);
  };
  const startLogout = (state: TargetState): void => {
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
      for (const [oldest, one] of logins) {
        if (logins.size <= maxSessions || closed) break;
        if (one.users > 0) continue;
        logins.delete(oldest);
        startLogout(one);
      }
    };
    return { state, exit };
  };

  return {
    request: async (target, method, path, requestOptions) => {
      if (closed) throw new RedfishError('closed', 'the Redfish client is closed');
      const agent = await agentOf(target);
      const { state, exit } = enter(target);
      try {
        for (let renewed = false; ; renewed = true) {
          // Without the caller's signal: other requests may wait for the same login.
          const pending = (state.login ??= login(agent, state, { timeoutMs: requestOptions.timeoutMs }));
          const proof = await pending.catch((error: unknown) => {
            if (state.login === pending) state.login = undefined;
            throw error;
          });
          try {
            return await exchange(agent, target, method, path, {
              ...requestOptions,
              headers: { ...requestOptions.headers, ...proof.headers },
            });
          } catch (error) {
            if (!isStatus(error, 401)) throw error;
            // The session has ended, or the password may be right next time.
            if (state.login === pending) state.login = undefined;
            if (proof.kind !== 'session' || renewed) throw error;
          }
        }
      } finally {
        exit();
      }
    },
    close: async () => {
      closed = true;
      await Promise.all([...[...logins.values()].map(logout), ...logouts]);
      logins.clear();
      await Promise.all([...agents.values()].map(async (agent) => (await agent.catch(() => undefined))?.destroy()));
      agents.clear();
    },
  };
}
