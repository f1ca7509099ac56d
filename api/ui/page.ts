/**
 * The page: its files below /ui, and its log-in. It gives nobody more than the API does: the files have no data, and the page reads all
 * data from the API with the credentials of its user.
 */
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import type { Caller } from '../../policy/caller';
import { isObject, JSON_LIMITS } from '../../wire/bounded-json';
import { SESSION_COOKIE, SESSION_SECONDS, type Credentials, type Sessions } from '../auth/sessions';
import { parseBody } from '../http/body';
import { Refusal, Unauthenticated, Unread } from '../http/errors';
import { baseOf } from '../http/forwarded';
import type { Answer, Auth } from '../resource/handler';
import { acceptsPage, answerAsset, INDEX, type Assets } from './assets';

interface PageParts {
  readonly options: Options;
  readonly assets: Assets;
  readonly sessions: Sessions;
  readonly auth: Auth;
}
interface PageRequest {
  readonly request: IncomingMessage;
  /** Without slashes at the end. */
  readonly bare: string;
  readonly path: string;
  readonly source: string;
  readonly body: Buffer;
}
interface Page {
  /** Whether the request is for the page. */
  matches(request: IncomingMessage, bare: string): boolean;
  /** @throws Refusal, Unread, Unauthenticated */
  answer(page: PageRequest): Promise<Answer>;
}

/** What the page asks for before it has an operation to offer. */
const OFFERED = [
  'baremetal:node:create',
  'baremetal:node:delete',
  'baremetal:node:update',
  'baremetal:node:set_provision_state',
  'baremetal:node:set_power_state',
  'baremetal:node:set_maintenance',
  'baremetal:node:clear_maintenance',
  'baremetal:node:set_boot_device',
  'baremetal:deploy_template:create',
  'baremetal:runbook:create',
  'baremetal:inspection_rule:create',
];
/** Strategy → the log-ins that the page shows. Tokens of our own and of OpenID providers are accepted as `token`. */
const LOG_INS: Readonly<Record<string, readonly string[]>> = {
  noauth: [],
  http_basic: ['password', 'token'],
  oidc: ['token'],
  keystone: ['token'],
};

const NO_STORE = { 'Cache-Control': 'no-store' };
const LONGEST_CREDENTIAL = 12_288;

function credentialsIn(body: unknown, strategy: string): Credentials {
  const { user, password, token } = isObject(body) ? body : {};
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= LONGEST_CREDENTIAL;
  if (isText(token) && /^[\x21-\x7e]+$/.test(token))
    return strategy === 'keystone' && !token.startsWith('blm_') ? { 'x-auth-token': token } : { authorization: `Bearer ${token}` };
  if (strategy === 'http_basic' && isText(user) && isText(password) && !user.includes(':'))
    return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
  throw new Unread(400, 'A user and a password, or a token, are required.');
}

export function createPage({ options, assets, sessions, auth }: PageParts): Page {
  const strategy = options['DEFAULT.auth_strategy'] ?? 'noauth';
  const cookie = (request: IncomingMessage, value: string, seconds: number): string => {
    const secure = baseOf(request, options).startsWith('https:') ? '; Secure' : '';
    return `${SESSION_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
  };
  const describe = (session?: { readonly caller: Caller; readonly csrf: string }): object => ({
    strategy,
    log_ins: LOG_INS[strategy] ?? [],
    caller: session
      ? { user: session.caller.userName ?? session.caller.user, project: session.caller.project, roles: session.caller.roles }
      : null,
    csrf: session?.csrf ?? null,
    may: session ? OFFERED.filter((policy) => auth.allowed(session.caller, policy)) : [],
  });
  /** A log-in is JSON, which pages of other origins cannot send without a preflight request. */
  const requireJson = (request: IncomingMessage): void => {
    if (request.headers['content-type']?.split(';', 1)[0]!.trim() !== 'application/json') throw new Unread(415, 'The log-in is JSON.');
  };

  const SESSION: Readonly<Record<string, (page: PageRequest) => Promise<Answer>>> = {
    async GET({ request, source }) {
      // Without authentication everybody has the session of everybody.
      const session =
        strategy === 'noauth'
          ? { caller: await auth.identify(request.headers, '/v1/nodes', 'GET', source), csrf: '' }
          : await sessions.find(request.headers, source);
      return { status: 200, body: describe(session), headers: NO_STORE };
    },
    async POST({ request, source, body }) {
      requireJson(request);
      const credentials = credentialsIn(await parseBody(body, { ...JSON_LIMITS.request, depth: 5 }), strategy);
      try {
        const session = await sessions.open(credentials, source);
        const headers = { ...NO_STORE, 'Set-Cookie': cookie(request, session.cookie, SESSION_SECONDS) };
        return { status: 201, body: describe(session), headers };
      } catch (error) {
        if (!(error instanceof Unauthenticated)) throw error;
        // Without WWW-Authenticate: the browser would show a dialogue of its own.
        const message = error.status === 503 ? error.sentence : 'These credentials are not valid.';
        return { status: error.status, body: { error: { message } }, headers: NO_STORE };
      }
    },
    async DELETE({ request }) {
      requireJson(request);
      sessions.close(request.headers);
      return { status: 204, headers: { ...NO_STORE, 'Set-Cookie': cookie(request, '', 0) } };
    },
  };
  const redirect = (location: string): Answer => ({ status: 302, headers: { Location: location, Vary: 'Accept' } });

  return {
    matches: ({ method = 'GET', headers }, bare) =>
      bare === '/ui' || bare.startsWith('/ui/') || (bare === '' && (method === 'GET' || method === 'HEAD') && acceptsPage(headers.accept)),
    async answer(page) {
      const { request, bare, path } = page;
      const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
      if (bare === '/ui/session') {
        const handler = Object.hasOwn(SESSION, method) ? SESSION[method] : undefined;
        if (!handler) throw new Refusal(405);
        return handler(page);
      }
      if (method !== 'GET') throw new Refusal(405);
      // Relative: a proxy may have a prefix.
      if (bare === '') return redirect('ui');
      if (path === '/ui/') return redirect('../ui');
      const asset = assets.get(bare === '/ui' ? INDEX : bare.slice('/ui/'.length));
      if (asset === undefined) throw new Refusal(404);
      const { 'accept-encoding': encoding = '', 'if-none-match': etag = '' } = request.headers;
      return answerAsset(asset, { encoding, etag });
    },
  };
}
