/** The introspection service's front door: ironic-inspector's API on a port of its own, with versions, refusals and headers as there. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options } from '../../config/options';
import type { ConductorApi } from '../../conductor/conductor';
import type { Clock } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { originFields, type Origin } from '../../model/origin';
import type { Store } from '../../store/store';
import { httpBasic } from '../auth/http-basic';
import { noauth } from '../auth/noauth';
import { bodyLimits, parseBody } from '../http/body';
import { createCors } from '../http/cors';
import { loadDocument, type Document } from '../schema/document';
import { Unauthenticated, Unread } from '../http/errors';
import { baseOf } from '../http/forwarded';
import { isFlooded } from '../http/pipelining';
import { originOf, reportRequest } from '../http/request-log';
import { sourceOf } from '../http/source';
import { createUploads } from '../http/uploads';
import { createValidators, demand } from '../schema/schema';
import { answerText } from './encode';
import type { Answer, IntrospectionContext } from './operation';
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

/** The minor version that is asked for. Throws Invalid (malformed), NotAcceptable. */
function versionOf(header: string | undefined): number {
  if (!header || header.toLowerCase() === 'latest') return MAXIMUM.minor;
  const [, major, minor] = /^\s*([+-]?\d{1,9})\s*\.\s*([+-]?\d{1,9})\s*$/.exec(header) ?? [];
  if (major === undefined || minor === undefined)
    throw new Fault('Invalid', { message: 'Malformed API version: expected string in form of X.Y or latest' });
  const asked = { major: Number(major), minor: Number(minor) };
  if (asked.major === MAXIMUM.major && asked.minor >= MINIMUM.minor && asked.minor <= MAXIMUM.minor) return asked.minor;
  throw new Fault('NotAcceptable', {
    message: `Unsupported API version ${written(asked)}, supported range is ${written(MINIMUM)} to ${written(MAXIMUM)}`,
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

interface Reply extends Answer {
  readonly page?: string;
  readonly headers?: Readonly<Record<string, string>>;
}
/** Whatever was thrown. What the design does not know is a 500 that tells nothing. */
function explain(error: unknown): Reply {
  const refusal = (status: number, message: string): Reply => ({ status, body: { error: { message } } });
  if (error instanceof Unauthenticated) return refusal(error.status, error.status === 401 ? 'Authentication required' : error.sentence);
  if (error instanceof Unread) return { ...refusal(error.status, error.sentence), headers: { Connection: 'close' } };
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

/** What the log and the metrics say of a request, as far as it came. */
interface RequestReport {
  route: string;
  origin: Origin;
}
/** @returns a listener for node:http */
export function createIntrospectionApi(given: {
  readonly store: Store;
  readonly conductor: ConductorApi;
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: read now. */
  readonly document?: Document;
}): (request: IncomingMessage, response: ServerResponse) => void {
  const { options, log, clock, metrics } = given;
  const basic = options['DEFAULT.auth_strategy'] === 'http_basic';
  const auth = basic ? httpBasic(options['DEFAULT.http_basic_auth_user_file'], log, clock) : noauth;
  const cors = createCors(options);
  const receive = createUploads();
  const { schemas } = given.document ?? loadDocument();
  const problemOf = createValidators()('InspectionData', () => schemas['InspectionData']!);

  async function perform(request: IncomingMessage, head: boolean, seen: RequestReport): Promise<Reply> {
    const [path = '/', search = ''] = (request.url ?? '/').split(/\?(.*)/s);
    const header = request.headers[HEADER];
    const minor = versionOf(Array.isArray(header) ? header.join(',') : header);
    const found = findRoute(segmentsOf(path));
    if (!found) return { status: 404, body: { error: { message: REASON_404 } } };
    const { route, params } = found;
    seen.route = `introspection:${route.path}`;
    const names = Object.keys(route.methods);
    const allowed = { Allow: [...names, 'OPTIONS', ...(names.includes('GET') ? ['HEAD'] : [])].join(', ') };
    if (request.method === 'OPTIONS') return { status: 200, headers: allowed };
    const operation = route.methods[head ? 'GET' : request.method!];
    if (!operation) return { status: 405, page: PAGE_405, headers: allowed };
    // Which paths are public differs from the API's: its root document is, this word is not.
    const source = sourceOf(request, options);
    const caller = await auth.identify(request.headers, route.isPublic ? '/' : '/v1/introspection', request.method!, source);
    seen.origin = { ...seen.origin, user: caller.user, project: caller.project };
    const limits = bodyLimits('continue_inspection', options);
    const context: IntrospectionContext = {
      store: given.store,
      conductor: given.conductor.from(seen.origin),
      options,
      random: randomBytes,
      checkReport: (report) => demand('data', problemOf(report)),
    };
    return receive(request, source, limits, (raw) => {
      const json = (): unknown => parseBody(raw, { values: limits.values, depth: options['api.max_json_body_depth'] });
      const query = new URLSearchParams(search);
      return operation.handler({ params, query, minor, base: baseOf(request, options), hasBody: raw.length > 0, json }, context);
    });
  }

  return (request, response) => {
    if (isFlooded(request, response)) return;
    const took = metrics.timer();
    const head = request.method === 'HEAD';
    const seen: RequestReport = { route: 'introspection:other', origin: originOf(request) };
    response.setHeader('OpenStack-Request-Id', seen.origin.requestId);
    for (const [name, value] of Object.entries(cors(request.method ?? 'GET', request.headers))) response.setHeader(name, value);
    perform(request, head, seen)
      .catch((error: unknown) => {
        const known = [Fault, Unread, Unauthenticated].some((kind) => error instanceof kind);
        if (!known && !request.socket.destroyed)
          log.error('request failed', {
            ...originFields(seen.origin),
            method: request.method,
            path: request.url,
            error: reasonOf(error),
            stack: (error as Error).stack,
          });
        return explain(error);
      })
      .then((reply) => {
        // What was not read is thrown away, so that the caller gets its answer.
        request.resume();
        send(response, head, reply);
        const status = response.headersSent ? reply.status : undefined;
        reportRequest(given, request, { route: seen.route, status, seconds: took(), fields: originFields(seen.origin) });
      })
      .catch((error: unknown) => log.error('an answer cannot be sent', { error: reasonOf(error) }));
  };
}
