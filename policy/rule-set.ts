/** Rules that refer to each other by name. */
import { compileRule, referencesOf, RuleError, type Check, type Rule, type Vocabulary } from './language';

export interface RuleSet {
  readonly rules: ReadonlyMap<string, Rule>;
  /** The rule in place of those that do not exist. Without it, nobody passes them. */
  readonly defaultRule: string;
}
/** A rule that cannot be used, because of the rules that it refers to. */
export class ReferenceError extends RuleError {
  constructor(
    /** Its name. */
    readonly rule: string,
    message: string,
  ) {
    super(message);
  }
}

/** References that a check may follow. Rules that use others twice, which use others twice, would take for ever. */
const MAX_REFERENCES = 4096;
/** References of references. */
const MAX_REFERENCE_DEPTH = 64;

/** The rule that counts for a name; undefined if nobody passes. */
export const ruleNamed = ({ rules, defaultRule }: RuleSet, name: string): Rule | undefined => rules.get(name) ?? rules.get(defaultRule);

/** @throws ReferenceError if a rule refers to itself, also by way of others, or to too many others */
export function checkReferences(set: RuleSet): void {
  /** How many references the evaluation of a rule follows at most. */
  const costs = new Map<Rule, number>();
  const under = new Map<Rule, string>();
  const costOf = (name: string, rule: Rule): number => {
    const known = costs.get(rule);
    if (known !== undefined) return known;
    if (under.has(rule)) throw new ReferenceError(name, `it refers to itself: ${[...under.values(), name].join(' → ')}`);
    if (under.size >= MAX_REFERENCE_DEPTH) throw new ReferenceError(name, `rules refer to others more than ${MAX_REFERENCE_DEPTH} times`);
    under.set(rule, name);
    let cost = 1;
    for (const reference of referencesOf(rule)) {
      const referred = ruleNamed(set, reference);
      if (referred) cost += costOf(reference, referred);
      if (cost > MAX_REFERENCES) throw new ReferenceError(name, `it needs more than ${MAX_REFERENCES} other rules`);
    }
    under.delete(rule);
    costs.set(rule, cost);
    return cost;
  };
  for (const [name, rule] of set.rules) costOf(name, rule);
}

/** @param set without circular references; the result is the check of a rule by its name */
export function compileRules<Caller, Target>(
  set: RuleSet,
  vocabulary: Vocabulary<Caller, Target>,
): (name: string) => Check<Caller, Target> {
  const checks = new Map<Rule, Check<Caller, Target>>();
  const never: Check<Caller, Target> = () => false;
  const checkOf = (name: string): Check<Caller, Target> => {
    const rule = ruleNamed(set, name);
    if (!rule) return never;
    let check = checks.get(rule);
    if (!check) checks.set(rule, (check = compileRule(rule, vocabulary, checkOf)));
    return check;
  };
  return checkOf;
}
