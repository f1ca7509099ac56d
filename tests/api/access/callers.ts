/** The callers of the sweep: each role in each scope, and callers whose scope or roles give nothing. */
import { withImpliedRoles } from '../../../policy/implied-roles';

export interface Scope {
  readonly roles: readonly string[];
  /** Absent: the caller has no project. */
  readonly project?: string;
  readonly system?: true;
  readonly domain?: string;
}
export interface TestCaller extends Scope {
  readonly name: string;
}
/** The projects of nodes, and of callers. */
export const [OWNER, LESSEE, SERVICES] = ['p-owner', 'p-lessee', 'p-services'] as const;

const ROLES = ['admin', 'manager', 'member', 'reader', 'service'];
const each = (of: string, roles: readonly string[], scope: Omit<Scope, 'roles'>): readonly TestCaller[] =>
  roles.map((role) => ({ ...scope, name: `${role} of ${of}`, roles: withImpliedRoles([role]) }));
export const CALLERS: readonly TestCaller[] = [
  ...each('the system', ROLES, { system: true }),
  ...each('the owner', ROLES, { project: OWNER }),
  ...each('the lessee', ROLES, { project: LESSEE }),
  ...each('another project', ['admin', 'reader'], { project: 'p-other' }),
  ...each('the services', ['service', 'admin'], { project: SERVICES }),
  ...each('the project None', ['admin'], { project: 'None' }),
  ...each('a domain', ['admin'], { domain: 'd' }),
  ...each('no project', ['admin'], {}),
  { name: 'nobody in the owner’s project', roles: [], project: OWNER },
  { name: 'nobody in the system', roles: [], system: true },
  { name: 'nobody', roles: [] },
];

/** The sections of [DEFAULT]http_basic_roles_file. */
export const rolesFile = (): string =>
  CALLERS.map(({ roles, project, system, domain }, index) =>
    [
      `[caller-${index}]`,
      ...(roles.length > 0 ? [`roles = ${roles.join(', ')}`] : []),
      ...(project === undefined ? [] : [`project = ${project}`, `project_name = ${project}`]),
      ...(system ? ['system = all'] : []),
      ...(domain === undefined ? [] : [`domain = ${domain}`]),
    ].join('\n'),
  ).join('\n');
