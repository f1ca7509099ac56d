/** Tokens for users of Keystone who send their password: Identity API v3, `POST /v3/auth/tokens`. */
import { createExchange } from './exchange';
import { createSender, KeystoneError } from './sender';
import { authBody, responseText, type SessionParts } from './session';
import type { KeystoneSettings, NamedInDomain, Scope } from './settings';

interface UserPassword {
  readonly user: NamedInDomain;
  readonly password: string;
  readonly scope: Scope;
}
/**
 * @returns the token; undefined: Keystone refuses the user, the password or the scope
 * @throws KeystoneError
 */
type PasswordLogin = (login: UserPassword) => Promise<string | undefined>;

export function createPasswordLogin({ authUrl, tls }: Pick<KeystoneSettings, 'authUrl' | 'tls'>, parts: SessionParts): PasswordLogin {
  const send = createSender(createExchange(tls), parts.retries, parts);
  return async ({ user, password, scope }) => {
    const body = authBody({ method: 'password', user, password }, scope);
    const { status, headers, body: answer } = await send(`${authUrl}/v3/auth/tokens`, { method: 'POST', body });
    if (status === 401 || status === 403) return undefined;
    const token = headers['x-subject-token'];
    if (status === 201 && typeof token === 'string') return token;
    throw new KeystoneError('failing', `a log-in: ${responseText({ status, headers, body: answer }, [password])}`);
  };
}
