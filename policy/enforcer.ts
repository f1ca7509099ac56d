/** Decides what a caller may do, by the rules of policies and those of the operator. */
import type { Options } from '../config/options';
import type { Caller } from './caller';
import { formatRule, parseRule, type PolicyCheck, type Rule } from './language';
import { checkReferences, compileRules, type RuleSet } from './rule-set';
import { POLICIES, type PolicyRow } from './rules';
import { createVocabulary, resourceOf, type Resource, type Target } from './vocabulary';

/** Ironic's rule names have this prefix in policy files, but not in openapi.yaml. */
const PREFIX = 'baremetal:';
/** The rules of single steps. Only rules that operators define exist. */
const STEP = 'step:execute:';
export const STEP_RULE = PREFIX + STEP;

/** @param policy without `baremetal:` */
export const isPolicy = (policy: string): boolean => POLICIES.some(({ name }) => name === PREFIX + policy || name === policy);

export interface Enforcer {
  /**
   * @param policy without `baremetal:`. A step (`step:execute:…`) that no rule of the operator names is allowed
   * @param target absent: whether the caller may do this to any resource
   */
  allowed(caller: Caller, policy: string, target?: Target): boolean;
}
/** The rules of the operator's files, by name. */
export type FileRules = ReadonlyMap<string, Rule>;

interface Policy {
  readonly check: PolicyCheck<Caller, Target | undefined>;
  readonly system: boolean;
  readonly project: boolean;
  readonly domain: boolean;
}

export type PolicyOptions = Pick<
  Options,
  | 'oslo_policy.enforce_scope'
  | 'oslo_policy.enforce_new_defaults'
  | 'oslo_policy.policy_default_rule'
  | 'DEFAULT.rbac_service_role_elevated_access'
  | 'DEFAULT.rbac_service_project_name'
>;

/** The rule of a policy that no file replaces. */
function defaultOf({ name, check, former }: PolicyRow, files: FileRules, newOnly: boolean): Rule {
  const rule = parseRule(check);
  if (!former) return rule;
  const formerRule = parseRule(former.check);
  // A file that replaces the former rule replaces this one too, unless the replacement repeats a default.
  const replaced = former.name === undefined ? undefined : files.get(former.name);
  const text = replaced && formatRule(replaced);
  if (replaced && text !== formatRule(formerRule) && text !== `rule:${name}`) return replaced;
  return newOnly || former.check === check ? rule : { kind: 'or', rules: [rule, formerRule] };
}

/** All rules in effect, by name: those of the files, and the defaults of the others. */
export function effectiveRules(options: PolicyOptions, files: FileRules): RuleSet {
  const newOnly = options['oslo_policy.enforce_new_defaults'];
  const rules = new Map(files);
  for (const row of POLICIES) if (!rules.has(row.name)) rules.set(row.name, defaultOf(row, files, newOnly));
  return { rules, defaultRule: options['oslo_policy.policy_default_rule'] };
}

/** The project whose services have the rights of the system. */
export const serviceProjectOf = (options: PolicyOptions): string | null =>
  options['DEFAULT.rbac_service_role_elevated_access'] ? options['DEFAULT.rbac_service_project_name'] : null;

/**
 * The policies by the name that the API uses.
 * @throws RuleError
 */
export function compilePolicies(options: PolicyOptions, files: FileRules): ReadonlyMap<string, Policy> {
  const set = effectiveRules(options, files);
  checkReferences(set);
  const serviceProject = serviceProjectOf(options);
  const compiled = new Map<Resource, (name: string) => Policy['check']>();
  const checkOf = (policy: string, name: string): Policy['check'] => {
    const resource = resourceOf(policy);
    let checks = compiled.get(resource);
    if (!checks) compiled.set(resource, (checks = compileRules(set, createVocabulary(resource, serviceProject))));
    return checks(name);
  };
  const policies = new Map<string, Policy>();
  for (const name of files.keys()) {
    if (!name.startsWith(STEP_RULE)) continue;
    const policy = name.slice(PREFIX.length);
    policies.set(policy, { check: checkOf(policy, name), system: true, project: true, domain: true });
  }
  for (const { name, scopes } of POLICIES) {
    const policy = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
    const any = scopes.length === 0 || !options['oslo_policy.enforce_scope'];
    const [system, project] = [any || scopes.includes('system'), any || scopes.includes('project')];
    policies.set(policy, { check: checkOf(policy, name), system, project, domain: any });
  }
  return policies;
}

/** As in oslo.policy, a caller whose scope is neither the system nor a domain has the scope of a project. */
export const scopeOf = ({ system, domain }: Caller): 'system' | 'project' | 'domain' =>
  system ? 'system' : domain === null ? 'project' : 'domain';

const hasText = (value: string | null): boolean => value !== null && value !== '';
/**
 * In Ironic, a caller without a project owns the resources that have no owner, because both values are None. Here such a caller must also
 * pass the check without a target.
 */
export const isPermitted = (check: Policy['check'], caller: Caller, target: Target | undefined): boolean =>
  check(caller, target) && (hasText(caller.project) || !target || hasText(target.owner) || check(caller, undefined));

export interface ReplaceableEnforcer extends Enforcer {
  replace(policies: ReadonlyMap<string, Policy>): void;
}
/** @throws RuleError */
export const createEnforcer = (options: PolicyOptions, files: FileRules = new Map()): ReplaceableEnforcer =>
  enforcerOf(compilePolicies(options, files));
export function enforcerOf(given: ReadonlyMap<string, Policy>): ReplaceableEnforcer {
  let policies = given;
  return {
    allowed: (caller, policy, target) => {
      const found = policies.get(policy);
      return found ? found[scopeOf(caller)] && isPermitted(found.check, caller, target) : policy.startsWith(STEP);
    },
    replace: (others) => {
      policies = others;
    },
  };
}
