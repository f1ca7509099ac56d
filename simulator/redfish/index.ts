/** The Redfish service (DSP0266) of simulated machines: authentication, methods, ETags, paging, errors. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import { backgroundWork } from '../background';
import { listenOn, openHttpClient, readJson, sendJson } from '../http';
import type { FaultBox } from '../bmc/faults';
import { createRestart, type Restart } from '../bmc/restart';
import { withHabits, type Asked, type SentFile, type Maker, type Next } from './protocol/habits';
import { refuse } from './protocol/messages';
import { ROOT, link, type ServiceAnswer, type Service, type ResourceBody, type System } from './protocol/routes';
import { hasPrivilege } from './protocol/privileges';
import { announceChange, forgetSubscriptions } from './resources/events';
import { authenticate } from './resources/sessions';
import { matchRoute, type MatchedRoute } from './table';
import { SCHEMAS } from './protocol/versions';
import { withoutEndSlashes } from '../../wire/urls';

export type { System } from './protocol/routes';
interface RedfishEndpoint {
  readonly port: number;
  close(): Promise<void>;
}
interface RedfishEndpointOptions extends Pick<Service, 'username' | 'password' | 'log' | 'clock' | 'random'> {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly machines: readonly System[];
  /** Changes of them are events; absent: the BMC never has a fault. */
  readonly faults?: FaultBox;
  /** Wraps the service's listener, to inject faults. */
  readonly wrap?: (listener: RequestListener) => RequestListener;
  /** Shared with the BMC's other protocols; absent: there is no other protocol. */
  readonly restart?: Restart;
  /** The HTTP client; absent: the service opens its own. */
  readonly http?: Service['http'];
  /** PEM; absent: the service uses http. */
  readonly tls?: { readonly certificate: string; readonly privateKey: string };
  /** Milliseconds that a task runs; absent: 3000. */
  readonly taskMs?: number;
  /** The habits of the service, which then has one machine; absent: it deviates from no standard. */
  readonly maker?: Maker | undefined;
}

const MAX_BODY = 64 * 1024;
/** The most members of a collection in one answer. Members@odata.nextLink leads to the next page. */
const PAGE = 500;
const HEADERS = { 'odata-version': '4.0', 'cache-control': 'no-store' } as const;
const METHODS = ['get', 'patch', 'post', 'delete'] as const;
const allowedAt = (route: MatchedRoute['route']): string =>
  METHODS.filter((method) => route[method] ?? (method === 'get' && route.answer))
    .flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
    .join(', ');

/** Rejects when the port is taken. */
export async function serveRedfish(options: RedfishEndpointOptions): Promise<RedfishEndpoint> {
  const ended = new AbortController();
  const { username, password, log, clock, random } = options;
  const own = options.http ? undefined : openHttpClient();
  const http = options.http ?? own!;
  const work = backgroundWork((error) => log.warn('Redfish: work failed', { error: reasonOf(error) }));
  const restart = options.restart ?? createRestart(clock);
  const service: Service = {
    username,
    password,
    log,
    clock,
    random,
    systems: new Map(options.machines.map((machine) => [machine.name, machine])),
    sessions: new Map(),
    settings: { sessionSeconds: 1800, taskMs: options.taskMs ?? 3000 },
    background: (promise) => work.start(promise, ended.signal),
    http,
    restart,
    faults: options.faults,
    signal: ended.signal,
    ...(options.maker && { makerRoutes: options.maker.habits.flatMap(({ routes = [] }) => routes) }),
  };
  const standard: Next = (asked) => answer(service, asked);
  const [machine] = options.machines;
  const answers = options.maker && machine ? withHabits(options.maker, service, machine, standard) : standard;
  restart.onBegin(() => {
    service.sessions.clear();
    if (options.faults?.now.events_forgotten) forgetSubscriptions(service);
  });
  options.faults?.onChange?.((before, after) => {
    if (!ended.signal.aborted) announceChange(service, before, after);
  });
  const listener: RequestListener = (request, response) => void handle(service, answers, request, response);
  const { tls } = options;
  const wrapped = options.wrap?.(listener) ?? listener;
  const unlessAway: RequestListener = (request, response) => {
    if (restart.isAway()) request.socket.destroy();
    else wrapped(request, response);
  };
  const server = tls ? createTlsServer({ cert: tls.certificate, key: tls.privateKey }, unlessAway) : createServer(unlessAway);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Node rejects an unknown method without a request, and DSP0266 §7.1 requires 405 for it.
    const status = error.code === 'HPE_INVALID_METHOD' ? '405 Method Not Allowed' : '400 Bad Request';
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nallow: GET, HEAD\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    else socket.destroy();
  });
  try {
    const { port, close } = await listenOn(server, options.port, options.host);
    return {
      port,
      close: async () => {
        ended.abort(new Error('the BMC is closed'));
        await close();
        await work.ended();
        await own?.close();
      },
    };
  } catch (error) {
    await own?.close();
    throw error;
  }
}

