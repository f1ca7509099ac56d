/** The authentication strategies by [DEFAULT]auth_strategy, and what their callers may do. */
import { randomBytes } from 'node:crypto';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { createEnforcer, type Enforcer } from '../../policy/enforcer';
import { ALWAYS_EVALUATED } from '../../policy/ineffectiveness';
import type { Store } from '../../store/store';
import type { Auth, Strategy } from '../pipeline/handler';
import { createSpellings, type Spellings } from '../pipeline/spellings';
import { apiTokens } from './api-tokens';
import { acceptTokens, tokensOnly, type TokenKind } from './accept-tokens';
import { httpBasic } from './http-basic';
import { keystone } from './keystone';
import { noauth } from './noauth';
import type { LoginStatus } from './own-login';
import { oidc } from './oidc';

/** What the authentication of a service needs of the server. */
export interface ServiceParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: one of the default rules. */
  readonly enforcer?: Enforcer;
  /** Absent: this server authenticates itself at Keystone with the first request only. */
  readonly loginStatus?: LoginStatus;
  readonly store: Pick<Store, 'apiTokens' | 'secrets'>;
  /** Aborted when the server stops. Absent: never. */
  readonly signal?: AbortSignal;
}
interface AuthParts extends ServiceParts {
  /** The service that requests are sent to. */
  readonly service: 'baremetal' | 'baremetal-introspection';
  /** Absent: the paths of the service have no older spellings. */
  readonly spellings?: Spellings;
}
const UNALIASED = createSpellings({ paths: [], aliases: [] });
const NEVER = new AbortController().signal;

function strategyOf({ options, log, clock, metrics, service, spellings = UNALIASED, loginStatus, signal = NEVER }: AuthParts): Strategy {
  switch (options['DEFAULT.auth_strategy']) {
    case 'keystone': {
      const own = options['keystone_authtoken.service_type'];
      return keystone({
        options,
        log,
        clock,
        metrics,
        signal,
        spellings,
        ...(loginStatus ? { loginStatus } : {}),
        serviceType: service === 'baremetal' || own === null ? own : service,
      });
    }
    case 'http_basic':
      return httpBasic(
        { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] },
        log,
        clock,
      );
    case 'oidc':
      return tokensOnly;
    default:
      return noauth;
  }
}
/** With noauth no tokens are accepted: everything is allowed, so tokens would only take rights away. */
function tokenKindsOf({ options, log, clock, store, signal = NEVER }: AuthParts, base: Strategy): readonly TokenKind[] {
  if (base === noauth) return [];
  return [
    ...(options['api.enable_tokens'] ? [apiTokens({ store, clock, log, random: randomBytes })] : []),
    ...(options['oidc.issuer'] === null ? [] : [oidc({ options, clock, log, signal })]),
  ];
}

/** @throws an error with a line for the operator when a file or an option cannot be used */
export function createAuth(parts: AuthParts): Auth {
  const { enforcer = createEnforcer(parts.options) } = parts;
  const base = strategyOf(parts);
  const kinds = tokenKindsOf(parts, base);
  return {
    ...(kinds.length === 0 ? base : acceptTokens(base, kinds)),
    allowed: (caller, policy, target) => (caller.exempt && !ALWAYS_EVALUATED.has(policy)) || enforcer.allowed(caller, policy, target),
  };
}
