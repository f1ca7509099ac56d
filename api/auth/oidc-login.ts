/**
 * The log-in of the page at the OpenID provider: authorization code with PKCE (OpenID Connect Core 1.0 §3.1, RFC 7636).
 * Nothing is stored between the two requests of a log-in: a cookie holds a random secret; state, nonce and code verifier are hashes of it.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Options } from '../../config/options';
import { reasonOf } from '../../model/errors';
import { fetchEndpoints, GrantRefused, requestTokens, type IssuedTokens, type ProviderEndpoints } from '../../wire/http/openid';
import { Unauthenticated } from '../http/errors';
import { createFairTurns } from '../http/fair-turns';
import { createProviderKeys } from './provider-keys';
import { createTokenVerifier, providerOf, type ProviderOptions, type ProviderParts } from './provider-tokens';
import type { Login } from './sessions';

type LoginOptions = ProviderOptions & Pick<Options, 'oidc.client_id' | 'oidc.client_secret' | 'oidc.login_parameters' | 'oidc.scopes'>;

/** Why a log-in failed. The page has a message for each of these words. */
type LoginProblem = 'denied' | 'expired' | 'provider' | 'token';
export class LoginFailed extends Error {
  constructor(
    readonly problem: LoginProblem,
    message: string,
  ) {
    super(message);
  }
}
export interface OpenIdLogin {
  /**
   * @param secret random text, which the cookie of the log-in holds
   * @returns the URL of the provider at which the user logs in
   * @throws LoginFailed
   */
  begin(secret: string, redirectUri: string): Promise<string>;
  /**
   * @param query of the request that the provider redirects to
   * @throws LoginFailed
   */
  finish(secret: string | undefined, query: URLSearchParams, redirectUri: string, source: string): Promise<Login>;
}

const RUNNING = { inAll: 16, ofSource: 4 };
const WAITING = { inAll: 256, ofSource: 32 };
const MAX_VALUE = 4096;
/** The part of a token's lifetime after which it is renewed. */
const RENEWAL_PART = 0.75;

const derived = (purpose: string, secret: string): string => createHash('sha256').update(`${purpose} ${secret}`).digest('base64url');
const isSame = (a: string, b: string): boolean => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
const busy = (): LoginFailed => new LoginFailed('provider', 'too many log-ins at the same time');

export function createOpenIdLogin(parts: ProviderParts<LoginOptions>): OpenIdLogin {
  const { options, clock, log, signal } = parts;
  const provider = providerOf(options);
  const client = { id: options['oidc.client_id']!, secret: options['oidc.client_secret'] };
  const endpoints = createProviderKeys<ProviderEndpoints>(() => fetchEndpoints(provider, signal), clock, log);
  const verify = createTokenVerifier(parts);
  const turn = createFairTurns({ running: RUNNING, waiting: WAITING, refusal: busy });
  const failed = (error: unknown): never => {
    if (error instanceof LoginFailed) throw error;
    const isRefusal = error instanceof GrantRefused || (error instanceof Unauthenticated && error.status === 401);
    throw new LoginFailed(isRefusal ? 'token' : 'provider', reasonOf(error));
  };
  const tokensFor = async (grant: Readonly<Record<string, string>>): Promise<IssuedTokens> =>
    requestTokens(provider, await endpoints.current(), client, { ...options['oidc.login_parameters'], ...grant }, signal);

  function loginOf({ accessToken, refreshToken, expiresIn }: IssuedTokens): Login {
    const credentials = { authorization: `Bearer ${accessToken}` } as const;
    if (refreshToken === undefined || expiresIn === undefined) return { credentials };
    const renew = async (): Promise<Login> => {
      try {
        const tokens = await tokensFor({ grant_type: 'refresh_token', refresh_token: refreshToken });
        return loginOf({ ...tokens, refreshToken: tokens.refreshToken ?? refreshToken });
      } catch (error) {
        throw new Unauthenticated(error instanceof GrantRefused ? 401 : 503, 'The session at the identity provider cannot be renewed');
      }
    };
    return { credentials, renewal: { at: clock.now() + expiresIn * RENEWAL_PART * 1000, renew } };
  }
  /** OpenID Connect Core 1.0 §3.1.3.7. */
  async function checkIdToken(token: string | undefined, nonce: string): Promise<void> {
    if (token === undefined) throw new LoginFailed('token', 'the provider sent no ID token; [oidc]scopes needs openid');
    const { claims } = await verify(token, [client.id]);
    const { azp = client.id } = claims;
    if (claims['nonce'] !== nonce || azp !== client.id) throw new LoginFailed('token', 'the ID token is of another log-in');
  }
  function codeIn(secret: string | undefined, query: URLSearchParams): string {
    const [state, code, issuer] = ['state', 'code', 'iss'].map((name) => query.get(name));
    if (secret === undefined || !isSame(state ?? '', derived('state', secret)))
      throw new LoginFailed('expired', 'the state is not that of the cookie');
    // RFC 9207 §2.4.
    if (issuer !== null && issuer !== provider.issuer) throw new LoginFailed('token', 'the answer is of another issuer');
    if (query.has('error')) throw new LoginFailed('denied', `the provider answers ${query.get('error')?.slice(0, 100)}`);
    if (!code || code.length > MAX_VALUE) throw new LoginFailed('provider', 'the provider sent no code');
    return code;
  }

  return {
    async begin(secret, redirectUri) {
      const { authorization } = await endpoints.current().catch(failed);
      const url = new URL(authorization);
      const parameters = {
        ...options['oidc.login_parameters'],
        response_type: 'code',
        client_id: client.id,
        redirect_uri: redirectUri,
        scope: options['oidc.scopes'].join(' '),
        state: derived('state', secret),
        nonce: derived('nonce', secret),
        code_challenge: createHash('sha256').update(derived('verifier', secret)).digest('base64url'),
        code_challenge_method: 'S256',
      };
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return url.href;
    },
    async finish(secret, query, redirectUri, source) {
      const code = codeIn(secret, query);
      return turn(source, async () => {
        const grant = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: derived('verifier', secret!) };
        const tokens = await tokensFor(grant);
        await checkIdToken(tokens.idToken, derived('nonce', secret!));
        return loginOf(tokens);
      }).catch(failed);
    },
  };
}
