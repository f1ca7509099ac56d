/** Roles of callers that Keystone does not know. */
import { suggestionFor } from '../config/suggestion';

/** Roles that include others, as Keystone sets them up by default: whoever has admin also has manager, member and reader. */
const ORDER = ['admin', 'manager', 'member', 'reader'];
/** The roles that default rules name. */
export const DEFAULT_ROLES: readonly string[] = [...ORDER, 'service'];

/** The roles in lower case, each once, with those that they include. */
export function withImpliedRoles(roles: readonly string[]): readonly string[] {
  const all = roles.map((role) => role.toLowerCase()).flatMap((role) => (ORDER.includes(role) ? ORDER.slice(ORDER.indexOf(role)) : [role]));
  return [...new Set(all)];
}

/** Warnings about roles that look like misspelt roles of the default rules. Other names are roles of policy files. */
export const misspeltRoles = (roles: readonly string[]): readonly string[] =>
  roles.flatMap((role) => {
    const meant = suggestionFor(role, DEFAULT_ROLES);
    return meant === undefined || meant === role ? [] : [`no default rule names the role ${role}; did you mean ${meant}?`];
  });
