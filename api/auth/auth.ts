/** The authentication strategies by [DEFAULT]auth_strategy, and what their callers may do. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Enforcer } from '../../policy/enforcer';
import type { Auth, Strategy } from '../resource/handler';
import { httpBasic } from './http-basic';
import { keystone } from './keystone';
import { noauth } from './noauth';

interface AuthParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly enforcer: Enforcer;
  /** Where requests are sent to. */
  readonly service: 'baremetal' | 'baremetal-introspection';
  /** Aborted when the server stops. Absent: never. */
  readonly signal?: AbortSignal;
}

function strategyOf({ options, log, clock, service, signal = new AbortController().signal }: AuthParts): Strategy {
  switch (options['DEFAULT.auth_strategy']) {
    case 'keystone': {
      const own = options['keystone_authtoken.service_type'];
      return keystone({ options, log, clock, signal, serviceType: service === 'baremetal' || own === null ? own : service });
    }
    case 'http_basic': {
      const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
      return httpBasic(files, log, clock);
    }
    default:
      return noauth;
  }
}

/** Ironic evaluates these with every strategy. */
const ALWAYS_EVALUATED: ReadonlySet<string> = new Set(['show_password', 'show_instance_secrets']);

/** @throws an error with a line for the operator when a file or an option cannot be used */
export function createAuth(parts: AuthParts): Auth {
  const { enforcer } = parts;
  return {
    ...strategyOf(parts),
    allowed: (caller, policy, target) => (caller.exempt && !ALWAYS_EVALUATED.has(policy)) || enforcer.allowed(caller, policy, target),
  };
}
