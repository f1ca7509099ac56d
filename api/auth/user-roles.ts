/** [DEFAULT]http_basic_roles_file: roles and scopes of the users of http_basic, in the format of ironic.conf with one section per user. */
import { parseIni, strip } from '../../config/ini';
import { GRANT_OPTIONS, NO_GRANT, scopeProblem, type Grant } from '../../policy/grants';

interface UserRoles extends Grant {
  /** Id of the domain of the user. */
  readonly userDomain: string | null;
}
const OPTIONS: Readonly<Record<string, (text: string) => Partial<UserRoles>>> = {
  ...GRANT_OPTIONS,
  user_domain: (text) => ({ userDomain: GRANT_OPTIONS.domain(text).domain }),
};
export const NO_ROLES: UserRoles = { ...NO_GRANT, userDomain: null };

/** User → roles and scope. Throws an Error that names the line. */
export function parseUserRoles(text: string): ReadonlyMap<string, UserRoles> {
  const users = new Map<string, UserRoles>();
  const given = new Set<string>();
  const lines = new Map<string, number>();
  for (const { section: written, key, value, line } of parseIni(text)) {
    const section = strip(written);
    const read = Object.hasOwn(OPTIONS, key) ? OPTIONS[key] : undefined;
    if (!read) throw new Error(`line ${line}: "${key.slice(0, 60)}" must be one of ${Object.keys(OPTIONS).join(', ')}`);
    const name = JSON.stringify([section, key]);
    if (given.has(name)) throw new Error(`line ${line}: ${key} of ${section} is given a second time`);
    given.add(name);
    try {
      users.set(section, { ...(users.get(section) ?? NO_ROLES), ...read(value) });
    } catch (error) {
      throw new Error(`line ${line}: ${key} of ${section} ${(error as Error).message}`, { cause: error });
    }
    lines.set(section, line);
  }
  for (const [user, roles] of users) {
    const problem = scopeProblem(roles);
    if (problem !== undefined) throw new Error(`line ${lines.get(user)}: ${user}: ${problem}`);
  }
  return users;
}
