/** Tokens that are accepted beside the strategy of [DEFAULT]auth_strategy: those of `bloomery token`, and those of OpenID Connect. */
import type { IncomingHttpHeaders } from 'node:http';
import { NOBODY, type Caller } from '../../policy/caller';
import { Unauthenticated } from '../http/errors';
import type { Strategy } from '../pipeline/handler';
import { isPublic } from './public-paths';

interface GivenToken {
  readonly header: 'authorization' | 'x-auth-token';
  readonly token: string;
}
export interface TokenKind {
  /** Whether the token is of this kind, from its form only. */
  matches(given: GivenToken): boolean;
  /** @throws Unauthenticated */
  identify(token: string): Promise<Caller>;
}

/** RFC 6750 §3. */
const CHALLENGE = 'Bearer realm="Baremetal API"';
const refusal = (message: string, challenge: string): Unauthenticated =>
  new Unauthenticated(401, message, undefined, { body: { error: { message, code: 401 } }, challenge });
/** The response does not say why the token is invalid, because the client may be guessing tokens. */
export const invalidToken = (): Unauthenticated => refusal('The token is not valid', `${CHALLENGE}, error="invalid_token"`);

/** RFC 6750 §2.1; `X-Auth-Token` as clients of OpenStack send it. */
function tokensOf(headers: IncomingHttpHeaders): readonly GivenToken[] {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
  const own = [headers['x-auth-token']].flat()[0]?.trim();
  return [
    ...(bearer === undefined ? [] : [{ header: 'authorization', token: bearer } as const]),
    ...(own === undefined || own === '' ? [] : [{ header: 'x-auth-token', token: own } as const]),
  ];
}

/** [DEFAULT]auth_strategy = oidc: tokens only. */
export const tokensOnly: Strategy = {
  identify: async (_, path, method) => {
    if (isPublic(path, method)) return NOBODY;
    throw refusal('Authorization required', CHALLENGE);
  },
};

/** Accepts tokens of these kinds, and otherwise what the strategy accepts. */
export const acceptTokens = (base: Strategy, kinds: readonly TokenKind[]): Strategy => ({
  async identify(headers, path, method, source) {
    if (!isPublic(path, method))
      for (const given of tokensOf(headers)) {
        const kind = kinds.find((candidate) => candidate.matches(given));
        if (kind) return kind.identify(given.token);
      }
    return base.identify(headers, path, method, source);
  },
});
