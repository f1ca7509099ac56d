/** Tokens of an OpenID provider ([oidc]): signed JWTs (RFC 7519, RFC 9068) whose claims say who the caller is. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Options } from '../../config/options';
import { NOBODY, type Caller } from '../../policy/caller';
import { isName } from '../../policy/grants';
import { withImpliedRoles } from '../../policy/implied-roles';
import { invalidToken, type TokenKind } from './accept-tokens';
import { createTokenVerifier, type Claims, type ProviderOptions, type ProviderParts } from './provider-tokens';

type OidcOptions = ProviderOptions &
  Pick<
    Options,
    | 'oidc.audience'
    | 'oidc.project_claim'
    | 'oidc.project_roles'
    | 'oidc.roles_claim'
    | 'oidc.system_roles'
    | 'oidc.user_claim'
    | 'oidc.user_name_claim'
  >;

/** Longer tokens are refused before anything of them is read. */
const MAX_TOKEN_CHARACTERS = 12_288;
const MAX_ROLES = 1000;
/** How long a verified token is cached. Its signature is not verified again during this time. */
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
  if (!Array.isArray(names) || names.length > MAX_ROLES || !names.every(isName)) throw invalidToken();
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

/** RFC 9068 §4: `at+jwt`. Many providers write `JWT` or nothing. Others are not access tokens, e.g. `logout+jwt` (RFC 8725 §3.11). */
const ACCESS_TOKEN = /^(?:(?:application\/)?at\+jwt|jwt)$/i;
/** Keycloak writes the type of its tokens into the claim `typ`: `Bearer`, `ID`, `Refresh`, `Logout`. */
const isAccessToken = (type: unknown, { typ: claimed }: Claims): boolean =>
  (type === undefined || (typeof type === 'string' && ACCESS_TOKEN.test(type))) && (claimed === undefined || claimed === 'Bearer');

export function oidc(parts: ProviderParts<OidcOptions>): TokenKind {
  const { options, clock } = parts;
  const verifyToken = createTokenVerifier(parts);
  /** The verified tokens by their hashes. */
  const verified = new LRUCache<string, { readonly caller: Caller; readonly until: number }>({ max: CACHE_SIZE });

  async function verify(token: string, hash: string): Promise<Caller> {
    const { claims, type } = await verifyToken(token, options['oidc.audience']);
    if (!isAccessToken(type, claims)) throw invalidToken();
    const caller = callerOf(claims, options);
    const end = (claims.exp + options['oidc.clock_tolerance']) * 1000;
    verified.set(hash, { caller, until: Math.min(end, clock.now() + CACHE_TTL_MS) });
    return caller;
  }

  return {
    matches: ({ header }) => header === 'authorization',
    async identify(token) {
      if (token.length > MAX_TOKEN_CHARACTERS) throw invalidToken();
      const hash = createHash('sha256').update(token).digest('base64');
      const known = verified.get(hash);
      return known && known.until > clock.now() ? known.caller : verify(token, hash);
    },
  };
}
