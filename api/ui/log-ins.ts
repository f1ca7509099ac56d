/** The ways to log in at the page, by the strategy of the server. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { isObject } from '../../model/json';
import type { Log } from '../../model/log';
import { createKeystoneLogin } from '../auth/keystone-login';
import { createOpenIdLogin, type OpenIdLogin } from '../auth/oidc-login';
import type { Login } from '../auth/sessions';
import { Unread } from '../http/errors';

export interface LogIns {
  /** In the order in which the page offers them. */
  readonly kinds: readonly string[];
  /** A log-in with the fields of a form. @throws Unread, Unauthenticated */
  open(fields: unknown, source: string): Promise<Login>;
  /** Absent: the page cannot send users to a provider. */
  readonly openId?: OpenIdLogin | undefined;
}
interface LogInParts {
  readonly options: Options;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
}

/** Strategy → its forms. Tokens of our own and of OpenID providers are accepted as `token`. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  noauth: [],
  http_basic: ['password', 'token'],
  oidc: ['token'],
  keystone: ['keystone', 'token'],
};
const MAX_CREDENTIAL = 12_288;
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= MAX_CREDENTIAL;
export function createLogIns({ options, clock, log, signal }: LogInParts): LogIns {
  const strategy = options['DEFAULT.auth_strategy'] ?? 'noauth';
  const keystone = strategy === 'keystone' ? createKeystoneLogin({ options, clock, log, signal }) : undefined;
  const openId =
    strategy !== 'noauth' && options['oidc.issuer'] !== null && options['oidc.client_id'] !== null
      ? createOpenIdLogin({ options, clock, log, signal })
      : undefined;
  return {
    kinds: [...(openId ? ['oidc'] : []), ...(FORMS[strategy] ?? [])],
    openId,
    async open(body, source) {
      const fields = isObject(body) ? body : {};
      const { user, password, token, domain, project } = fields;
      if (isText(token) && /^[\x21-\x7e]+$/.test(token)) {
        const isOwn = strategy !== 'keystone' || token.startsWith('blm_');
        return { credentials: isOwn ? { authorization: `Bearer ${token}` } : { 'x-auth-token': token } };
      }
      if (strategy === 'http_basic' && isText(user) && isText(password) && !user.includes(':'))
        return { credentials: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` } };
      if (keystone && isText(user) && isText(password))
        return keystone({ user, password, domain: isText(domain) ? domain : 'Default', project: isText(project) ? project : null }, source);
      throw new Unread(400, 'A user and a password, or a token, are required.');
    },
  };
}
