/** The authentication strategies by [DEFAULT]auth_strategy, and whether policies count with each of them. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Auth } from '../resource/handler';
import { httpBasic } from './http-basic';
import { noauth } from './noauth';

interface AuthParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
}

/** @throws an error with a line for the operator when a file or an option cannot be used */
export function createAuth({ options, log, clock }: AuthParts): Auth {
  const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
  const strategy = options['DEFAULT.auth_strategy'] === 'http_basic' ? httpBasic(files, log, clock) : noauth;
  return { ...strategy, allowed: ({ exempt }) => exempt };
}
