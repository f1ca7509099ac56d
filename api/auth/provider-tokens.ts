/** The signatures and the common claims of the OpenID provider's tokens (RFC 7519). */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { fetchKeys, type KeySet, type OpenIdProvider } from '../../wire/http/openid';
import { Unauthenticated } from '../http/errors';
import { invalidToken } from './accept-tokens';
import { createProviderKeys } from './provider-keys';

/** A dynamic import, because the package has ES modules only. */
const loadJose = () => import('jose');
type Jose = Awaited<ReturnType<typeof loadJose>>;

export type ProviderOptions = Pick<Options, 'oidc.algorithms' | 'oidc.cafile' | 'oidc.clock_tolerance' | 'oidc.issuer' | 'oidc.timeout'>;
export interface ProviderParts<Some extends ProviderOptions> {
  readonly options: Some;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Fetches the keys. Absent: from the provider. */
  readonly fetch?: () => Promise<KeySet>;
}
export type Claims = Readonly<Record<string, unknown>>;
interface VerifiedToken {
  readonly claims: Claims & { readonly exp: number };
  /** `typ` of the header. */
  readonly type: unknown;
}
/** @throws Unauthenticated */
type VerifyToken = (token: string, audience: readonly string[]) => Promise<VerifiedToken>;

export const providerOf = (options: ProviderOptions): OpenIdProvider => ({
  issuer: options['oidc.issuer']!,
  caFile: options['oidc.cafile'],
  timeoutMs: options['oidc.timeout'] * 1000,
});

export function createTokenVerifier({ options, clock, log, signal, fetch }: ProviderParts<ProviderOptions>): VerifyToken {
  const provider = providerOf(options);
  const tolerance = options['oidc.clock_tolerance'];
  let loading: Promise<Jose> | undefined;
  const jose = (): Promise<Jose> => (loading ??= loadJose());
  const keys = createProviderKeys(
    async () => {
      const set = await (fetch ?? (() => fetchKeys(provider, signal)))();
      return (await jose()).createLocalJWKSet(set as unknown as Parameters<Jose['createLocalJWKSet']>[0]);
    },
    clock,
    log,
  );

  return async (token, audience) => {
    const { jwtVerify, errors } = await jose();
    const current = await keys.current();
    try {
      const { payload, protectedHeader } = await jwtVerify(
        token,
        async (header, given) => {
          try {
            return await current(header, given);
          } catch (error) {
            const newer = error instanceof errors.JWKSNoMatchingKey ? await keys.newer(current) : undefined;
            if (!newer) throw error;
            return newer(header, given);
          }
        },
        {
          issuer: provider.issuer,
          audience: [...audience],
          algorithms: [...options['oidc.algorithms']],
          clockTolerance: tolerance,
          requiredClaims: ['exp', 'iat', 'iss', 'aud'],
          currentDate: new Date(clock.now()),
        },
      );
      const claims = payload as Claims & { readonly exp: number; readonly iat: number };
      // jose checks that `iat` is not in the future only if a maximum age is given.
      if (claims.iat * 1000 > clock.now() + tolerance * 1000) throw invalidToken();
      return { claims, type: protectedHeader.typ };
    } catch (error) {
      if (error instanceof Unauthenticated) throw error;
      // Malformed, signed by another key, for another audience, expired, and the like.
      throw invalidToken();
    }
  };
}
