/**
 * The API's front door: version negotiation, request ids, limits, routing, and the one place where a fault becomes an answer.
 * Handlers see neither Express nor sockets (routes.ts).
 */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import express from 'express';
import type { ConductorApi } from '../conductor/conductor';
import type { Clock } from '../model/clock';
import { Fault, reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import type { Metrics } from '../model/metrics';
import { silentNotifier, type Notifier } from '../model/notifications';
import { originFields, type Origin } from '../model/origin';
import { HEADER, MAXIMUM, MINIMUM, negotiate } from '../model/versions';
import type { Store } from '../store/store';
import { accepts } from './http/accept';
import { createCurrentState } from './http/current-state';
import { parseArguments, refuseByGate, refuseNewer } from './schema/arguments';
import { httpBasic } from './auth/http-basic';
import { noauth } from './auth/noauth';
import { limitFor, parseBody, readBody } from './http/body';
import { createCors } from './http/cors';
import { loadDocument, type Document } from './schema/document';
import { explain, Refusal, Unacceptable, Unauthenticated, Unread } from './http/errors';
import { baseOf } from './http/forwarded';
import { createEventFeed } from './resource/event-feed';
import { createFragments } from './resource/fragments';
import { createHardwarePushes } from './resource/hardware-pushes';
import { handlers } from './handlers';
import { measureNodes } from './http/node-counts';
import type { ApiOptions } from './http/options';
import { createProbes, sendProbe, type Probes } from './http/probes';
import { originOf, reportRequest } from './http/request-log';
import { createValidators, demand } from './schema/schema';
import { checkHandlers, matcher, type Answer, type Matcher, type ApiContext, type Caller } from './resource/routes';
import { sendStream } from './http/streaming';

export { loadDocument } from './schema/document';
export type { ApiOptions } from './http/options';
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

type Headers = Readonly<Record<string, string>>;
const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value.join(',') : value);

/** A query or a path as it was before it was escaped; what cannot be unescaped stays as it came. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
/** Names said twice have a list. `__proto__` is a name like any other. */
function queryOf(text: string): Record<string, unknown> {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const before = query.get(name);
    query.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(query);
}

/** Milliseconds that a caller has to notice that its body is too long. */
const LINGER_MS = 1000;
/** The rest of the body is thrown away for a moment, so that the caller can read its answer; then the connection goes. */
function cutOff(request: IncomingMessage): void {
  request.resume();
  const late = setTimeout(() => request.destroy(), LINGER_MS);
  late.unref();
  request.once('close', () => clearTimeout(late));
}

const fieldsOf = ({ origin, node }: RequestReport): object => ({ ...originFields(origin), ...(node === undefined ? {} : { node }) });

/** Many pieces go to the socket together. */
function sendPieces(response: ServerResponse, pieces: readonly Buffer[]): void {
  response.cork();
  for (const piece of pieces.slice(0, -1)) response.write(piece);
  response.end(pieces.at(-1));
}

/** Its name ends so at every version. */
const DOCUMENT = '/v1/openapi.json';

/** What the log and the metrics say of a request, as far as it came. */
interface RequestReport {
  /** The path as openapi.yaml writes it. */
  route: string;
  /** A node as the caller names it. */
  node?: string;
  origin: Origin;
}
/** Paths that no operation was found for. */
const NO_ROUTE = 'other';

interface ParsedRequest {
  readonly method: string;
  /** As the caller wrote it, without the query. */
  readonly path: string;
  readonly segments: readonly string[];
  readonly query: Record<string, unknown>;
  readonly minor: number;
  readonly jsonSuffix: boolean;
}

/** Not a regular expression: those walk a long row of slashes again and again. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}
/** Paths without /v1 and with a slash at the end are the same paths. */
function segmentsOf(path: string): string[] {
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments[0] === 'v1' || segments.length === 0 ? segments : ['v1', ...segments];
}

/**
 * Members of the body that are arguments join those of the query; of a body that is no object there are none.
 * Further path segments name a field.
 */
const argumentsSaid = (asked: ParsedRequest, params: object, body: unknown, field: string | undefined): Record<string, unknown> => ({
  ...asked.query,
  ...(typeof body === 'object' && !Array.isArray(body) ? body : {}),
  ...(field === undefined ? {} : { fields: field }),
  ...params,
});

