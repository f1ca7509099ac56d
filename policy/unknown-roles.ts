/** Roles that the configuration grants, and that no rule names: they give their callers nothing. */
import type { Options } from '../config/options';
import { suggestionFor } from '../config/suggestion';
import { effectiveRules, type FileRules, type PolicyOptions } from './enforcer';
import { withImpliedRoles } from './implied-roles';
import { checksOf } from './language';

export type GrantOptions = Pick<Options, 'oidc.issuer' | 'oidc.system_roles' | 'oidc.project_roles'>;

/** Undefined: a rule compares roles with a value of the target, so that any role may count. */
function namedRoles(options: PolicyOptions, files: FileRules): ReadonlySet<string> | undefined {
  const roles = [...effectiveRules(options, files).rules.values()].flatMap(checksOf).filter((check) => check.kind === 'role');
  return roles.some(({ match }) => match.names.length > 0) ? undefined : new Set(roles.map(({ match }) => match.texts[0]!.toLowerCase()));
}

/** A line for each role of `[oidc]` that no rule names. */
export function unknownRoles(options: PolicyOptions & GrantOptions, files: FileRules): readonly string[] {
  const named = options['oidc.issuer'] === null ? undefined : namedRoles(options, files);
  if (!named) return [];
  return (['system_roles', 'project_roles'] as const).flatMap((option) =>
    [...new Set(Object.values(options[`oidc.${option}`]))]
      .filter((role) => !withImpliedRoles([role]).some((withImpliedRole) => named.has(withImpliedRole)))
      .map((role) => {
        const meant = suggestionFor(role.toLowerCase(), [...named]);
        return `[oidc]${option}: no rule names the role ${role}${meant === undefined ? '' : `; did you mean ${meant}?`}`;
      }),
  );
}
