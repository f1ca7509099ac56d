/**
 * The page: its files below /ui, and its log-in. It gives nobody more than the API does. The files have no data; the page reads all data
 * from the API with the credentials of its user.
 */
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import type { Caller } from '../../policy/caller';
import type { Log } from '../../model/log';
import { JSON_LIMITS } from '../../wire/bounded-json';
import { reasonOf } from '../../model/errors';
import { newSecret } from '../../model/masks';
import { LoginFailed, type OpenIdLogin } from '../auth/oidc-login';
import { cookieOf, SESSION_COOKIE, SESSION_SECONDS, type Sessions } from '../auth/sessions';
import { parseBody } from '../http/body';
import { Refusal, Unauthenticated, Unread } from '../http/errors';
import { baseOf } from '../http/forwarded';
import type { Answer, Auth } from '../pipeline/handler';
import { readDemoMachines } from './demo-machines';
import { acceptsPage, answerAsset, INDEX, type Assets } from './assets';
import type { LogIns } from './log-ins';
import { NO_RIGHTS, rightsOf } from './rights';

interface PageParts {
  readonly options: Options;
  readonly assets: Assets;
  readonly sessions: Sessions;
  readonly logIns: LogIns;
  readonly auth: Auth;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
}
interface PageRequest {
  readonly request: IncomingMessage;
  /** Without slashes at the end. */
  readonly bare: string;
  readonly path: string;
  /** The query, still escaped. */
  readonly search: string;
  readonly source: string;
  readonly body: Buffer;
}
interface Page {
  /** Whether the request is for the page. */
  matches(request: IncomingMessage, bare: string): boolean;
  /** @throws Refusal, Unread, Unauthenticated */
  answer(page: PageRequest): Promise<Answer>;
}

const NO_STORE = { 'Cache-Control': 'no-store' };
/** The cookie of a log-in at an OpenID provider. It is SameSite=Lax, because the request after the provider's redirection must have it. */
const LOGIN_COOKIE = 'bloomery_login';
const LOGIN_PATH = '/ui/login/oidc';
const LOGIN_SECONDS = 600;

/** A log-in is JSON, which pages of other origins cannot send without a preflight request. */
const requireJson = (request: IncomingMessage): void => {
  if (request.headers['content-type']?.split(';', 1)[0]!.trim() !== 'application/json') throw new Unread(415, 'The log-in is JSON.');
};
/** Without WWW-Authenticate: the browser would show a dialogue of its own. */
const orRefusal = (work: () => Promise<Answer>): Promise<Answer> =>
  work().catch((error: unknown) => {
    if (!(error instanceof Unauthenticated)) throw error;
    return { status: error.status, body: { error: { message: error.sentence } }, headers: NO_STORE };
  });
const redirect = (location: string, headers: Readonly<Record<string, string>> = { Vary: 'Accept' }): Answer => ({
  status: 302,
  headers: { Location: location, ...headers },
});
const isForPage: Page['matches'] = ({ method = 'GET', headers }, bare) =>
  bare === '/ui' || bare.startsWith('/ui/') || (bare === '' && (method === 'GET' || method === 'HEAD') && acceptsPage(headers.accept));

