/** Why a rule allows something or not, for operators. */
import type { Caller } from './caller';
import { effectiveRules, isPermitted, scopeOf, serviceProjectOf, type FileRules, type PolicyOptions } from './enforcer';
import { compileRule, formatRule, type Rule } from './language';
import { compileRules, ruleNamed } from './rule-set';
import { POLICIES } from './rules';
import { createVocabulary, resourceOf, type Target } from './vocabulary';

/** An alternative of a rule, and the check in it that decided. */
interface Clause {
  /** The alternative, as in policy files. */
  readonly text: string;
  /** The check that decided, after the rules that refer to it: `rule:a → role:b`. */
  readonly decided: string;
  readonly passed: boolean;
}
export interface Explanation {
  readonly allowed: boolean;
  /** The rule in effect. */
  readonly rule: string;
  /** Why the scope of the caller does not fit; absent: it fits. */
  readonly scope?: string | undefined;
  /** The first alternative that passes, or all alternatives if none passes. */
  readonly clauses: readonly Clause[];
}

/** @param name of a rule, as in policy files; @throws RuleError */
export function explain(options: PolicyOptions, files: FileRules, name: string, caller: Caller, target: Target | undefined): Explanation {
  const set = effectiveRules(options, files);
  const vocabulary = createVocabulary(resourceOf(name.replace(/^baremetal:/, '')), serviceProjectOf(options));
  const refer = compileRules(set, vocabulary);
  const allows = (rule: Rule): boolean => isPermitted(compileRule(rule, vocabulary, refer), caller, target);
  /** The checks that decided, as text. */
  const deciding = (rule: Rule): string => {
    switch (rule.kind) {
      case 'rule': {
        const referred = ruleNamed(set, rule.name);
        return referred ? `rule:${rule.name} → ${deciding(referred)}` : `rule:${rule.name}, which does not exist`;
      }
      case 'not':
        return `not ${deciding(rule.rule)}`;
      // For `or` the first member that passes decides, for `and` the first that does not. If there is none, all members decide.
      case 'and':
      case 'or': {
        const decisive = rule.rules.find((member) => allows(member) === (rule.kind === 'or'));
        return decisive ? deciding(decisive) : rule.rules.map(deciding).join(` ${rule.kind} `);
      }
      default:
        return formatRule(rule);
    }
  };
  const rule = ruleNamed(set, name) ?? { kind: 'never' };
  const alternatives = alternativesOf(rule);
  const passed = alternatives.find(allows);
  const clauses = (passed ? [passed] : alternatives).map((alternative) => ({
    text: formatRule(alternative),
    decided: deciding(alternative),
    passed: alternative === passed,
  }));
  const scopes = POLICIES.find((row) => row.name === name)?.scopes ?? [];
  const scope = scopeOf(caller);
  const fits = scopes.length === 0 || !options['oslo_policy.enforce_scope'] || (scopes as readonly string[]).includes(scope);
  return {
    allowed: fits && passed !== undefined,
    rule: formatRule(rule),
    scope: fits ? undefined : `it is for the scope ${scopes.join(' or ')}, and the caller has the scope ${scope}`,
    clauses,
  };
}
/** Nested alternatives are alternatives of the whole. */
const alternativesOf = (rule: Rule): readonly Rule[] => (rule.kind === 'or' ? rule.rules.flatMap(alternativesOf) : [rule]);
