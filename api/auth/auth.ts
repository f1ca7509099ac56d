/** The authentication strategies by [DEFAULT]auth_strategy, and whether policies count with each of them. */
import { randomBytes } from 'node:crypto';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Store } from '../../store/store';
import type { Auth, Strategy } from '../resource/handler';
import { apiTokens } from './api-tokens';
import { beside, type TokenKind } from './beside';
import { httpBasic } from './http-basic';
import { noauth } from './noauth';

interface AuthParts {
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly store: Pick<Store, 'apiTokens' | 'secrets'>;
}

function strategyOf({ options, log, clock }: AuthParts): Strategy {
  const files = { users: options['DEFAULT.http_basic_auth_user_file'], roles: options['DEFAULT.http_basic_roles_file'] };
  return options['DEFAULT.auth_strategy'] === 'http_basic' ? httpBasic(files, log, clock) : noauth;
}
function tokenKindsOf({ options, log, clock, store }: AuthParts): readonly TokenKind[] {
  return options['api.enable_tokens'] ? [apiTokens({ store, clock, log, random: randomBytes })] : [];
}

/** @throws an error with a line for the operator when a file or an option cannot be used */
export function createAuth(parts: AuthParts): Auth {
  const base = strategyOf(parts);
  // Without authentication a token would only take rights away.
  const strategy = base === noauth ? base : beside(base, tokenKindsOf(parts));
  return { ...strategy, allowed: ({ exempt }) => exempt };
}
