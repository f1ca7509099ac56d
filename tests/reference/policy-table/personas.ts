/** The callers of the policy table: each role in each scope, of the owner and the lessee of nodes and of a project without any. */

export interface Persona {
  readonly name: string;
  /** With the roles that Keystone adds. */
  readonly roles: readonly string[];
  /** Absent: the scope is the system. */
  readonly project?: string;
}
export const [OWNER, LESSEE, OTHER] = ['project-owner', 'project-lessee', 'project-other'] as const;

const INCLUDED = ['admin', 'manager', 'member', 'reader'];
const withIncluded = (role: string): readonly string[] => (INCLUDED.includes(role) ? INCLUDED.slice(INCLUDED.indexOf(role)) : [role]);
const LETTERS: Readonly<Record<string, string>> = { R: 'reader', M: 'member', G: 'manager', A: 'admin', S: 'service', N: 'nothing' };
const of = (scope: string, letters: string, project?: string): readonly Persona[] =>
  letters.split('').map((letter) => ({
    name: scope + letter,
    roles: withIncluded(LETTERS[letter]!),
    ...(project === undefined ? {} : { project }),
  }));

export const PERSONAS: readonly Persona[] = [
  ...of('S', 'RMAS'),
  ...of('O', 'RMGASN', OWNER),
  ...of('L', 'RMGAS', LESSEE),
  ...of('X', 'RMAS', OTHER),
  { name: 'SVC', roles: ['service'], project: 'project-service' },
];
/** For rows without an owner, all projects are equal: one project is enough. */
export const WITHOUT_OWNER = PERSONAS.filter(({ name }) => !/^[LX]|^OG/.test(name));
/** A sample for the rows of other states: one of each kind of answer in the rows of `manageable`. */
export const OF_STATES = PERSONAS.filter(({ name }) => ['SR', 'SA', 'OM', 'LM', 'LG', 'XA'].includes(name));
/** The administrator that makes and repairs what the others use. */
export const ADMIN = PERSONAS.find(({ name }) => name === 'SA')!;
