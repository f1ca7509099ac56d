/** Rules that refer to each other by name. */
import { checksOf, compileRule, RuleError, type PolicyCheck, type Rule, type Vocabulary } from './language';

export interface RuleSet {
  readonly rules: ReadonlyMap<string, Rule>;
  /** The name of the rule in place of rules that do not exist. If it does not exist either, nobody passes them. */
  readonly defaultRule: string;
}
/** A rule that cannot be used, because it refers to itself or to too many others. */
export class RuleReferenceError extends RuleError {
  constructor(
    /** The names of the rules that refer to each other, in order. */
    readonly names: readonly string[],
    message: string,
  ) {
    super(message);
  }
}

/** The most checks of an evaluation. Their number doubles with each level of rules that refer to another rule twice. */
const MAX_CHECKS = 20_000;
/** The longest chain of rules that refer to rules. */
const MAX_DEPTH = 64;

/** The rule in effect for a name; undefined if nobody passes. */
export const ruleNamed = ({ rules, defaultRule }: RuleSet, name: string): Rule | undefined => rules.get(name) ?? rules.get(defaultRule);

/** @throws RuleReferenceError if a rule refers to itself, also by way of others, or to too many others */
export function checkReferences(set: RuleSet): void {
  /** How many checks the evaluation of a rule takes at most, and how deep its references go. */
  const sizes = new Map<Rule, { readonly checks: number; readonly depth: number }>();
  /** The chain of rules from the first one to the current one, with their names. */
  const under = new Map<Rule, string>();
  const sizeOf = (name: string, rule: Rule): { readonly checks: number; readonly depth: number } => {
    const known = sizes.get(rule);
    if (known) return known;
    const names = [...under.values(), name];
    if (under.has(rule)) {
      const circle = names.slice([...under.keys()].indexOf(rule));
      throw new RuleReferenceError(circle, `it refers to itself: ${circle.join(' → ')}`);
    }
    under.set(rule, name);
    let checks = 0;
    let depth = 0;
    for (const check of checksOf(rule)) {
      checks++;
      const referred = check.kind === 'rule' ? ruleNamed(set, check.name) : undefined;
      if (check.kind === 'rule' && referred) {
        if (under.size > MAX_DEPTH) throw new RuleReferenceError(names, `rules refer to each other through more than ${MAX_DEPTH} levels`);
        const size = sizeOf(check.name, referred);
        checks += size.checks;
        depth = Math.max(depth, size.depth + 1);
      }
      if (checks > MAX_CHECKS) throw new RuleReferenceError(names, `it takes more than ${MAX_CHECKS} checks`);
      if (depth > MAX_DEPTH) throw new RuleReferenceError(names, `rules refer to each other through more than ${MAX_DEPTH} levels`);
    }
    under.delete(rule);
    const size = { checks, depth };
    sizes.set(rule, size);
    return size;
  };
  for (const [name, rule] of set.rules) sizeOf(name, rule);
}

/** @param set without circular references; the result is the check of a rule by its name */
export function compileRules<Caller, Target>(
  set: RuleSet,
  vocabulary: Vocabulary<Caller, Target>,
): (name: string) => PolicyCheck<Caller, Target> {
  const checks = new Map<Rule, PolicyCheck<Caller, Target>>();
  const never: PolicyCheck<Caller, Target> = () => false;
  const checkOf = (name: string): PolicyCheck<Caller, Target> => {
    const rule = ruleNamed(set, name);
    if (!rule) return never;
    let check = checks.get(rule);
    if (!check) checks.set(rule, (check = compileRule(rule, vocabulary, checkOf)));
    return check;
  };
  return checkOf;
}
