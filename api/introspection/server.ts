/**
 * The HTTP server of the introspection service: ironic-inspector's API (introspection.yaml) on its own port, with the same versions, errors
 * and headers. Reading the document, bodies, authentication, reports and responses are those of the API. Its own is the order of the checks:
 * version, path and method, the caller, then the body.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConductorApi } from '../../conductor/conductor';
import { Fault, invalid, notAcceptable, notFound, reasonOf } from '../../model/errors';
import type { Store } from '../../store/store';
import { createAuth, type ServiceParts } from '../auth/auth';
import type { AuditLog } from '../http/audit';
import { bytesOf, createBodyLimits, parseBody } from '../http/body';
import { refuseCrossOriginForgery } from '../http/cors';
import { cutOff } from '../http/cut-off';
import { explain, Unauthenticated, Unread } from '../http/errors';
import { beginExchange, createCorsHeaders, noteCaller, noteError, type Exchange } from '../http/exchange';
import { baseOf } from '../http/forwarded';
import { sourceOf } from '../http/source';
import { plainSegmentsOf } from '../http/target';
import { createUploads } from '../http/uploads';
import { checkOperations } from '../pipeline/access';
import type { Answer } from '../pipeline/handler';
import { fits, paramsOf } from '../pipeline/routes';
import { loadDocument, type Document } from '../schema/document';
import { createValidators, throwIfInvalid } from '../schema/schema';
import { send } from '../send';
import { answerText } from './encode';
import type { Handler, Handlers, IntrospectionContext } from './handler';
import { rootHandlers } from './root';
import { ruleHandlers } from './rules';
import { statusHandlers } from './status';

/** @internal */
export const handlers: Handlers = { ...rootHandlers, ...statusHandlers, ...ruleHandlers };
/** @internal The operations without a policy, for everybody. */
export const PUBLIC_OPERATIONS: readonly string[] = ['showRoot', 'showVersion', 'showDocument', 'continueIntrospection'];

const HEADER = 'x-openstack-ironic-inspector-api-version';
const MISSING =
  '404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.';
const PAGE_405 =
  '<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n<p>The method is not allowed for the requested URL.</p>\n';

/** The minor version that the request selects. Throws Invalid (malformed), NotAcceptable. */
function minorOf(header: string | undefined, max: number): number {
  if (!header || header.toLowerCase() === 'latest') return max;
  const [, major, minor] = /^\s*([+-]?\d{1,9})\s*\.\s*([+-]?\d{1,9})\s*$/.exec(header)?.map(Number) ?? [];
  if (major === undefined || minor === undefined) throw invalid('Malformed API version: expected string in form of X.Y or latest');
  if (major === 1 && minor >= 0 && minor <= max) return minor;
  throw notAcceptable(`Unsupported API version ${major}.${minor}, supported range is 1.0 to 1.${max}`);
}

/** The response to an error, with its sentence and headers in ironic-inspector's form. */
function refused(error: unknown): Answer & { readonly known: boolean } {
  const { status, known } = explain(error);
  const isUnknownCaller = error instanceof Unauthenticated && status === 401;
  const message = !known ? 'Internal server error' : isUnknownCaller ? 'Authentication required' : (error as Error).message;
  const challenge = isUnknownCaller ? error.response?.challenge : undefined;
  const headers: Record<string, string> = challenge ? { 'WWW-Authenticate': challenge } : {};
  // The rest of the body is not read.
  if (error instanceof Unread) headers['Connection'] = 'close';
  return { status, known, body: { error: { message } }, headers };
}

/** @param allowed the methods of the path: without a body, or with the page of a 405 */
const aboutMethods = (status: number, allowed: readonly string[], text = ''): Answer => ({
  status,
  text,
  headers: { 'Content-Type': 'text/html; charset=utf-8', Allow: allowed.join(', ') },
});

