/** What the rules of the API may name: the credentials of a caller, and the projects of a resource. */
import { NOBODY, type Caller } from './caller';
import { checksOf, RuleError, type Rule, type PolicyValue, type Vocabulary } from './language';

/** The projects that a resource belongs to. An empty text is no project. */
export interface Target {
  readonly owner: string | null;
  readonly lessee: string | null;
}
/** Ironic's targets have the name of a resource: `node.owner`. */
const RESOURCES = ['node', 'allocation', 'runbook', 'snapshot', 'erasure'] as const;
export type Resource = (typeof RESOURCES)[number];

/** Ports, volumes, steps and the like belong to the projects of their node. */
export const resourceOf = (policy: string): Resource => RESOURCES.find((resource) => policy.startsWith(`${resource}:`)) ?? 'node';

const CREDENTIALS: ReadonlyMap<string, (caller: Caller) => PolicyValue> = new Map<string, (caller: Caller) => PolicyValue>([
  ['user_id', ({ user }) => user],
  ['user_domain_id', ({ userDomain }) => userDomain],
  ['project_id', ({ project }) => project || null],
  ['project_name', ({ projectName }) => projectName || null],
  ['project_domain_id', ({ projectDomain }) => projectDomain],
  ['domain_id', ({ domain }) => domain],
  ['system_scope', ({ system }) => (system ? 'all' : null)],
  ['system', ({ system }) => (system ? 'all' : undefined)],
  ['roles', ({ roles }) => roles],
  ['is_admin_project', ({ isAdminProject }) => isAdminProject ?? true],
  ['is_public_api', (caller) => caller === NOBODY],
  ['service_user_id', ({ service }) => service?.user ?? null],
  ['service_user_domain_id', ({ service }) => service?.userDomain ?? null],
  ['service_project_id', ({ service }) => service?.project ?? null],
  ['service_project_domain_id', ({ service }) => service?.projectDomain ?? null],
  ['service_roles', ({ service }) => service?.roles ?? []],
]);
/** The name of the project whose services have the rights of the system. */
const SERVICE_PROJECT = 'config.service_project_name';

const rolesOf = ({ roles }: Caller): readonly string[] => roles;

/** @param serviceProject null: services have no such rights */
export function createVocabulary(resource: Resource, serviceProject: string | null): Vocabulary<Caller, Target | undefined> {
  return {
    roles: rolesOf,
    credential: (name) => CREDENTIALS.get(name),
    target: (name) => {
      if (name === SERVICE_PROJECT) return serviceProject ? () => serviceProject : undefined;
      if (name === `${resource}.owner`) return (_caller, target) => target && (target.owner || null);
      // As in Ironic, a target without a lessee does not have this value; in a target without an owner, the owner is null.
      if (name === `${resource}.lessee`) return (_caller, target) => target?.lessee || undefined;
      return name === 'system' ? undefined : CREDENTIALS.get(name);
    },
  };
}

/** @throws RuleError for a rule about a member of a credential: the values of credentials have no members */
export function checkCredentials(rule: Rule): void {
  for (const check of checksOf(rule))
    if (check.kind === 'credential' && check.path.length > 1 && CREDENTIALS.has(check.path[0]!))
      throw new RuleError(`"${check.path.join('.')}": ${check.path[0]!} has no members`);
}

const TARGETS: ReadonlySet<string> = new Set([
  SERVICE_PROJECT,
  'node.owner',
  'node.lessee',
  'allocation.owner',
  'runbook.owner',
  'snapshot.owner',
  'erasure.owner',
  'erasure.lessee',
]);
/** Credentials and values of targets that a rule names, and that no caller and no resource has. */
export function unknownNames(rule: Rule): readonly string[] {
  const names = checksOf(rule).flatMap((check) => [
    ...(check.kind === 'credential' && !CREDENTIALS.has(check.path[0]!) ? [check.path.join('.')] : []),
    ...('match' in check
      ? check.match.names.filter((name) => !TARGETS.has(name) && !CREDENTIALS.has(name)).map((name) => `%(${name})s`)
      : []),
  ]);
  return [...new Set(names)];
}
