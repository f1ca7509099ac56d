/** The authentication strategies by [DEFAULT]auth_strategy, and what their callers may do. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Enforcer } from '../../policy/enforcer';
import type { Auth } from '../resource/handler';
import { httpBasic } from './http-basic';
import { noauth } from './noauth';

interface AuthParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly enforcer: Enforcer;
}

/** Ironic evaluates these with every strategy. */
const ALWAYS_EVALUATED: ReadonlySet<string> = new Set(['show_password', 'show_instance_secrets']);

/** @throws an error with a line for the operator when a file or an option cannot be used */
export function createAuth({ options, log, clock, enforcer }: AuthParts): Auth {
  const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
  const strategy = options['DEFAULT.auth_strategy'] === 'http_basic' ? httpBasic(files, log, clock) : noauth;
  return {
    ...strategy,
    allowed: (caller, policy, target) => (caller.exempt && !ALWAYS_EVALUATED.has(policy)) || enforcer.allowed(caller, policy, target),
  };
}
