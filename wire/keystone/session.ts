/**
 * A session with Keystone: authenticates this program, finds services in the catalog, and sends them requests with its token.
 * Identity API v3, Authentication and token management.
 */
import { Readable } from 'node:stream';
import { isObject } from '../../model/json';
import { catalogOf, endpointOf, type Catalog, type ServiceSelector } from './catalog';
import { createExchange, type ServiceRequest, type ServiceResponse, type StreamedResponse, type Upload } from './exchange';
import { unlessAborted } from '../timeout-signal';
import { throwUnreachable, createSender, KeystoneError, type Retries } from './sender';
import { withoutVersion, type Credentials, type KeystoneSettings, type NamedInDomain, type Scope } from './settings';
import { oneLine } from '../../model/log';
import { shortened } from '../../model/text';

export interface SessionParts {
  readonly clock: {
    now(): number;
    sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  };
  readonly retries: Retries;
  /** Aborted when the program stops. */
  readonly signal: AbortSignal;
}
export interface KeystoneSession {
  /**
   * Sends a request to a service, with this program's token. Authenticates first where necessary, and once more after a 401.
   * @param path below the endpoint of the service
   * @throws KeystoneError
   */
  request(service: ServiceSelector, path: string, request: ServiceRequest, signal?: AbortSignal): Promise<ServiceResponse>;
  /**
   * The URL of a service, without a slash at the end. Authenticates first where necessary.
   * @throws KeystoneError
   */
  endpoint(service: ServiceSelector): Promise<string>;
  /** The project of this program's token. Undefined: the token is not scoped to a project. */
  projectId(): Promise<string | undefined>;
  /**
   * As `request` with GET, for content of any size. The status is not checked.
   * @throws KeystoneError
   */
  stream(service: ServiceSelector, path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<StreamedResponse>;
  /**
   * PUT of content of any size, once: it cannot be read again for a token that is refused. The status is not checked.
   * @throws KeystoneError
   */
  upload(
    service: ServiceSelector,
    path: string,
    upload: Upload,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<number>;
  close(): Promise<void>;
}
export { KeystoneError };

interface OwnToken {
  readonly id: string;
  /** Milliseconds since the epoch: another token is requested then. */
  readonly renewAt: number;
  readonly catalog: Catalog;
  readonly projectId?: string | undefined;
}
/** Milliseconds before its expiry at which a token is replaced. A short-lived token is replaced after three quarters of its lifetime. */
const RENEWAL_MS = 120_000;
/** The options to check after Keystone refused the authentication. */
const SUSPECTS: Readonly<Record<Credentials['method'], string>> = {
  password: 'username, password, their domains and the project',
  token: 'token and the project',
  application_credential: 'application_credential_id (or its name and the user) and application_credential_secret',
};
const MAX_TEXT = 200;

const namedInDomain = (named: NamedInDomain): object => ('id' in named ? { id: named.id } : { name: named.name, domain: named.domain });
function identityOf(credentials: Credentials): object {
  switch (credentials.method) {
    case 'password':
      return { methods: ['password'], password: { user: { ...namedInDomain(credentials.user), password: credentials.password } } };
    case 'token':
      return { methods: ['token'], token: { id: credentials.token } };
    case 'application_credential': {
      const { secret } = credentials;
      const own = 'id' in credentials ? { id: credentials.id } : { name: credentials.name, user: namedInDomain(credentials.user) };
      return { methods: ['application_credential'], application_credential: { ...own, secret } };
    }
  }
}
function scopeOf(scope: Scope): object {
  if ('project' in scope) return { project: namedInDomain(scope.project) };
  if ('domain' in scope) return { domain: scope.domain };
  return 'trust' in scope ? { 'OS-TRUST:trust': { id: scope.trust } } : { system: { all: true } };
}

/** The body of `POST /v3/auth/tokens`. */
export const authBody = (credentials: Credentials, scope: Scope | undefined): object => ({
  auth: { identity: identityOf(credentials), scope: scope && scopeOf(scope) },
});

/** Tokens and other long texts without spaces, which Keystone may repeat. Most IDs are shorter. */
const TOKEN_LIKE = /[\w+/=.~-]{40,}/g;
const MASKED = '***';
/** {error: {message}}: one line, bounded, without the secrets of the request. */
function messageOf(body: unknown, secrets: readonly string[]): string {
  const error = isObject(body) ? body['error'] : undefined;
  const message = isObject(error) ? error['message'] : undefined;
  if (typeof message !== 'string') return '';
  const masked = secrets.reduce((text, secret) => text.replaceAll(secret, MASKED), message).replace(TOKEN_LIKE, MASKED);
  return `: ${oneLine(shortened(masked, MAX_TEXT))}`;
}
const secretOf = (credentials: Credentials): string => {
  switch (credentials.method) {
    case 'password':
      return credentials.password;
    case 'token':
      return credentials.token;
    case 'application_credential':
      return credentials.secret;
  }
};
const isTemporary = (status: number): boolean => status >= 500 || status === 429;
/** @param secrets of the request, which are masked */
export const responseText = ({ status, body }: ServiceResponse, secrets: readonly string[] = []): string =>
  `HTTP status ${status}${messageOf(body, secrets)}`;

/** @throws KeystoneError when it is not a token */
function ownTokenOf({ headers, body }: ServiceResponse, now: number): OwnToken {
  const id = headers['x-subject-token'];
  const token = isObject(body) ? body['token'] : undefined;
  const { expires_at: expires, issued_at: issued, catalog, project } = isObject(token) ? token : {};
  const projectId = isObject(project) ? project['id'] : undefined;
  const lifetime = Date.parse(String(expires)) - (typeof issued === 'string' ? Date.parse(issued) : now);
  if (typeof id !== 'string' || !Number.isFinite(lifetime))
    throw new KeystoneError('unreachable', 'authentication: the response is not a token');
  // By this host's clock, which may differ from Keystone's.
  return {
    id,
    renewAt: now + lifetime - Math.min(RENEWAL_MS, lifetime / 4),
    catalog: catalogOf(catalog),
    projectId: typeof projectId === 'string' ? projectId : undefined,
  };
}

export function createKeystoneSession(settings: KeystoneSettings, parts: SessionParts): KeystoneSession {
  const { clock } = parts;
  const exchange = createExchange(settings.tls);
  const send = createSender(exchange, parts.retries, parts);
  let own: OwnToken | undefined;
  let authenticating: Promise<OwnToken> | undefined;

  async function authenticate(): Promise<OwnToken> {
    const { authUrl, credentials, scope, section } = settings;
    const body = authBody(credentials, scope);
    const response = await send(`${authUrl}/v3/auth/tokens`, { method: 'POST', body }, { hint: `; check [${section}]auth_url` });
    if (response.status !== 201) {
      const message = `authentication at ${authUrl}: ${responseText(response, [secretOf(credentials)])}`;
      if (isTemporary(response.status)) throw new KeystoneError('unreachable', message);
      const options = response.status === 404 ? 'auth_url' : SUSPECTS[credentials.method];
      throw new KeystoneError('refused', `${message}; check [${section}]${options}`);
    }
    return ownTokenOf(response, clock.now());
  }
  async function ownToken(signal?: AbortSignal): Promise<OwnToken> {
    if (own && own.renewAt > clock.now()) return own;
    authenticating ??= authenticate()
      .then((token) => (own = token))
      .finally(() => (authenticating = undefined));
    return unlessAborted(authenticating, signal).catch((error: unknown) => {
      if (error instanceof KeystoneError) throw error;
      return throwUnreachable(settings.authUrl)(error);
    });
  }
  function urlOf(service: ServiceSelector, { catalog }: OwnToken): string {
    const endpoint = endpointOf(catalog, service);
    if (endpoint === undefined) {
      const { serviceType, interfaces, region } = service;
      const where = `${interfaces.join(' or ')}${region === undefined ? '' : `, region ${region}`}`;
      const todo =
        catalog.length === 0 ? 'project_name and project_domain_name: a token without a scope has no catalog' : 'interface and region_name';
      throw new KeystoneError(
        'refused',
        `the catalog has no endpoint of the service ${serviceType} (${where}); check [${settings.section}]${todo}`,
      );
    }
    return service.version === undefined ? endpoint : `${withoutVersion(endpoint)}/${service.version}`;
  }
  type Headers = Readonly<Record<string, string>>;
  /** Once more with another token if a service does not accept this one. */
  async function withToken<T extends ServiceResponse | StreamedResponse>(
    service: ServiceSelector,
    path: string,
    headers: Headers | undefined,
    signal: AbortSignal | undefined,
    ask: (url: string, headers: Headers) => Promise<T>,
  ): Promise<T> {
    for (let again = true; ; again = false) {
      const token = await ownToken(signal);
      const response = await ask(`${urlOf(service, token)}${path}`, { ...headers, 'x-auth-token': token.id });
      if (response.status !== 401 || !again) return response;
      if (response.body instanceof Readable) response.body.on('error', () => {}).destroy();
      // The token was revoked, for instance. Another request may have replaced it already.
      if (own === token) own = undefined;
    }
  }
  return {
    endpoint: async (service) => urlOf(service, await ownToken()),
    projectId: async () => (await ownToken()).projectId,
    stream: (service, path, headers, signal) =>
      withToken(service, path, headers, signal, (url, all) => exchange.stream(url, all, signal).catch(throwUnreachable(url))),
    async upload(service, path, upload, headers, signal) {
      const token = await ownToken(signal);
      const url = `${urlOf(service, token)}${path}`;
      const status = await exchange.upload(url, upload, { ...headers, 'x-auth-token': token.id }, signal).catch(throwUnreachable(url));
      // The next upload has another token.
      if (status === 401 && own === token) own = undefined;
      return status;
    },
    request: (service, path, request, signal) =>
      withToken(service, path, request.headers, signal, (url, headers) => send(url, { ...request, headers }, { signal })),
    close: () => exchange.close(),
  };
}