export function createPage({ options, assets, sessions, logIns, auth, log, random }: PageParts): Page {
  const strategy = options['DEFAULT.auth_strategy'] ?? 'noauth';
  const withSecure = (request: IncomingMessage, cookie: string): string =>
    baseOf(request, options).startsWith('https:') ? `${cookie}; Secure` : cookie;
  const cookie = (request: IncomingMessage, value: string, seconds: number): string =>
    withSecure(request, `${SESSION_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`);
  const describe = (session?: { readonly caller: Caller; readonly csrf: string }): object => ({
    strategy,
    log_ins: logIns.kinds,
    caller: session
      ? { user: session.caller.userName ?? session.caller.user, project: session.caller.project, roles: session.caller.roles }
      : null,
    csrf: session?.csrf ?? null,
    has_demo_machines: options['api.demo_machines'] !== null,
    may: session ? rightsOf(session.caller, auth, options) : NO_RIGHTS,
  });

  /** Replaces the strategies' error messages, which are for clients of the API, by one for a user who logs in. */
  const open: Sessions['open'] = (login, source) =>
    sessions.open(login, source).catch((error: unknown) => {
      if (!(error instanceof Unauthenticated) || error.status === 503) throw error;
      throw new Unauthenticated(error.status, 'These credentials are not valid.', error.claimedUser);
    });

  const SESSION: Readonly<Record<string, (page: PageRequest) => Promise<Answer>>> = {
    async GET({ request, source }) {
      // Without authentication there are no sessions, and everybody counts as logged in.
      const session =
        strategy === 'noauth'
          ? { caller: await auth.identify(request.headers, '/v1/nodes', 'GET', source), csrf: '' }
          : await sessions.find(request.headers, source);
      return { status: 200, body: describe(session), headers: NO_STORE };
    },
    async POST({ request, source, body }) {
      requireJson(request);
      const fields = await parseBody(body, { ...JSON_LIMITS.request, depth: 5 });
      return orRefusal(async () => {
        const session = await open(await logIns.open(fields, source), source);
        const headers = { ...NO_STORE, 'Set-Cookie': cookie(request, session.cookie, SESSION_SECONDS) };
        return { status: 201, body: describe(session), headers };
      });
    },
    async DELETE({ request }) {
      requireJson(request);
      sessions.close(request.headers);
      return { status: 204, headers: { ...NO_STORE, 'Set-Cookie': cookie(request, '', 0) } };
    },
  };
  /** Only for callers that may create nodes: the machines' records contain the passwords of their BMCs. */
  const showDemoMachines = ({ request, source }: PageRequest, path: string): Promise<Answer> =>
    orRefusal(async () => {
      const caller = await auth.identify(request.headers, '/v1/nodes', 'GET', source);
      if (!auth.allowed(caller, 'node:create')) throw new Refusal(403);
      return { status: 200, body: await readDemoMachines(path), headers: NO_STORE };
    });
  /** The two requests of a log-in at an OpenID provider: the link of the page, and the redirection of the provider. */
  async function logInElsewhere({ request, bare, search, source }: PageRequest, openId: OpenIdLogin): Promise<Answer> {
    const redirectUri = baseOf(request, options) + LOGIN_PATH;
    try {
      if (bare === `${LOGIN_PATH}/start`) {
        const secret = newSecret(random);
        const set = withSecure(request, `${LOGIN_COOKIE}=${secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${LOGIN_SECONDS}`);
        return redirect(await openId.begin(secret, redirectUri), { ...NO_STORE, 'Set-Cookie': set });
      }
      const login = await openId.finish(cookieOf(request.headers, LOGIN_COOKIE), new URLSearchParams(search), redirectUri, source);
      const session = await sessions.open(login, source).catch((error: unknown) => {
        throw new LoginFailed('token', `the access token is refused: ${reasonOf(error)}`);
      });
      return redirect('../../ui', { ...NO_STORE, 'Set-Cookie': cookie(request, session.cookie, SESSION_SECONDS) });
    } catch (error) {
      if (!(error instanceof LoginFailed)) throw error;
      log.warn('a log-in at the identity provider failed', { error: error.message });
      return redirect(`${bare === LOGIN_PATH ? '../../ui' : '../../../ui'}#/log-in?problem=${error.problem}`, NO_STORE);
    }
  }

  return {
    matches: isForPage,
    async answer(page) {
      const { request, bare, path } = page;
      const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
      if (bare === '/ui/session') {
        const handler = Object.hasOwn(SESSION, method) ? SESSION[method] : undefined;
        if (!handler) throw new Refusal(405);
        return handler(page);
      }
      if (method !== 'GET') throw new Refusal(405);
      const demoMachines = options['api.demo_machines'];
      if (bare === '/ui/demo-machines' && demoMachines !== null) return showDemoMachines(page, demoMachines);
      if (logIns.openId && [LOGIN_PATH, `${LOGIN_PATH}/start`].includes(bare)) return logInElsewhere(page, logIns.openId);
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
