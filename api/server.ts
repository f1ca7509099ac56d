/**
 * The API's HTTP server: metrics and log, then an Express router. The order of its middleware is CORS, probes, the page, OPTIONS, the API.
 * It is not an Express application, which gives each request and response another prototype: that alone costs as much as the router.
 * Only this file converts faults to responses. Handlers use neither Express nor sockets (pipeline/handler.ts).
 */
import type { Options } from '../config/options';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import type { ConductorApi, ScreenPlaces } from '../conductor/conductor';
import type { Caller } from '../policy/caller';
import { withoutEventKey } from '../model/rules/bmc-events';
import { notAcceptable, reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { healthRules, type HealthRule } from '../model/rules/health-rules';
import { silentNotifier, type Notifier } from '../model/notifications';
import { HEADER, MAXIMUM, MINIMUM, negotiate } from '../model/versions';
import type { Store } from '../store/store';
import { createAuth, type ServiceParts } from './auth/auth';
import { createSpellings } from './pipeline/spellings';
import { createSessions, type Sessions } from './auth/sessions';
import { createDispatch, type Dispatch } from './dispatch';
import type { AuditLog } from './http/audit';
import { bytesOf, createBodyLimits, type Body, type BodyLimits } from './http/body';
import { compressed } from './http/compression';
import { refuseCrossOriginForgery } from './http/cors';
import { cutOff } from './http/cut-off';
import { createCurrentState } from './http/current-state';
import { explain, Refusal, Unacceptable, Unauthenticated, Unread } from './http/errors';
import { beginExchange, createCorsHeaders, noteCaller, noteError, type Exchange } from './http/exchange';
import { baseOf } from './http/forwarded';
import { measureHealth, measureNodes } from './http/node-counts';
import { createProbes, sendProbe, type Probes } from './http/probes';
import { reportFields, type RequestReport } from './http/request-report';
import { send, sendLong } from './send';
import { createGatherer, type Gathered } from './http/sliced-answers';
import { peerOf, sourceOf } from './http/source';
import { sendStream } from './http/streaming';
import { queryOf, segmentsOf, type Target } from './http/target';
import { createUploads } from './http/uploads';
import { createAgentAddresses } from './pipeline/agent-addresses';
import { createAgentTokens } from './pipeline/agent-tokens';
import { createEventFeed } from './pipeline/event-feed';
import { createFragments } from './pipeline/fragments';
import type { Answer, ApiContext, Auth } from './pipeline/handler';
import { createBmcEventDoor } from './pipeline/bmc-event-door';
import { createHardwarePushes } from './pipeline/hardware-pushes';
import { createSmartReports } from './pipeline/smart-reports';
import { loadDocument, type Document } from './schema/document';
import { createValidators } from './schema/schema';
import type { UpgradeListener } from '../wire/http/upgrades';
import { loadAssets } from './ui/assets';
import { createConsoleBridge } from './ui/console';
import { createPageScreens } from './ui/screen';
import { createLogIns } from './ui/log-ins';
import { createPage } from './ui/page';

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/** Longer than clients pause between requests, so that no connection closes while a request is sent. */
const KEEP_ALIVE_MS = 65_000;
/** Options of node:http's createServer: timeouts for slow clients. */
export const serverOptions = (options: Pick<Options, 'api.request_timeout'>): ServerOptions => {
  const limit = options['api.request_timeout'] * 1000;
  return {
    requestTimeout: limit,
    headersTimeout: limit,
    connectionsCheckingInterval: Math.min(limit, 10_000),
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
};

/** The services that the API uses. The signal ends streams too. */
interface ApiParts extends ServiceParts {
  readonly store: Store;
  readonly conductor: ConductorApi;
  /** Absent: no probes on this port. */
  readonly probes?: Probes;
  /** Absent: no notifications. */
  readonly notifier?: Notifier;
  /** Absent: no audit log. */
  readonly audit?: AuditLog;
  /** Absent: read now. */
  readonly document?: Document;
  /** Absent: the built-in ones. */
  readonly healthRules?: readonly HealthRule[];
  /** Absent: the page has no consoles. */
  readonly consoles?: {
    /** The port of a console that this process serves. */
    readonly portOf: (uuid: string) => Promise<number | undefined>;
    /** Absent: this process shows no screens. */
    readonly screens?: ScreenPlaces | undefined;
    /** Sets the listener of the HTTP server. */
    readonly upgrade: (listener: UpgradeListener) => void;
  };
}

type Headers = Readonly<Record<string, string>>;
const NOT_SLICED: Gathered = { bytes: [] };
const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value.join(',') : value);

/** The suffix .json is part of this path at every version. */
const DOCUMENT = '/v1/openapi.json';
const LOG_IN = { bytes: 32 * 1024, isPublic: false };
/** The route in metrics and log if no operation was found. */
const NO_ROUTE = 'other';

/** The data of a request that the middleware shares. */
interface ApiExchange extends Exchange {
  /** The response headers with the request ID. */
  readonly ids: Headers;
}
const EXCHANGE = Symbol('exchange');
type Exchanged = IncomingMessage & { [EXCHANGE]?: ApiExchange };
const exchangeOf = (request: IncomingMessage): ApiExchange => (request as Exchanged)[EXCHANGE]!;

function createContext(parts: ApiParts, document: Document, auth: Auth, stopping: AbortSignal): Omit<ApiContext, 'conductor'> {
  const { store, options, log, clock, metrics, healthRules: rules = healthRules([]) } = parts;
  return {
    store,
    options,
    log,
    clock,
    metrics,
    document,
    auth,
    random: randomBytes,
    agentAddresses: createAgentAddresses({ store, options, clock, metrics, random: randomBytes }),
    healthRules: rules,
    agentTokens: createAgentTokens(store, options['DEFAULT.host'], randomBytes),
    validators: createValidators(),
    current: createCurrentState(store, options),
    fragments: createFragments(options['api.fragment_cache_size'] * 2 ** 20, metrics),
    notifier: parts.notifier ?? silentNotifier,
    feed: createEventFeed(store, clock, options, log, metrics),
    eventDoor: createBmcEventDoor({ store, clock, options, random: randomBytes }),
    pushes: createHardwarePushes({ store, clock, options, log, metrics, signal: stopping }),
    smartReports: createSmartReports({ store, clock, options, log, healthRules: rules, random: randomBytes }),
  };
}

/** Assigns the request ID, and logs and measures the finished request. */
function reportRequests(parts: ApiParts): RequestListener {
  let inFlight = 0;
  parts.metrics.read('bloomery_api_requests_in_flight', () => [[{}, inFlight]]);
  return (request, response) => {
    const { report, target, finish } = beginExchange(parts, 'baremetal', NO_ROUTE, request, response);
    const { requestId } = report.origin;
    const ids = { 'x-openstack-request-id': requestId, 'openstack-request-id': requestId };
    const ending = (): void => {
      inFlight--;
      finish();
    };
    (request as Exchanged)[EXCHANGE] = { report, target, ids, finish: ending };
    inFlight++;
  };
}

function addCorsHeaders(options: Options): RequestHandler {
  const addHeaders = createCorsHeaders(options);
  return (request, response, next) => {
    addHeaders(request, response);
    next();
  };
}

function answerProbes(probes: Probes): RequestHandler {
  return (request, response, next) => {
    const { target, report, ids, finish } = exchangeOf(request);
    const probing = probes(request, target.path);
    if (!probing) {
      next();
      return;
    }
    probing
      .then((answer) => {
        if (!answer) {
          next();
          return;
        }
        report.route = answer.route;
        sendProbe(request, response, answer, ids);
        finish();
      })
      .catch(next);
  };
}

/** The page and its log-in, where it is built and enabled. */
function answerPage({ options, log, clock }: ApiParts, sessions: Sessions, stopping: AbortSignal): RequestHandler {
  const assets = options['api.enable_ui'] ? loadAssets() : undefined;
  const pageParts = { options, sessions, auth: sessions.auth, log, random: randomBytes };
  const page = assets && createPage({ ...pageParts, assets, logIns: createLogIns({ options, clock, log, signal: stopping }) });
  const receive = createUploads();
  return (request, response, next) => {
    const { target, report, ids, finish } = exchangeOf(request);
    if (!page?.matches(request, target.bare)) {
      next();
      return;
    }
    report.route = '/ui';
    const source = sourceOf(request, options);
    receive(request, source, LOG_IN, (body) =>
      page.answer({ request, bare: target.bare, path: target.path, search: target.search, source, body: bytesOf(body) }),
    )
      .then((answer) =>
        send(response, request.method === 'HEAD' || answer.status === 304, { ...answer, headers: { ...answer.headers, ...ids } }),
      )
      .catch((error: unknown) => sendError(error, request, response, {}, log))
      .finally(finish)
      .catch(next);
  };
}

/** The root document answers to every method. */
const answerOptions: RequestHandler = (request, response, next) => {
  const { target, finish } = exchangeOf(request);
  if (request.method !== 'OPTIONS' || target.bare === '') {
    next();
    return;
  }
  send(response, false, { status: 200 });
  finish();
};

interface Negotiated {
  readonly minor: number;
  readonly explicit: boolean;
}
/**
 * @param versions receives the version headers of the response, also for a refused version
 * @throws Refusal, Fault NotAcceptable
 */
function negotiateVersion(
  { headers }: IncomingMessage,
  { path }: Target,
  document: Document,
  range: Headers,
  versions: { headers: Headers },
): Negotiated {
  const result = negotiate(one(headers[HEADER.toLowerCase()]), one(headers['openstack-api-version']), document);
  if ('refusal' in result) {
    versions.headers = result.inRange ? range : {};
    // The root document responds with a fault.
    throw path === '/' ? notAcceptable(result.refusal) : new Refusal(406, result.refusal, versions.headers);
  }
  versions.headers = Object.assign({}, range, { [HEADER]: result.used });
  return result;
}

interface ApiHandling {
  readonly parts: ApiParts;
  readonly document: Document;
  readonly auth: Auth;
  readonly dispatch: Dispatch;
  readonly stopping: AbortSignal;
}
/** Authentication, body, version, then the operation. */
function answerApi({ parts, document, auth, dispatch, stopping }: ApiHandling): RequestHandler {
  const { options, clock, log } = parts;
  const receive = createUploads();
  const limitsOf = createBodyLimits(options);
  const gather = createGatherer();
  const range: Headers = { [MINIMUM]: `1.${document.min}`, [MAXIMUM]: `1.${document.max}` };

  async function answer(request: IncomingMessage, response: ServerResponse, versions: { headers: Headers }): Promise<void> {
    const { report, target, ids } = exchangeOf(request);
    const { bare } = target;
    const source = sourceOf(request, options);
    refuseCrossOriginForgery(request, options);
    // Before the body is read.
    const caller = await auth.identify(request.headers, bare, request.method ?? 'GET', source);
    const admin = caller.exempt || caller.roles.includes('admin') ? ({ admin: true } as const) : {};
    const rights = caller.roles.includes('service') ? { ...admin, service: true as const } : admin;
    noteCaller(report, caller, rights);
    const limits = limitsOf(bare);
    const { result, head } = await receive(request, source, limits, (body) =>
      perform(request, { caller, source, body, json: limits.json }, versions),
    );
    report.status = result.status;
    if (result.status === 201) report.created = result.headers?.['Location'];
    const headers: Headers = Object.assign({}, versions.headers, result.headers, ids);
    if (result.stream) {
      stream({ ...result, headers }, response, report);
      return;
    }
    const { bytes, rest } = result.slices ? await gather(result.slices, source) : NOT_SLICED;
    if (rest) await sendLong(response, head, { status: result.status, headers, bytes }, rest, log);
    else {
      const { status, body, text } = result;
      send(response, head, await compressed(request.headers, { status, body, text, bytes: result.slices ? bytes : result.bytes, headers }));
    }
  }
  /** Version and operation. `head`: the response has no body. */
  async function perform(
    request: IncomingMessage,
    received: { readonly caller: Caller; readonly source: string; readonly body: Body; readonly json: BodyLimits['json'] },
    versions: { headers: Headers },
  ): Promise<{ readonly result: Answer; readonly head: boolean }> {
    const { report, target } = exchangeOf(request);
    const { bare } = target;
    const method = request.method ?? 'GET';
    const { minor, explicit } = negotiateVersion(request, target, document, range, versions);
    const jsonSuffix = explicit && minor < 91 && bare.endsWith('.json') && bare !== DOCUMENT;
    const segments = segmentsOf(jsonSuffix ? bare.slice(0, -'.json'.length) : bare === '' ? '/' : target.path);
    const head = method === 'HEAD' && segments.length < 2;
    const result = await dispatch(
      {
        segments,
        minor,
        jsonSuffix,
        caller: received.caller,
        source: received.source,
        body: received.body,
        json: received.json,
        method: head || segments.length === 0 ? 'GET' : method,
        path: target.path,
        query: queryOf(target.search),
        headers: request.headers,
        base: baseOf(request, options),
        peer: peerOf(request, options),
      },
      report,
    );
    return { result, head };
  }
  /** Does not wait for the end of the stream, which may take days. */
  function stream(result: Answer, response: ServerResponse, report: RequestReport): void {
    sendStream(response, result.headers!, result.stream!, clock, stopping).catch((error: unknown) =>
      log.warn('a stream ended with an error', { ...reportFields(report), error: reasonOf(error) }),
    );
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const versions: { headers: Headers } = { headers: {} };
    try {
      await answer(request, response, versions);
    } catch (error) {
      sendError(error, request, response, versions.headers, log);
    } finally {
      exchangeOf(request).finish();
    }
  }
  return (request, response, next) => void respond(request, response).catch(next);
}

/** Whether a script of the page sent the request. It gets no WWW-Authenticate, for which the browser would show a dialogue of its own. */
const isOfScript = ({ headers }: IncomingMessage): boolean =>
  headers['sec-fetch-site'] === 'same-origin' && headers['sec-fetch-mode'] !== 'navigate';

/** Responses to these errors have no version headers in Ironic either: the router or earlier middleware sends them. */
const WITHOUT_VERSION = [Refusal, Unread, Unauthenticated, Unacceptable];
function sendError(error: unknown, request: IncomingMessage, response: ServerResponse, versions: Headers, log: Log): void {
  const { ids } = exchangeOf(request);
  const explained = explain(error);
  const { status, body } = explained;
  const { 'WWW-Authenticate': challenge, ...others } = explained.headers;
  const headers = challenge === undefined || isOfScript(request) ? others : explained.headers;
  noteError(error, explained, request, exchangeOf(request), log);
  // The rest of the body is not read.
  const isCutOff = error instanceof Unread && (status === 413 || status === 503);
  const close = isCutOff ? { Connection: 'close' } : {};
  const versionHeaders = WITHOUT_VERSION.some((kind) => error instanceof kind) ? {} : versions;
  send(response, request.method === 'HEAD', { status, body, headers: { ...versionHeaders, ...headers, ...ids, ...close } });
  if (isCutOff) cutOff(request);
}

/**
 * @returns a listener for node:http, in front of an Express router
 * @throws Error for an operation of openapi.yaml that needs a policy and has none
 */
export function createApi(parts: ApiParts): RequestListener {
  const { store, conductor, options, log, clock, metrics } = parts;
  const document = parts.document ?? loadDocument();
  const stopping = parts.signal ?? new AbortController().signal;
  const credentials = createAuth({ ...parts, service: 'baremetal', spellings: createSpellings(document), signal: stopping });
  const sessions = createSessions(credentials, clock, randomBytes);
  const { auth } = sessions;
  const context = createContext(parts, document, auth, stopping);
  measureNodes(store, clock, metrics);
  if (options['health.enabled']) measureHealth(store, clock, metrics);
  if (parts.consoles && options['api.enable_ui']) {
    const { portOf, screens, upgrade } = parts.consoles;
    const shared = { options, sessions, store, log, clock, stopping, audit: parts.audit };
    const consoles = createConsoleBridge({ ...shared, conductor, localConsole: portOf, connect: screens?.connect });
    const pageScreens = screens && createPageScreens({ ...shared, screens });
    upgrade((...given) => consoles(...given) || (pageScreens?.(...given) ?? false));
  }

  const router = Router();
  router.use(addCorsHeaders(options));
  router.use(answerProbes(parts.probes ?? createProbes({})));
  router.use(answerPage(parts, sessions, stopping));
  router.use(answerOptions);
  router.use(answerApi({ parts, document, auth, dispatch: createDispatch(context, conductor), stopping }));
  const report = reportRequests(parts);
  return (request, response) => {
    report(request, response);
    router(request as Request, response as Response, (error: unknown) => {
      // Called for failed probes, and for targets that are not URLs, for which the router runs no middleware. The API answers its own
      // errors.
      if (response.headersSent) {
        log.error('request failed', { path: withoutEventKey(request.url ?? '/'), error: reasonOf(error) });
        response.destroy();
        return;
      }
      sendError(error ?? new Refusal(404), request, response, {}, log);
      exchangeOf(request).finish();
    });
  };
}
