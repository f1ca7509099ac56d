/** Roles that include others, as Keystone sets them up by default: whoever has admin also has manager, member and reader. */
const ORDER = ['admin', 'manager', 'member', 'reader'];

/** The roles in lower case, each once, with those that they include. */
export function withImpliedRoles(roles: readonly string[]): readonly string[] {
  const all = roles.map((role) => role.toLowerCase()).flatMap((role) => (ORDER.includes(role) ? ORDER.slice(ORDER.indexOf(role)) : [role]));
  return [...new Set(all)];
}
