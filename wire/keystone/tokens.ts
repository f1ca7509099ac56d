/** Validation of the tokens of callers: Identity API v3, `GET /v3/auth/tokens`. */
import { isObject } from '../../model/json';
import { listOf, textOf, type ServiceSelector } from './catalog';
import { KeystoneError, responseText, type KeystoneSession } from './session';

/** A rule of an application credential: which requests its tokens may make. */
export interface AccessRule {
  /** Type of the service. */
  readonly service: string;
  readonly method: string;
  /** With `*`, `**` and `{name}`. */
  readonly path: string;
}
interface NamedDomain {
  readonly id: string | null;
  readonly name: string | null;
}
export interface TokenContents {
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly user: NamedDomain & { readonly domain: NamedDomain };
  /** At most one of these is the scope. */
  readonly project: (NamedDomain & { readonly domain: NamedDomain }) | null;
  readonly domain: NamedDomain | null;
  readonly isSystem: boolean;
  /** True unless Keystone names another project as that of administrators. */
  readonly isAdminProject: boolean;
  /** Names as in Keystone. */
  readonly roles: readonly string[];
  /** Null: every request is allowed. */
  readonly accessRules: readonly AccessRule[] | null;
  /** Types of the services in the catalog. */
  readonly serviceTypes: readonly string[];
}

const domainOf = (value: unknown): NamedDomain => {
  const { id, name } = isObject(value) ? value : {};
  return { id: textOf(id), name: textOf(name) };
};
const ownedOf = (value: Readonly<Record<string, unknown>>) => ({ ...domainOf(value), domain: domainOf(value['domain']) });

/** Most characters of all rules of a token. More than a hundred of the longest rules fit. */
const MAX_RULE_TEXT = 32 * 1024;
/** Rules that are not understood, and too many of them, allow nothing. */
function accessRulesOf(credential: unknown): readonly AccessRule[] | null {
  const rules = isObject(credential) ? credential['access_rules'] : undefined;
  if (rules === undefined || rules === null) return null;
  const known = listOf(rules).flatMap(({ service, method, path }) =>
    typeof service === 'string' && typeof method === 'string' && typeof path === 'string' ? [{ service, method, path }] : [],
  );
  const length = known.reduce((sum, { service, method, path }) => sum + service.length + method.length + path.length, 0);
  return length > MAX_RULE_TEXT ? [] : known;
}

/** @returns undefined: these are not the contents of a token */
function contentsOf(body: unknown): TokenContents | undefined {
  const token = isObject(body) ? body['token'] : undefined;
  if (!isObject(token) || !isObject(token['user'])) return undefined;
  const { user, project, domain, system, roles, expires_at: expires, application_credential: credential, catalog } = token;
  const expiresAt = Date.parse(String(expires));
  const contents = {
    expiresAt,
    user: ownedOf(user),
    project: isObject(project) ? ownedOf(project) : null,
    domain: isObject(domain) ? domainOf(domain) : null,
    isSystem: isObject(system) && system['all'] === true,
    isAdminProject: token['is_admin_project'] === undefined || token['is_admin_project'] === true,
    roles: listOf(roles).flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    accessRules: accessRulesOf(credential),
    serviceTypes: listOf(catalog).flatMap(({ type }) => (typeof type === 'string' ? [type] : [])),
  };
  const scopes = [contents.project?.id, contents.domain?.id, contents.isSystem || undefined].filter((scope) => scope !== undefined);
  return Number.isFinite(expiresAt) && contents.user.id !== null && scopes.length <= 1 ? contents : undefined;
}

interface ValidationOptions {
  /** Also tokens that have expired, as long as Keystone's `allow_expired_window` allows. */
  readonly allowExpired: boolean;
  /** Without it, `serviceTypes` is empty. */
  readonly withCatalog: boolean;
}
/**
 * @param identity how the Identity API is found
 * @returns undefined: the token is not valid
 * @throws KeystoneError
 */
export async function validateToken(
  session: KeystoneSession,
  identity: Omit<ServiceSelector, 'serviceType' | 'version'>,
  token: string,
  { allowExpired, withCatalog }: ValidationOptions,
): Promise<TokenContents | undefined> {
  const query = [...(withCatalog ? [] : ['nocatalog']), ...(allowExpired ? ['allow_expired=1'] : [])];
  const response = await session.request(
    { ...identity, serviceType: 'identity', version: 'v3' },
    `/auth/tokens${query.length > 0 ? `?${query.join('&')}` : ''}`,
    // Without the last header, Keystone hides tokens with access rules.
    { method: 'GET', headers: { 'x-subject-token': token, 'openstack-identity-access-rules': '1' } },
  );
  if (response.status === 404) return undefined;
  if (response.status !== 200) throw new KeystoneError('failing', `the validation of a token: ${responseText(response, [token])}`);
  // The response may be a proxy's page.
  if (!isObject(response.body) || response.body['token'] === undefined)
    throw new KeystoneError('failing', 'the validation of a token: the response describes no token');
  return contentsOf(response.body);
}