interface IntrospectionParts extends ServiceParts {
  readonly store: Store;
  readonly conductor: ConductorApi;
  /** Absent: no audit log. */
  readonly audit?: AuditLog;
  /** That of the API, which has the schema of agents' reports. Absent: read now. */
  readonly document?: Document;
}
/** @returns performs a request, and says what it answers */
function createAnswer(parts: IntrospectionParts, document: Document): (request: IncomingMessage, exchange: Exchange) => Promise<Answer> {
  const { options, store } = parts;
  const auth = createAuth({ ...parts, service: 'baremetal-introspection' });
  const receive = createUploads();
  const limits = createBodyLimits(options)('continue_inspection');
  const { schemas } = parts.document ?? loadDocument();
  const problemOf = createValidators()('InspectionData', () => schemas['InspectionData']!);
  const common = { store, options, document, random: randomBytes, checkReport: (data: unknown) => throwIfInvalid('data', problemOf(data)) };

  return async (request, { report, target: { path, search } }) => {
    const header = request.headers[HEADER];
    const minor = minorOf(Array.isArray(header) ? header.join(',') : header, document.max);
    const segments = plainSegmentsOf(path);
    const place = segments.includes('') ? undefined : document.paths.find((item) => fits(item, segments));
    if (!place) throw notFound(MISSING);
    report.route = `introspection:${place.path}`;
    const { method = 'GET' } = request;
    const { operations } = place;
    const allowed = [...operations.keys(), 'OPTIONS', ...(operations.has('GET') ? ['HEAD'] : [])];
    if (method === 'OPTIONS') return aboutMethods(200, allowed);
    const operation = operations.get(method === 'HEAD' ? 'GET' : method);
    if (!operation) return aboutMethods(405, allowed, PAGE_405);
    const { operationId, policy } = operation;
    report.operation = operationId;
    const source = sourceOf(request, options);
    refuseCrossOriginForgery(request, options);
    // `identify` knows only the public paths of the API; `/` stands for those of this service.
    const caller = await auth.identify(request.headers, policy === null ? '/' : path, method, source);
    noteCaller(report, caller);
    if (policy !== null && !auth.allowed(caller, policy)) throw new Fault('HTTPForbidden', { resource: policy });
    const context: IntrospectionContext = { ...common, conductor: parts.conductor.from(report.origin) };
    return receive(request, source, limits, (raw) =>
      (handlers[operationId as keyof Handlers] as Handler)(
        {
          minor,
          params: paramsOf(place, segments),
          // The first of several values.
          query: Object.fromEntries([...new URLSearchParams(search)].reverse()),
          base: baseOf(request, options),
          hasBody: raw.length > 0,
          json: () => parseBody(bytesOf(raw), limits.json),
        },
        context,
      ),
    );
  };
}

/**
 * @returns a listener for node:http
 * @throws Error for an operation of introspection.yaml that needs a policy and has none
 */
export function createIntrospectionApi(parts: IntrospectionParts): (request: IncomingMessage, response: ServerResponse) => void {
  const { log } = parts;
  const document = loadDocument('introspection');
  checkOperations(document, PUBLIC_OPERATIONS);
  const versions = {
    'X-OpenStack-Ironic-Inspector-API-Minimum-Version': '1.0',
    'X-OpenStack-Ironic-Inspector-API-Maximum-Version': `1.${document.max}`,
  };
  const addCorsHeaders = createCorsHeaders(parts.options);
  const answerOf = createAnswer(parts, document);

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = beginExchange(parts, 'baremetal-introspection', 'introspection:other', request, response);
    const { report } = exchange;
    addCorsHeaders(request, response);
    let isCutOff = false;
    const noted = (error: unknown): Answer => {
      isCutOff = error instanceof Unread;
      const answer = refused(error);
      noteError(error, answer, request, exchange, log);
      return answer;
    };
    const answered = (answer: Answer): Answer => {
      report.status = answer.status;
      return answer;
    };
    const { status, body, text, headers } = await answerOf(request, exchange).then(answered, noted);
    const type = { 'Content-Type': status === 204 ? 'text/plain; charset=utf-8' : 'application/json' };
    const ids = { 'OpenStack-Request-Id': report.origin.requestId };
    const all = { ...type, ...(status === 204 ? { 'Content-Length': '0' } : {}), ...versions, ...headers, ...ids };
    send(response, request.method === 'HEAD', { status, headers: all, text: text ?? (body ? answerText(body) : '') });
    if (isCutOff) cutOff(request);
    exchange.finish();
  }
  return (request, response) =>
    void respond(request, response).catch((error: unknown) => log.error('a response cannot be sent', { error: reasonOf(error) }));
}
