/** Tokens of an OpenID provider ([oidc]): signed JWTs (RFC 7519, RFC 9068) whose claims say who the caller is. */
import { createHash } from 'node:crypto';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { NOBODY, type Caller } from '../../policy/caller';
import { isName } from '../../policy/grants';
import { withImpliedRoles } from '../../policy/implied-roles';
import { fetchKeys, type KeySet } from '../../wire/http/openid';
import { Unauthenticated } from '../http/errors';
import { invalidToken, type TokenKind } from './beside';
import { createProviderKeys } from './provider-keys';
import { remember } from './remember';

/** The package has ES modules only. */
const loadJose = () => import('jose');
type Jose = Awaited<ReturnType<typeof loadJose>>;

type OidcOptions = Pick<
  Options,
  | 'oidc.algorithms'
  | 'oidc.audience'
  | 'oidc.cafile'
  | 'oidc.clock_tolerance'
  | 'oidc.issuer'
  | 'oidc.project_claim'
  | 'oidc.project_roles'
  | 'oidc.roles_claim'
  | 'oidc.system_roles'
  | 'oidc.timeout'
  | 'oidc.user_claim'
  | 'oidc.user_name_claim'
>;
type Claims = Readonly<Record<string, unknown>>;

/** Longer tokens are refused before anything of them is read. */
const MOST_TOKEN_CHARACTERS = 12_288;
const MOST_ROLES = 1000;
/** Verified tokens and when they expire here; the signature is not verified again meanwhile. */
const CACHE_TTL_MS = 60_000;
const CACHE_SIZE = 4096;

/** `a.b` is the member of that name, or else the member b of the object a. */
function claimOf(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) => (typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Claims)[name] : undefined),
      claims,
    );
}

/** @throws Unauthenticated for a value of another type */
function nameIn(claims: Claims, path: string | null): string | null {
  const value = path === null ? undefined : claimOf(claims, path);
  if (value === undefined || value === null) return null;
  if (!isName(value)) throw invalidToken();
  return value;
}
/** A list of texts, or one text with spaces between (RFC 8693 §4.2). @throws Unauthenticated for a value of another type */
function namesIn(claims: Claims, path: string): readonly string[] {
  const value = claimOf(claims, path) ?? [];
  const names: unknown = typeof value === 'string' ? value.split(' ').filter((name) => name !== '') : value;
  if (!Array.isArray(names) || names.length > MOST_ROLES || !names.every(isName)) throw invalidToken();
  return names;
}

/** Roles of the system and of the project never mix: a caller has one scope. */
function grantOf(claims: Claims, options: OidcOptions): Pick<Caller, 'roles' | 'project' | 'system'> {
  const values = namesIn(claims, options['oidc.roles_claim']);
  const project = nameIn(claims, options['oidc.project_claim']);
  const rolesBy = (map: Readonly<Record<string, string>>): readonly string[] =>
    withImpliedRoles(values.flatMap((value) => (Object.hasOwn(map, value) ? map[value]! : [])));
  const ofSystem = rolesBy(options['oidc.system_roles']);
  if (ofSystem.length > 0) return { roles: ofSystem, project: null, system: true };
  return { roles: project === null ? [] : rolesBy(options['oidc.project_roles']), project, system: false };
}
/** @throws Unauthenticated */
function callerOf(claims: Claims, options: OidcOptions): Caller {
  const user = nameIn(claims, options['oidc.user_claim']);
  if (user === null) throw invalidToken();
  return { ...NOBODY, user, userName: nameIn(claims, options['oidc.user_name_claim']) ?? user, ...grantOf(claims, options) };
}

/** RFC 9068 §4: `at+jwt`. Many providers write `JWT`, or nothing. Other types are no access tokens, such as `logout+jwt` (RFC 8725 §3.11). */
const ACCESS_TOKEN = /^(?:(?:application\/)?at\+jwt|jwt)$/i;
/** Keycloak has the type of its tokens in a claim: `Bearer`, `ID`, `Refresh`, `Logout`. */
const isAccessToken = (type: unknown, { typ: claimed }: Claims): boolean =>
  (type === undefined || (typeof type === 'string' && ACCESS_TOKEN.test(type))) && (claimed === undefined || claimed === 'Bearer');

interface OidcParts {
  readonly options: OidcOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Absent: from the provider. */
  readonly fetch?: () => Promise<KeySet>;
}
export function oidc({ options, clock, log, signal, fetch }: OidcParts): TokenKind {
  const issuer = options['oidc.issuer']!;
  const provider = { issuer, caFile: options['oidc.cafile'], timeoutMs: options['oidc.timeout'] * 1000 };
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
  /** The verified tokens by their hashes, the oldest first. */
  const verified = new Map<string, { readonly caller: Caller; readonly until: number }>();

  async function claimsOf(token: string): Promise<Claims & { readonly exp: number }> {
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
          issuer,
          audience: [...options['oidc.audience']],
          algorithms: [...options['oidc.algorithms']],
          clockTolerance: options['oidc.clock_tolerance'],
          requiredClaims: ['exp', 'iat', 'iss', 'aud'],
          currentDate: new Date(clock.now()),
        },
      );
      if (!isAccessToken(protectedHeader.typ, payload)) throw invalidToken();
      return payload as Claims & { readonly exp: number };
    } catch (error) {
      if (error instanceof Unauthenticated) throw error;
      // Malformed, signed by another key, for another audience, expired, and the like.
      throw invalidToken();
    }
  }
  async function verify(token: string, hash: string): Promise<Caller> {
    const claims = await claimsOf(token);
    const now = clock.now();
    // jose does not check it without a maximum age.
    if ((claims['iat'] as number) * 1000 > now + options['oidc.clock_tolerance'] * 1000) throw invalidToken();
    const caller = callerOf(claims, options);
    const end = (claims.exp + options['oidc.clock_tolerance']) * 1000;
    remember(verified, hash, { caller, until: Math.min(end, now + CACHE_TTL_MS) }, CACHE_SIZE);
    return caller;
  }

  return {
    matches: ({ header }) => header === 'authorization',
    async identify(token) {
      if (token.length > MOST_TOKEN_CHARACTERS) throw invalidToken();
      const hash = createHash('sha256').update(token).digest('base64');
      const known = verified.get(hash);
      return known && known.until > clock.now() ? known.caller : verify(token, hash);
    },
  };
}