async function perform(
  asked: ParsedRequest,
  match: Matcher,
  raw: Buffer,
  caller: Caller,
  headers: IncomingHttpHeaders,
  base: string,
  context: Omit<ApiContext, 'conductor'>,
  door: ConductorApi,
  seen: RequestReport,
): Promise<Answer> {
  const { method, segments, minor, path, jsonSuffix } = asked;
  const { operation, params, field, closed } = match(method, segments, minor);
  seen.route = operation.path;
  if (params['node_ident'] !== undefined) seen.node = params['node_ident'];
  if (!accepts(headers.accept, operation.streams ? 'text/event-stream' : 'application/json')) throw new Unacceptable(headers.accept);
  if (operation.policy && !context.auth.allowed(caller, operation.policy)) throw new Fault('NotAuthorized');
  const { bodyName, bodySchema, bodyArguments, bodyFirst, below, gate } = operation;
  const body = bodyArguments || bodyName !== null ? parseBody(raw, context.options['api.max_json_body_depth']) : {};
  const said = argumentsSaid(asked, params, bodyArguments ? body : {}, field);
  // Resources are held against their field rows by their handlers.
  const checkBody = (): void => {
    if (bodyName !== null && bodySchema && !context.document.isResource(bodySchema))
      demand(bodyName, context.validators(bodySchema, () => context.document.schemas[bodySchema]!)(body));
  };
  if (bodyFirst) checkBody();
  const query = parseArguments(operation, said);
  checkBody();
  if (closed) refuseByGate(below, gate.since);
  refuseNewer(operation, said, query, minor);
  const { origin } = seen;
  const request = { minor, caller, params, query, body, headers, base, path, jsonSuffix, origin };
  return handlers[operation.operationId]!(request, { ...context, conductor: door.from(origin) });
}

/** For node:http's createServer: whoever sends slowly is cut off. */
export const serverOptions = (options: ApiOptions): ServerOptions => {
  const limit = options['api.request_timeout'] * 1000;
  return { requestTimeout: limit, headersTimeout: limit, connectionsCheckingInterval: Math.min(limit, 10_000) };
};

/**
 * @param rooms what the API works with; the conductor is asked for everything that changes a machine or its record
 * @returns a listener for node:http, and an Express application at that
 * @throws Error when openapi.yaml and the handlers do not fit each other
 */
