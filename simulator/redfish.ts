/** A Redfish service (DSP0266) in front of simulated machines: authentication, sessions, entity tags, errors. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { readJson, sendJson, listenOn } from './http';
import { collection, patchSystem, resetSystem, ROOT, session, show, type Refusal, type Shown, type System } from './redfish-resources';

export interface RedfishEndpoint {
  readonly port: number;
  close(): Promise<void>;
}
export interface RedfishEndpointOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly machines: readonly System[];
  /** What stands between the network and the service: faults. */
  readonly wrap?: (listener: RequestListener) => RequestListener;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
}
interface Answer {
  readonly status: number;
  readonly body?: Shown;
  readonly headers?: Readonly<Record<string, string>>;
}
interface Session {
  readonly id: string;
  /** Milliseconds since the epoch. */
  used: number;
}

const MAX_BODY = 64 * 1024;
const MAX_SESSIONS = 64;
const SESSION_MS = 1_800_000;
const SESSIONS = '/SessionService/Sessions';

/** Rejects when the port is taken. */
export async function serveRedfish(options: RedfishEndpointOptions): Promise<RedfishEndpoint> {
  const { username, password, clock, log, random } = options;
  const machines = new Map(options.machines.map((machine) => [machine.name, machine]));
  /** Token → session. */
  const sessions = new Map<string, Session>();

  const knows = (request: IncomingMessage): boolean => {
    const token = request.headers['x-auth-token'];
    const found = typeof token === 'string' ? sessions.get(token) : undefined;
    if (found) {
      if (clock.now() - found.used > SESSION_MS) sessions.delete(token as string);
      else {
        found.used = clock.now();
        return true;
      }
    }
    const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
    return basic !== undefined && Buffer.from(basic, 'base64').toString() === `${username}:${password}`;
  };

  const login = (body: unknown): Answer => {
    const { UserName: user, Password: secret } = (body ?? {}) as { UserName?: unknown; Password?: unknown };
    if (user !== username || secret !== password)
      return refused({ status: 401, message: 'NoValidSession', text: 'Wrong user name or password.' });
    if (sessions.size >= MAX_SESSIONS) sessions.delete(sessions.keys().next().value!);
    const [id, token] = [random(8).toString('hex'), random(16).toString('hex')];
    sessions.set(token, { id, used: clock.now() });
    return { status: 201, body: session(id, username), headers: { 'x-auth-token': token, location: `${ROOT}${SESSIONS}/${id}` } };
  };
  const sessionAnswer = (method: string, path: string): Answer | undefined => {
    const ids = [...sessions.values()].map(({ id }) => id);
    if (path === SESSIONS) return method === 'GET' ? { status: 200, body: collection(SESSIONS, 'Session', ids) } : undefined;
    const id = path.slice(SESSIONS.length + 1);
    if (!ids.includes(id)) return missing(path);
    if (method === 'GET') return { status: 200, body: session(id, username) };
    if (method !== 'DELETE') return undefined;
    for (const [token, one] of sessions) if (one.id === id) sessions.delete(token);
    return { status: 204 };
  };

  const changed = (refusal: Refusal | undefined): Answer => (refusal ? refused(refusal) : { status: 204 });
  /** Undefined: not with this method. */
  const answer = async (request: IncomingMessage, path: string): Promise<Answer | undefined> => {
    const method = request.method === 'HEAD' ? 'GET' : request.method!;
    const isLogin = method === 'POST' && path === SESSIONS;
    // DSP0266 §13.3.2: the service root and the making of a session need no authentication.
    if (!isLogin && !(method === 'GET' && path === '') && !knows(request))
      return refused({ status: 401, message: 'NoValidSession', text: 'There is no valid session established with the implementation.' });
    let body: unknown;
    try {
      body = method === 'GET' || method === 'DELETE' ? undefined : await readJson(request, MAX_BODY);
    } catch (error) {
      return refused({ status: 400, message: 'MalformedJSON', text: `The request body is not valid JSON: ${reasonOf(error)}` });
    }
    if (isLogin) return login(body);
    if (path.startsWith(SESSIONS)) return sessionAnswer(method, path);
    const [, name, action] = /^\/Systems\/([^/]+)(\/Actions\/ComputerSystem\.Reset)?$/.exec(path) ?? [];
    const machine = name === undefined ? undefined : machines.get(name);
    if (machine && action !== undefined) return method === 'POST' ? changed(await resetSystem(machine, body)) : undefined;
    const shown = show(path, machines);
    if (!shown) return missing(path);
    const etag = etagOf(shown);
    if (method === 'GET') return { status: 200, body: shown, headers: { etag } };
    if (method !== 'PATCH' || !machine) return undefined;
    const wanted = request.headers['if-match'];
    if (wanted !== undefined && wanted !== '*' && wanted !== etag)
      return refused({
        status: 412,
        message: 'PreconditionFailed',
        text: 'The ETag supplied did not match the current ETag of the resource.',
      });
    return changed(patchSystem(machine, body));
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?')[0]!.replace(/\/+$/, '');
    try {
      if (path === '/redfish') {
        sendJson(response, 200, { v1: `${ROOT}/` });
        return;
      }
      const inside = path === ROOT || path.startsWith(`${ROOT}/`);
      const found = inside ? await answer(request, path.slice(ROOT.length)) : missing(path);
      const { status, body, headers } =
        found ?? refused({ status: 405, message: 'OperationNotAllowed', text: `${request.method!} is not allowed here.` });
      sendJson(response, status, body, { 'odata-version': '4.0', 'cache-control': 'no-store', ...headers });
    } catch (error) {
      log.warn('Redfish request failed', { path, error: reasonOf(error) });
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, refused({ status: 500, message: 'InternalError', text: 'The request failed.' }).body);
    }
  };

  const listener: RequestListener = (request, response) => void handle(request, response);
  const server = createServer(options.wrap?.(listener) ?? listener);
  return listenOn(server, options.port, options.host);
}

/** The form of errors: DSP0266 §8.6. */
const refused = ({ status, message, text }: Refusal): Answer => ({
  status,
  body: {
    error: {
      code: `Base.1.8.${message}`,
      message: text,
      '@Message.ExtendedInfo': [
        {
          '@odata.type': '#Message.v1_1_1.Message',
          MessageId: `Base.1.8.${message}`,
          Message: text,
          MessageSeverity: 'Critical',
          Resolution: 'None',
        },
      ],
    },
  },
});
const missing = (path: string): Answer =>
  refused({ status: 404, message: 'ResourceMissingAtURI', text: `The resource at the URI ${path.slice(0, 200)} was not found.` });
const etagOf = (shown: Shown): string => `"${createHash('sha256').update(JSON.stringify(shown)).digest('hex').slice(0, 16)}"`;
