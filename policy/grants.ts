/** The roles and the scope of callers that Keystone does not know: users of http_basic, tokens of our own, OpenID Connect. */
import { NOBODY, type Caller } from './caller';
import { withImpliedRoles } from './implied-roles';

type Scope = Pick<Caller, 'project' | 'projectName' | 'projectDomain' | 'domain' | 'system'>;
/** The roles and the scope of a caller. */
export type Grant = Pick<Caller, 'roles'> & Scope;

export const NO_GRANT: Grant = {
  roles: NOBODY.roles,
  project: NOBODY.project,
  projectName: NOBODY.projectName,
  projectDomain: NOBODY.projectDomain,
  domain: NOBODY.domain,
  system: NOBODY.system,
};

/** The most characters of an id or a name, and the most entries of a list. */
const MAX_CHARACTERS = 255;
const MAX_ROLES = 100;
/** Whether it is an id or a name that a column of the database can hold. */
export const isName = (value: unknown): value is string =>
  // eslint-disable-next-line no-control-regex -- control characters are refused
  typeof value === 'string' && value.length > 0 && value.length <= MAX_CHARACTERS && !/[\u0000-\u001f\u007f]/.test(value);

/** Text → one member of a grant. Throws an Error that says what was expected. */
function nameOf(text: string): string {
  if (!isName(text)) throw new Error(`must be an id or a name of at most ${MAX_CHARACTERS} characters`);
  return text;
}
function rolesOf(text: string): readonly string[] {
  const roles = text
    .split(',')
    .map((role) => role.trim())
    .filter((role) => role !== '');
  if (roles.length > MAX_ROLES || !roles.every(isName)) throw new Error(`must be at most ${MAX_ROLES} roles, separated by commas`);
  return withImpliedRoles(roles);
}
function systemOf(text: string): boolean {
  if (text !== 'all') throw new Error('must be all, or absent');
  return true;
}
/** The options of a grant, as files and commands write them. */
export const GRANT_OPTIONS = {
  roles: (text: string) => ({ roles: rolesOf(text) }),
  project: (text: string) => ({ project: nameOf(text) }),
  project_name: (text: string) => ({ projectName: nameOf(text) }),
  project_domain: (text: string) => ({ projectDomain: nameOf(text) }),
  domain: (text: string) => ({ domain: nameOf(text) }),
  system: (text: string) => ({ system: systemOf(text) }),
} as const satisfies Readonly<Record<string, (text: string) => Partial<Grant>>>;

/** What is wrong with the scope of a grant; undefined: nothing. */
export function scopeProblem({ project, projectName, projectDomain, domain, system }: Grant): string | undefined {
  if ([project !== null, domain !== null, system].filter(Boolean).length > 1) return 'only one of project, domain and system can be given';
  return project === null && (projectName ?? projectDomain) !== null ? 'project_name and project_domain need project' : undefined;
}