export function createApi(given: {
  readonly store: Store;
  readonly conductor: ConductorApi;
  readonly options: ApiOptions;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: nobody watches here. */
  readonly probes?: Probes;
  /** Absent: nobody gets notifications. */
  readonly notifier?: Notifier;
  /** Read before, while something else was waited for (`loadDocument`); absent: read now. */
  readonly document?: Document;
  /** Aborted when the server stops: answers that go on end then. */
  readonly signal?: AbortSignal;
}): RequestListener {
  const document = given.document ?? loadDocument();
  checkHandlers(document, handlers);
  const match = matcher(document);
  const { store, options, log, clock, metrics, probes = createProbes({}) } = given;
  const cors = createCors(options);
  const basic = options['DEFAULT.auth_strategy'] === 'http_basic';
  const stopping = given.signal ?? new AbortController().signal;
  const context: ApiContext = {
    ...given,
    auth: basic ? httpBasic(options['DEFAULT.http_basic_auth_user_file'], log, clock) : noauth,
    document,
    random: randomBytes,
    validators: createValidators(),
    current: createCurrentState(store, options),
    fragments: createFragments(options['api.fragment_cache_size'] * 2 ** 20, metrics),
    notifier: given.notifier ?? silentNotifier,
    feed: createEventFeed(store, clock, options, log, metrics),
    pushes: createHardwarePushes({ store, clock, options, log, metrics, signal: stopping }),
  };

  function send(response: ServerResponse, head: boolean, { status, headers, body, bytes }: Answer): void {
    if (response.headersSent || response.destroyed) return;
    const pieces = bytes ?? (body === undefined ? [] : [Buffer.from(JSON.stringify(body))]);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    response.writeHead(status, {
      ...(pieces.length > 0 ? { 'Content-Type': 'application/json' } : {}),
      ...headers,
      // RFC 9110 §8.6: 204 has no length.
      ...(status === 204 ? {} : { 'Content-Length': String(length) }),
    });
    if (head) response.end();
    else sendPieces(response, pieces);
  }

  async function answer(request: IncomingMessage, response: ServerResponse, seen: RequestReport): Promise<void> {
    const method = request.method ?? 'GET';
    for (const [name, value] of Object.entries(cors(method, request.headers))) response.setHeader(name, value);
    const [written = '/', search = ''] = (request.url ?? '/').split(/\?(.*)/s);
    const bare = withoutSlashes(written);
    const id = seen.origin.requestId;
    const ids: Headers = { 'x-openstack-request-id': id, 'openstack-request-id': id };
    const probe = await probes(request, written);
    if (probe) {
      seen.route = probe.route;
      sendProbe(request, response, probe, ids);
      return;
    }
    // The root document answers to every method.
    if (method === 'OPTIONS' && bare !== '') {
      send(response, false, { status: 200 });
      return;
    }
    const range: Headers = { [MINIMUM]: `1.${document.min}`, [MAXIMUM]: `1.${document.max}` };
    let versions: Headers = {};
    try {
      // Before anything is read of those who may not ask.
      const caller = await context.auth.identify(request.headers, bare, method);
      seen.origin = { ...seen.origin, user: caller.user, project: caller.project };
      const raw = await readBody(request, limitFor(bare, options));
      const asked = negotiate(one(request.headers[HEADER.toLowerCase()]), one(request.headers['openstack-api-version']), document);
      if ('refusal' in asked) {
        versions = asked.inRange ? range : {};
        // The root document is told apart: its refusals are faults.
        throw written === '/' ? new Fault('NotAcceptable', { message: asked.refusal }) : new Refusal(406, asked.refusal, versions);
      }
      versions = { ...range, [HEADER]: asked.used };
      const jsonSuffix = asked.explicit && asked.minor < 91 && bare.endsWith('.json') && bare !== DOCUMENT;
      const path = jsonSuffix ? bare.slice(0, -'.json'.length) : bare === '' ? '/' : written;
      const segments = segmentsOf(path).map(decoded);
      const base = baseOf(request, options);
      const head = method === 'HEAD' && segments.length < 2;
      const show = head || segments.length === 0;
      const said: ParsedRequest = {
        method: show ? 'GET' : method,
        path: written,
        segments,
        query: queryOf(search),
        minor: asked.minor,
        jsonSuffix,
      };
      const result = await perform(said, match, raw, caller, request.headers, base, context, given.conductor, seen);
      const headers = { ...versions, ...result.headers, ...ids };
      // Not waited for: the request is answered; what follows may take days.
      if (result.stream)
        sendStream(response, headers, result.stream, clock, stopping).catch((error: unknown) =>
          log.warn('a stream broke off', { ...fieldsOf(seen), error: reasonOf(error) }),
        );
      else send(response, head, { ...result, headers });
    } catch (error) {
      const { status, body, headers, known } = explain(error);
      if (!known && !request.socket.destroyed)
        log.error('request failed', { ...fieldsOf(seen), method, path: written, error: reasonOf(error), stack: (error as Error).stack });
      // What the router refuses, and what was not read, has no version headers, as there.
      const close = status === 413 ? { Connection: 'close' } : {};
      const early = [Refusal, Unread, Unauthenticated, Unacceptable].some((kind) => error instanceof kind);
      send(response, method === 'HEAD', { status, body, headers: { ...(early ? {} : versions), ...headers, ...ids, ...close } });
      if (status === 413) cutOff(request);
    }
  }

  measureNodes(store, clock, metrics);
  let inFlight = 0;
  metrics.read('bloomery_api_requests_in_flight', () => [[{}, inFlight]]);
  /** Answers one request, and says of it what the log and the metrics want to know. */
  async function attend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const took = metrics.timer();
    const seen: RequestReport = { route: NO_ROUTE, origin: originOf(request) };
    inFlight++;
    try {
      await answer(request, response, seen);
    } finally {
      inFlight--;
      const status = response.headersSent ? response.statusCode : undefined;
      reportRequest(given, request, { route: seen.route, status, seconds: took(), fields: fieldsOf(seen) });
    }
  }

  const application = express();
  application.disable('x-powered-by');
  application.disable('etag');
  application.use((request, response) => void attend(request, response));
  return application as RequestListener;
}
