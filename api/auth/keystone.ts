/** [DEFAULT]auth_strategy = keystone: tokens of Keystone in X-Auth-Token, and those of services in X-Service-Token. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { NOBODY, type Caller } from '../../policy/caller';
import { KeystoneError } from '../../wire/keystone/sender';
import { createKeystoneSession } from '../../wire/keystone/session';
import { keystoneSettings } from '../../wire/keystone/settings';
import { validateToken, type TokenContents } from '../../wire/keystone/tokens';
import { Unauthenticated } from '../http/errors';
import type { Strategy } from '../resource/handler';
import type { Spellings } from '../resource/spellings';
import { isAllowed } from './access-rules';
import { createOwnLogin, type LoginStatus } from './own-login';
import { isPublic } from './public-paths';
import { createValidatedTokens } from './validated-tokens';

const SECTION = 'keystone_authtoken';

const callerOf = ({ user, project, domain, isSystem, isAdminProject, roles }: TokenContents): Caller => ({
  user: user.id,
  userName: user.name,
  userDomain: user.domain.id,
  project: project?.id ?? null,
  projectName: project?.name ?? null,
  projectDomain: project?.domain.id ?? null,
  domain: domain?.id ?? null,
  roles: [...new Set(roles.map((role) => role.toLowerCase()))],
  system: isSystem,
  exempt: false,
  isAdminProject,
});
const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

interface KeystoneParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Type of the service that requests are sent to, in access rules. */
  readonly serviceType: string | null;
  /** The spellings of that service's paths. */
  readonly spellings: Spellings;
  /** Absent: the first request authenticates this server. */
  readonly loginStatus?: LoginStatus;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
}
/** @throws SettingsError, with a line for the operator */
export function keystone({ options, log, clock, metrics, serviceType, spellings, loginStatus, signal }: KeystoneParts): Strategy {
  const settings = keystoneSettings(options, SECTION);
  const timeoutMs = options['keystone_authtoken.http_connect_timeout'] * 1000;
  const session = createKeystoneSession(settings, {
    clock,
    retries: {
      attemptTimeoutMs: timeoutMs,
      timeoutMs,
      connect: { retries: options['keystone_authtoken.http_request_max_retries'] },
      status: { retries: 0 },
      statuses: [],
    },
    signal,
  });
  const region = options['keystone_authtoken.region_name'];
  const identity = { interfaces: [options['keystone_authtoken.interface']], ...(region === null ? {} : { region }) };
  const withCatalog = options['keystone_authtoken.include_service_catalog'];
  const login =
    loginStatus &&
    createOwnLogin({
      authenticate: () => session.endpoint({ ...identity, serviceType: 'identity' }),
      status: loginStatus,
      clock,
      log,
      signal,
    });
  login?.start();
  const tokens = createValidatedTokens({
    validate: async (token, allowExpired) => {
      const contents = await validateToken(session, identity, token, { allowExpired, withCatalog }).catch((error: unknown) => {
        if (error instanceof KeystoneError && error.kind === 'refused') login?.start();
        throw error;
      });
      return contents && { ...contents, caller: callerOf(contents) };
    },
    cacheMs: options['keystone_authtoken.token_cache_time'] * 1000,
    clock,
    log,
    metrics,
  });
  const challenge = `Keystone uri="${options['keystone_authtoken.www_authenticate_uri'] ?? options['keystone_authtoken.auth_url']}"`;
  const refused = (): Unauthenticated => {
    const message = 'The request you have made requires authentication.';
    return new Unauthenticated(401, message, undefined, { body: { error: { code: 401, title: 'Unauthorized', message } }, challenge });
  };
  const serviceRoles = options['keystone_authtoken.service_token_roles'];

  async function identifyService(token: string, source: string): Promise<{ readonly caller: Caller; readonly allowExpired: boolean }> {
    const contents = await tokens(token, { source, allowExpired: false });
    if (!contents) throw refused();
    const hasRole = contents.roles.some((role) => serviceRoles.includes(role));
    if (!hasRole && options['keystone_authtoken.service_token_roles_required']) throw refused();
    return { caller: contents.caller, allowExpired: hasRole };
  }
  return {
    identify: async (headers, path, method, source) => {
      if (isPublic(path, method)) return NOBODY;
      const token = first(headers['x-auth-token'] ?? headers['x-storage-token']);
      const serviceToken = first(headers['x-service-token']);
      if (!token) throw refused();
      const service = serviceToken ? await identifyService(serviceToken, source) : undefined;
      const contents = await tokens(token, { source, allowExpired: service?.allowExpired ?? false });
      if (!contents) throw refused();
      const { accessRules, serviceTypes, caller } = contents;
      // With a service token the access rules do not apply: they list the user's own requests, not those of the service.
      const mayRequest = (): boolean =>
        serviceType !== null &&
        serviceTypes.includes(serviceType) &&
        (service !== undefined || isAllowed(accessRules!, { method, path }, serviceType, spellings));
      if (accessRules !== null && !mayRequest()) throw refused();
      return service ? { ...caller, service: service.caller } : caller;
    },
  };
}
