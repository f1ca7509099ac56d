/** The HTTP server of the introspection service: ironic-inspector's API on its own port, with the same versions, errors and headers. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options } from '../../config/options';
import type { ConductorApi } from '../../conductor/conductor';
import type { Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { originFields } from '../../model/origin';
import type { Store } from '../../store/store';
import { createAuth } from '../auth/auth';
import type { LoginStatus } from '../auth/own-login';
import { createEnforcer, type Enforcer } from '../../policy/enforcer';
import type { AuditLog } from '../http/audit';
import { bodyLimits, parseBody } from '../http/body';
import { createCors, refuseCrossOriginForgery } from '../http/cors';
import { cutOff } from '../http/cut-off';
import { loadDocument, type Document } from '../schema/document';
import { Unauthenticated, Unread } from '../http/errors';
import { baseOf } from '../http/forwarded';
import { originOf, reportRequest } from '../http/request-log';
import type { RequestReport } from '../http/request-report';
import { sourceOf } from '../http/source';
import { createUploads } from '../http/uploads';
import { createValidators, throwIfInvalid } from '../schema/schema';
import { answerText } from './encode';
import type { IntrospectionAnswer, IntrospectionContext } from './operation';
import { checkOperation } from './policies';
import { findRoute, MAXIMUM, MINIMUM } from './routes';

const HEADER = 'x-openstack-ironic-inspector-api-version';
const written = ({ major, minor }: { readonly major: number; readonly minor: number }): string => `${major}.${minor}`;
const VERSIONS: Readonly<Record<string, string>> = {
  'X-OpenStack-Ironic-Inspector-API-Minimum-Version': written(MINIMUM),
  'X-OpenStack-Ironic-Inspector-API-Maximum-Version': written(MAXIMUM),
};
const REASON_404 =
  '404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.';
const PAGE_405 =
  '<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n<p>The method is not allowed for the requested URL.</p>\n';

/** The minor version that the request selects. Throws Invalid (malformed), NotAcceptable. */
function versionOf(header: string | undefined): number {
  if (!header || header.toLowerCase() === 'latest') return MAXIMUM.minor;
  const [, major, minor] = /^\s*([+-]?\d{1,9})\s*\.\s*([+-]?\d{1,9})\s*$/.exec(header) ?? [];
  if (major === undefined || minor === undefined)
    throw new Fault('Invalid', { message: 'Malformed API version: expected string in form of X.Y or latest' });
  const requested = { major: Number(major), minor: Number(minor) };
  if (requested.major === MAXIMUM.major && requested.minor >= MINIMUM.minor && requested.minor <= MAXIMUM.minor) return requested.minor;
  throw new Fault('NotAcceptable', {
    message: `Unsupported API version ${written(requested)}, supported range is ${written(MINIMUM)} to ${written(MAXIMUM)}`,
  });
}

const unescaped = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
function segmentsOf(path: string): readonly string[] {
  const segments = path.split('/').slice(1);
  return (segments.at(-1) === '' ? segments.slice(0, -1) : segments).map(unescaped);
}

interface Reply extends IntrospectionAnswer {
  readonly page?: string;
  /** The rest of the body is not read. */
  readonly isCutOff?: true;
  readonly headers?: Readonly<Record<string, string>>;
}
/** The response to an error. Unexpected errors are a 500 without details. */
function explain(error: unknown): Reply {
  const refusal = (status: number, message: string): Reply => ({ status, body: { error: { message } } });
  if (error instanceof Unauthenticated) {
    const { status, sentence, response } = error;
    const headers: Record<string, string> = status === 401 && response?.challenge ? { 'WWW-Authenticate': response.challenge } : {};
    return { ...refusal(status, status === 401 ? 'Authentication required' : sentence), headers };
  }
  if (error instanceof Unread) return { ...refusal(error.status, error.sentence), headers: { Connection: 'close' }, isCutOff: true };
  if (error instanceof Fault) return refusal(error.status, error.message);
  return refusal(500, 'Internal server error');
}
function send(response: ServerResponse, head: boolean, { status, body, text, page, headers }: Reply): void {
  if (response.headersSent || response.destroyed) return;
  const content = page ?? text ?? (body ? answerText(body) : '');
  const type = body || text !== undefined ? 'application/json' : status === 204 ? 'text/plain; charset=utf-8' : 'text/html; charset=utf-8';
  const length = Buffer.byteLength(content);
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': String(length), ...VERSIONS, ...headers });
  response.end(head ? '' : content);
}