/** Requests so far of each connection to a service with habits. */
const REQUESTS = new WeakMap<IncomingMessage['socket'], number>();
function countOn(socket: IncomingMessage['socket']): number {
  const counted = (REQUESTS.get(socket) ?? 0) + 1;
  REQUESTS.set(socket, counted);
  return counted;
}
/** Bytes of a file that habits look at, and of the whole file. */
const FILE_HEAD = 64 << 10;
const MAX_FILE = 8 * 2 ** 30;
async function readFile(request: IncomingMessage): Promise<SentFile> {
  let head = Buffer.alloc(0);
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_FILE) throw new Error('the file is too long');
    if (head.length < FILE_HEAD) head = Buffer.concat([head, part]).subarray(0, FILE_HEAD);
  }
  return { head, size };
}
async function handle(service: Service, answers: Next, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bmc');
  const path = withoutEndSlashes(pathname);
  const { socket, headers: sent } = request;
  let read: Promise<unknown> | undefined;
  const asked: Asked = {
    method: request.method === 'HEAD' ? 'GET' : request.method!,
    // A POST to the members of a collection is a POST to the collection (DSP0266 §7.9).
    path: request.method === 'POST' ? path.replace(/\/Members$/, '') : path,
    query: searchParams,
    headers: sent,
    body: () => (read ??= readJson(request, MAX_BODY)),
    file: () => readFile(request),
    onConnection: service.makerRoutes ? countOn(socket) : 1,
  };
  try {
    if (path === '/redfish') {
      sendJson(response, 200, { v1: `${ROOT}/` }, HEADERS);
      return;
    }
    const { status, body, headers: more, text, bytes } = await answers(asked);
    const headers = { ...HEADERS, ...describedBy(body), ...LOGIN[status], ...more };
    if (bytes !== undefined) socket.end(bytes, 'latin1');
    else if (text !== undefined) response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) }).end(text);
    else sendJson(response, status, body, headers);
  } catch (error) {
    service.log.warn('Redfish request failed', { path, error: reasonOf(error) });
    if (response.headersSent) response.destroy();
    else sendJson(response, 500, refuse('InternalError').body, HEADERS);
  }
}

