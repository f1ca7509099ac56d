/** Redfish client (DSP0266): kept connections and logins, session or basic authentication, errors as values. */
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
  /** Ends the sessions and the connections. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT = 30_000;
/** What a session that is ended at the close of the client may take. */
const LOGOUT_TIMEOUT = 2000;

/** How requests to one target prove who they are. */
interface Login {
  readonly kind: 'none' | 'basic' | 'session';
  readonly headers: Readonly<Record<string, string>>;
  /** The session's own path, to end it. */
  readonly session?: string | undefined;
}
interface Kept {
  readonly target: RedfishTarget;
  login?: Promise<Login> | undefined;
  /** A session was had: then basic authentication is no way out any more. */
  hadSession?: true;
  users: number;
}

const basic = ({ username = '', password = '' }: RedfishTarget): Login => ({
  kind: 'basic',
  headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
});

/** Makes a session (DSP0266 §13.3.4), at the place that the service root names. */
async function openSession(agent: Agent, target: RedfishTarget, options: RedfishRequestOptions): Promise<Login> {
  // Some services show not even their root to strangers.
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

async function login(agent: Agent, it: Kept, options: RedfishRequestOptions): Promise<Login> {
  const { target } = it;
  if (target.username === undefined) return { kind: 'none', headers: {} };
  if (target.authType === 'basic') return basic(target);
  try {
    const session = await openSession(agent, target, options);
    it.hadSession = true;
    return session;
  } catch (error) {
    // No session service, or one that we do not understand: then each request carries the password.
    const answered = error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
    if (target.authType === 'auto' && answered && !it.hadSession) return basic(target);
    throw error;
  }
}

/**
 * Logins and connections to services, shared by all who ask. Each service gets a few requests at once at most; more wait their turn.
 * @param options.maxSessions logins kept; above, the one that is oldest in use is ended. 0: none is kept
 */
export function createRedfishPool(options: { readonly maxSessions?: number; readonly connectTimeoutMs?: number } = {}): RedfishPool {
  const { maxSessions = 1000, connectTimeoutMs = CONNECT_TIMEOUT } = options;
  const agents = new Map<string, Promise<Agent>>();
  const logins = new Map<string, Kept>();
  /** Logouts on their way. */
  const leaving = new Set<Promise<void>>();
  let closed = false;

  const agentOf = (target: RedfishTarget): Promise<Agent> => {
    const key = JSON.stringify([target.verifyCa, target.tls]);
    const made = agents.get(key) ?? agentFor(target, connectTimeoutMs);
    agents.set(key, made);
    // Authorities that could not be read may be there next time.
    made.catch(() => agents.delete(key));
    return made;
  };
  const logout = async ({ target, login: pending }: Kept): Promise<void> => {
    const it = await pending?.catch(() => undefined);
    if (it?.session === undefined) return;
    const bounds = { headers: it.headers, timeoutMs: LOGOUT_TIMEOUT };
    await exchange(await agentOf(target), target, 'DELETE', it.session, bounds).catch(() => undefined);
  };
  const leave = (it: Kept): void => {
    const done = logout(it).finally(() => leaving.delete(done));
    leaving.add(done);
  };
  /** The target's login, as the one used last; those in use stay until they are not. */
  const enter = (target: RedfishTarget): { readonly it: Kept; readonly exit: () => void } => {
    const key = JSON.stringify(target);
    const it: Kept = logins.get(key) ?? { target, users: 0 };
    it.users++;
    logins.delete(key);
    logins.set(key, it);
    const exit = (): void => {
      it.users--;
      for (const [oldest, one] of logins) {
        if (logins.size <= maxSessions || closed) break;
        if (one.users > 0) continue;
        logins.delete(oldest);
        leave(one);
      }
    };
    return { it, exit };
  };

  return {
    request: async (target, method, path, asked) => {
      if (closed) throw new RedfishError('closed', 'the Redfish client is closed');
      const agent = await agentOf(target);
      const { it, exit } = enter(target);
      try {
        for (let renewed = false; ; renewed = true) {
          // Without the caller's signal: others may wait for the same login.
          const pending = (it.login ??= login(agent, it, { timeoutMs: asked.timeoutMs }));
          const proof = await pending.catch((error: unknown) => {
            if (it.login === pending) it.login = undefined;
            throw error;
          });
          try {
            return await exchange(agent, target, method, path, { ...asked, headers: { ...asked.headers, ...proof.headers } });
          } catch (error) {
            if (!isStatus(error, 401)) throw error;
            // A session that ended, or a password that may be right next time.
            if (it.login === pending) it.login = undefined;
            if (proof.kind !== 'session' || renewed) throw error;
          }
        }
      } finally {
        exit();
      }
    },
    close: async () => {
      closed = true;
      await Promise.all([...[...logins.values()].map(logout), ...leaving]);
      logins.clear();
      await Promise.all([...agents.values()].map(async (agent) => (await agent.catch(() => undefined))?.destroy()));
      agents.clear();
    },
  };
}