interface IntrospectionApiParts {
  readonly store: Store;
  readonly conductor: ConductorApi;
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: no audit log. */
  readonly audit?: AuditLog;
  /** Absent: one of the default rules. */
  readonly enforcer?: Enforcer;
  /** Absent: read now. */
  readonly document?: Document;
  /** Absent: this server authenticates itself at Keystone with the first request only. */
  readonly loginStatus?: LoginStatus;
  /** Aborted when the server stops. */
  readonly signal?: AbortSignal;
}
/** @returns a listener for node:http */
export function createIntrospectionApi(given: IntrospectionApiParts): (request: IncomingMessage, response: ServerResponse) => void {
  const { options, log, clock, metrics } = given;
  const auth = createAuth({
    options,
    log,
    clock,
    metrics,
    service: 'baremetal-introspection',
    ...(given.loginStatus ? { loginStatus: given.loginStatus } : {}),
    ...(given.signal ? { signal: given.signal } : {}),
    enforcer: given.enforcer ?? createEnforcer(options),
    store: given.store,
  });
  const cors = createCors(options);
  const receive = createUploads();
  const { schemas } = given.document ?? loadDocument();
  const problemOf = createValidators()('InspectionData', () => schemas['InspectionData']!);

  async function perform(request: IncomingMessage, head: boolean, report: RequestReport): Promise<Reply> {
    const [path = '/', search = ''] = (request.url ?? '/').split(/\?(.*)/s);
    const header = request.headers[HEADER];
    const minor = versionOf(Array.isArray(header) ? header.join(',') : header);
    const found = findRoute(segmentsOf(path));
    if (!found) return { status: 404, body: { error: { message: REASON_404 } } };
    const { route, params } = found;
    report.route = `introspection:${route.path}`;
    const names = Object.keys(route.methods);
    const allowed = { Allow: [...names, 'OPTIONS', ...(names.includes('GET') ? ['HEAD'] : [])].join(', ') };
    if (request.method === 'OPTIONS') return { status: 200, headers: allowed };
    const operation = route.methods[head ? 'GET' : request.method!];
    if (!operation) return { status: 405, page: PAGE_405, headers: allowed };
    report.operation = operation.operationId;
    const source = sourceOf(request, options);
    refuseCrossOriginForgery(request, options);
    // `identify` knows only the public paths of the API; `/` stands for those of this service.
    const caller = await auth.identify(request.headers, route.isPublic ? '/' : path, request.method!, source);
    report.origin = { ...report.origin, user: caller.user, project: caller.project };
    report.roles = caller.roles;
    report.tokenName = caller.tokenName;
    if (!route.isPublic) checkOperation(operation.operationId, caller, auth);
    const limits = bodyLimits('continue_inspection', options);
    const context: IntrospectionContext = {
      store: given.store,
      conductor: given.conductor.from(report.origin),
      options,
      random: randomBytes,
      checkReport: (report) => throwIfInvalid('data', problemOf(report)),
    };
    return receive(request, source, limits, (raw) => {
      const json = (): Promise<unknown> => parseBody(raw, { ...limits.json, depth: options['api.max_json_body_depth'] });
      const query = new URLSearchParams(search);
      return operation.handler({ params, query, minor, base: baseOf(request, options), hasBody: raw.length > 0, json }, context);
    });
  }

  return (request, response) => {
    const took = metrics.timer();
    const head = request.method === 'HEAD';
    const report: RequestReport = { route: 'introspection:other', origin: originOf(request) };
    let hasOutcome = true;
    response.setHeader('OpenStack-Request-Id', report.origin.requestId);
    for (const [name, value] of Object.entries(cors(request.method ?? 'GET', request.headers))) response.setHeader(name, value);
    perform(request, head, report)
      .catch((error: unknown) => {
        const known = [Fault, Unread, Unauthenticated].some((kind) => error instanceof kind);
        if (error instanceof Unauthenticated) report.claimedUser = error.claimedUser;
        hasOutcome = known || !request.socket.destroyed;
        if (!known && !request.socket.destroyed)
          log.error('request failed', {
            ...originFields(report.origin),
            method: request.method,
            path: request.url,
            error: reasonOf(error),
            stack: (error as Error).stack,
          });
        return explain(error);
      })
      .then((reply) => {
        send(response, head, reply);
        if (reply.isCutOff) cutOff(request);
        else request.resume();
        const status = response.headersSent ? reply.status : undefined;
        if (hasOutcome) report.status = reply.status;
        reportRequest(given, request, { service: 'baremetal-introspection', report, status, seconds: took() });
      })
      .catch((error: unknown) => log.error('a response cannot be sent', { error: reasonOf(error) }));
  };
}