const LOGIN: Readonly<Record<number, Readonly<Record<string, string>>>> = { 401: { 'www-authenticate': 'Basic realm="Redfish"' } };
/** The Link header with the schema of a body (DSP0266 §7.2.5). */
function describedBy(body: ResourceBody | undefined): Readonly<Record<string, string>> {
  const name = body?.['@odata.type'];
  const [, type] = (typeof name === 'string' ? /^#(.+)\.\w+$/.exec(name) : undefined) ?? [];
  return type === undefined ? {} : { link: `<${SCHEMAS}/${type}.json>; rel=describedby` };
}

async function answer(service: Service, asked: Asked): Promise<ServiceAnswer> {
  const { path } = asked;
  const found = path === ROOT || path.startsWith(`${ROOT}/`) ? matchRoute(service, path.slice(ROOT.length)) : undefined;
  const answered = await answerOf(service, asked, found);
  return found ? { ...answered, headers: { allow: allowedAt(found.route), ...answered.headers } } : answered;
}
async function answerOf(service: Service, asked: Asked, found: MatchedRoute | undefined): Promise<ServiceAnswer> {
  const { path, query, headers } = asked;
  const method = asked.method.toLowerCase();
  // DSP0266 §13.3.2: the service root and the creation of a session need no login.
  const isOpen =
    found && ((method === 'get' && (found.route.path === '' || found.route.public)) || (method === 'post' && found.route.open));
  const account = isOpen ? undefined : authenticate(service, asked);
  if (!isOpen && !account) return refuse('NoValidSession');
  const version = headers['odata-version'];
  if (version !== undefined && version !== '4.0') return refuse('PreconditionFailed');
  if (!found) return refuse('ResourceMissingAtURI', path);
  const { route, at } = found;
  if (method === 'get' && route.answer) return route.answer(at);
  const body = route.get?.(at);
  if (route.get && !body) return refuse('ResourceMissingAtURI', path);
  if (method === 'get' && body) return page(body, at.path, query) ?? { status: 200, body, headers: { etag: etagOf(body) } };
  const run = method === 'patch' || method === 'post' || method === 'delete' ? route[method] : undefined;
  if (!run) return refuse('OperationNotAllowed');
  if (account && !hasPrivilege(account.role, route.needs ?? 'ConfigureComponents')) return refuse('InsufficientPrivilege');
  const answered = await withBody(asked, (sent) => {
    // Checked after the body has arrived, so that of two concurrent requests with the same ETag the second one fails.
    const expected = headers['if-match'];
    const now = expected === undefined || expected === '*' ? undefined : route.get?.(at);
    return now &&
      !expected!
        .split(',')
        .map((tag) => tag.trim())
        .includes(etagOf(now))
      ? refuse('PreconditionFailed')
      : run(at, sent);
  });
  return answered ?? { status: 204 };
}

/** Calls `run` with the request's body, which must be an object. No body counts as an empty object. */
async function withBody(
  asked: Asked,
  run: (body: ResourceBody) => ServiceAnswer | undefined | Promise<ServiceAnswer | undefined>,
): Promise<ServiceAnswer | undefined> {
  let body: unknown;
  try {
    body = (await asked.body()) ?? {};
  } catch {
    return refuse('MalformedJSON');
  }
  return isObject(body) ? run(body) : refuse('UnrecognizedRequestBody');
}

/** A page of a collection (DSP0266 §7.3), by $top and $skip. Undefined: `whole` is not a collection. */
function page(whole: ResourceBody, path: string, query: URLSearchParams): ServiceAnswer | undefined {
  const names = [...query.keys()];
  const unknown = names.find((name) => name.startsWith('$') && name !== '$top' && name !== '$skip');
  if (unknown !== undefined) return refuse('QueryNotSupported');
  const all = whole['Members'];
  if (!Array.isArray(all)) return names.some((name) => name.startsWith('$')) ? refuse('QueryNotSupported') : undefined;
  const [top, skip] = [query.get('$top') ?? PAGE, query.get('$skip') ?? 0].map(Number) as [number, number];
  for (const [value, name] of [
    [top, '$top'],
    [skip, '$skip'],
  ] as const) {
    if (Number.isNaN(value)) return refuse('QueryParameterValueTypeError', query.get(name)!, name);
    if (!Number.isInteger(value) || value < 0) return refuse('QueryParameterOutOfRange', query.get(name)!, name, '0 and more');
  }
  const size = Math.min(top, PAGE);
  const members = all.slice(skip, skip + size) as readonly ResourceBody[];
  const rest = all.length > skip + size && size > 0;
  const next = `${path}?$skip=${skip + size}${query.has('$top') ? `&$top=${top}` : ''}`;
  const body = { ...whole, Members: members, 'Members@odata.nextLink': rest ? link(next)['@odata.id'] : undefined };
  return { status: 200, body, headers: { etag: etagOf(body) } };
}

const etagOf = (body: ResourceBody): string => `"${createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16)}"`;
