/** Compares policies with oslo.policy itself, with Ironic's rules, in one Python process: random rules, callers and targets. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NOBODY, type Caller } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { parseRule, RuleError, type Rule, type PolicyValue, type Vocabulary } from '../../../policy/language';
import { checkReferences, compileRules } from '../../../policy/rule-set';
import { POLICIES } from '../../../policy/rules';
import { resourceOf } from '../../../policy/vocabulary';
import { optionsOf } from '../../support/options';
import { inIronicsPython, numbers } from '../random-cases';

const RULE_SETS = 3000;
const POLICY_FILES = 150;
const CHECKS = 40;

const below = numbers(39);
const pick = <T>(all: readonly T[]): T => all[below(all.length)]!;
const times = <T>(count: number, make: (index: number) => T): readonly T[] => Array.from({ length: count }, (_, index) => make(index));

const python = (cases: readonly unknown[]): Promise<readonly unknown[]> =>
  inIronicsPython(join(__dirname, 'oslo-policy.py'), cases, 900_000);

/** A rule in words of the language: with few parentheses, so that precedence counts, in any case of operators, and with spaces. */
function randomText(check: () => string, depth: number): string {
  const operand = (): string => {
    const kind = below(8);
    if (kind === 0) return `${pick(['not', 'NOT', 'Not'])} ${operand()}`;
    if (kind < 4 && depth > 0) return `(${pick(['', ' '])}${randomText(check, depth - 1)}${pick(['', ' '])})`;
    return check();
  };
  return times(1 + below(4), operand).reduce(
    (left, right) => `${left}${pick([' ', '  ', '\n'])}${pick(['and', 'or', 'AND', 'Or'])} ${right}`,
  );
}

const NAMES = ['a', 'b', 'c.d', 'owner', 'roles'];
const WORDS = ['x', 'y', 'Admin', 'None', 'True', '3', 'a:b', "it's", '100%%', "['x', 'y']", '%', '(x', 'x)y', '"x"'];
/** Texts in values. Those that are equal to another kind of value as text are left out, because we compare values of one kind only. */
const TEXTS = WORDS.filter((word) => !['None', 'True', '3', "['x', 'y']"].includes(word));
const MATCHES = [...WORDS, '%(a)s', '%(b)s', '%(c.d)s', '%(owner)s', '%(roles)s', 'x-%(a)s', '%(a)s%(b)s', '%(none)s'];
const KINDS = ['a', 'b', 'c.d', 'c.d.e', 'roles', 'roles.x', 'list.name', 'none', "'x'", '"y"', 'True', 'None', '3', '-1', 'a-b', '_x'];
function randomCheck(): string {
  const kind = below(10);
  if (kind === 0) return pick(['@', '!']);
  if (kind === 1) return `rule:r${below(5)}`;
  if (kind < 4) return `role:${pick(MATCHES)}`;
  return `${pick(KINDS)}:${pick(MATCHES)}`;
}
/** Any words, in any order. */
const rubbish = (): string =>
  times(below(6), () => pick(['(', ')', 'and', 'or', 'not', randomCheck(), `(${randomCheck()}`, `${randomCheck()})`, "'x'", 'x', ''])).join(
    ' ',
  );
function randomRule(): unknown {
  const kind = below(10);
  if (kind === 0) return rubbish();
  if (kind === 1) return times(below(3), () => pick([randomCheck(), times(below(3), randomCheck), '']));
  return randomText(randomCheck, 3);
}
const randomValue = (depth: number): PolicyValue => {
  const kind = below(9);
  if (kind === 0) return null;
  if (kind === 1) return below(2) === 0;
  if (kind === 2) return below(4);
  if (kind === 3 && depth > 0) return times(below(3), () => randomValue(depth - 1));
  if (kind === 4 && depth > 0) return Object.fromEntries(times(below(3), () => [pick(['d', 'e', 'name', 'x']), randomValue(depth - 1)]));
  return pick(TEXTS);
};
type Values = Readonly<Record<string, PolicyValue>>;
const randomValues = (names: readonly string[]): Values =>
  Object.fromEntries(names.filter(() => below(4) > 0).map((name) => [name, randomValue(2)]));
const ROLE_NAMES = ['x', 'y', 'ADMIN', 'admin'];
const randomCaller = (): Values => ({
  ...randomValues(['a', 'b', 'c', 'list', '_x', 'a-b']),
  ...(below(6) > 0 ? { roles: times(below(3), () => pick(ROLE_NAMES)) } : {}),
});

const VOCABULARY: Vocabulary<Values, Values> = {
  roles: ({ roles }) => ((roles ?? []) as readonly string[]).map((role) => role.toLowerCase()),
  credential: (name) => (caller) => (Object.hasOwn(caller, name) ? caller[name] : undefined),
  target: (name) => (_caller, target) => (Object.hasOwn(target, name) ? target[name] : undefined),
};

interface LanguageCase {
  readonly rules: Readonly<Record<string, unknown>>;
  readonly default: string;
  readonly callers: readonly Values[];
  readonly targets: readonly Values[];
}
interface Evaluated {
  readonly trees: Readonly<Record<string, string>>;
  readonly decisions: Readonly<Record<string, readonly (boolean | string)[]>>;
}
/** Refused for its syntax. oslo.policy evaluates such a rule as one that nobody passes. */
const SYNTAX = /not expected there|ends where|is blank|^["'(].* is not a check$/;
/** Refused although oslo.policy evaluates the rule: it is meaningless, or fails only for some callers. */
const REFUSED = /has no colon|neither %\(name\)s nor %%|neither the name of a credential nor a literal/;

/** @throws RuleError */
function parseAll(rules: Readonly<Record<string, unknown>>): ReadonlyMap<string, Rule> {
  return new Map(Object.entries(rules).map(([name, rule]) => [name, parseRule(rule)]));
}
/** @returns the message of the refusal; undefined: not refused */
function refusalOf(parse: () => void): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (error instanceof RuleError) return error.message;
    throw error;
  }
}

it('our enforcer decides on random rules as oslo.policy does', async () => {
  const sets = times(RULE_SETS, (): LanguageCase => ({
    rules: Object.fromEntries(times(4, (index) => [`r${index}`, randomRule()])),
    default: pick(['r0', 'r1', 'none']),
    callers: times(3, randomCaller),
    targets: times(2, () => randomValues(NAMES)),
  }));
  const isUsable = ({ rules, default: defaultRule }: LanguageCase): boolean =>
    refusalOf(() => checkReferences({ rules: parseAll(rules), defaultRule })) === undefined;
  // oslo.policy only parses the rules that we refuse: circular ones take long to evaluate.
  const cases = sets.map((set) => (isUsable(set) ? set : { ...set, callers: [] }));
  const theirs = (await python(cases)) as readonly Evaluated[];
  expect(theirs).toHaveLength(cases.length);
  const counted = { allowed: 0, denied: 0, syntax: 0, refused: 0 };
  const different: unknown[] = [];
  cases.forEach((row, number) => {
    const { trees, decisions } = theirs[number]!;
    for (const [name, rule] of Object.entries(row.rules)) {
      const reason = refusalOf(() => parseRule(rule));
      if (reason === undefined) continue;
      const isSyntax = SYNTAX.test(reason);
      counted[isSyntax ? 'syntax' : 'refused']++;
      if (isSyntax ? trees[name] !== '!' : !REFUSED.test(reason)) different.push({ rule, reason, tree: trees[name] });
    }
    if (row.callers.length === 0) return;
    const checkOf = compileRules({ rules: parseAll(row.rules), defaultRule: row.default }, VOCABULARY);
    for (const [name, expected] of Object.entries(decisions)) {
      const mine = row.callers.flatMap((caller) => row.targets.map((target) => checkOf(name)(caller, target)));
      mine.forEach((decision, index) => {
        // oslo.policy fails at a member of a value that has no members.
        if (expected[index] === 'TypeError') return;
        counted[decision ? 'allowed' : 'denied']++;
        const [caller, target] = [row.callers[index >> 1], row.targets[index & 1]];
        if (decision !== expected[index])
          different.push({ rules: row.rules, name, caller, target, mine: decision, theirs: expected[index] });
      });
    }
  });
  expect(different.slice(0, 3)).toEqual([]);
  // Each case occurs often enough to mean something.
  for (const count of Object.values(counted)) expect(count).toBeGreaterThan(RULE_SETS / 10);
}, 900_000);

it('policy/ironic-rules.txt has the rules of Ironic', async () => {
  const [listed] = await python([{ list: true }]);
  expect(listed).toEqual(readFileSync(join(__dirname, '../../policy/ironic-rules.txt'), 'utf8').replace(/\n$/, '').split('\n'));
}, 900_000);

const IRONIC_RULES = POLICIES.filter(({ ours }) => !ours).map(({ name }) => name);
const PROJECTS = ['p1', 'p2', null];
const ROLES = [
  'admin',
  'manager',
  'member',
  'reader',
  'service',
  'baremetal_admin',
  'baremetal_observer',
  'observer',
  'administrator',
  'none',
];
const IRONIC_MATCHES = [
  '%(node.owner)s',
  '%(node.lessee)s',
  '%(allocation.owner)s',
  '%(runbook.owner)s',
  '%(project_id)s',
  'p1',
  'None',
  '%(none)s',
];
function ironicCheck(): string {
  const kind = below(8);
  if (kind === 0)
    return pick([
      '@',
      '!',
      'system_scope:all',
      'is_admin_project:True',
      'is_public_api:True',
      'domain_id:d',
      'user_id:u',
      'project_name:demo',
    ]);
  if (kind < 3) return `rule:${pick([...IRONIC_RULES, 'helper', 'missing'])}`;
  if (kind < 6) return `role:${pick(ROLES)}`;
  return `project_id:${pick(IRONIC_MATCHES)}`;
}
function randomPerson(): Caller {
  const scope = below(8);
  const project = scope > 1 ? pick(PROJECTS) : null;
  return {
    ...NOBODY,
    user: pick(['u', 'v']),
    userDomain: 'default',
    project,
    projectName: project === null ? null : pick(['demo', 'baremetal', 'service', 'services']),
    projectDomain: project === null ? null : pick(['default', 'other']),
    domain: scope === 1 ? 'd' : null,
    system: scope === 0,
    roles: ROLES.filter(() => below(3) === 0),
    isAdminProject: below(4) > 0,
  };
}
const asContext = (caller: Caller): object => ({
  user_id: caller.user,
  user_domain_id: caller.userDomain,
  project_id: caller.project,
  project_name: caller.projectName,
  project_domain_id: caller.projectDomain,
  domain_id: caller.domain,
  system_scope: caller.system ? 'all' : null,
  roles: caller.roles,
  is_admin_project: caller.isAdminProject,
});

it("our enforcer decides as Ironic does when an operator's rules replace some of Ironic's", async () => {
  const files = times(POLICY_FILES, () => {
    const names = [...new Set(times(below(8), () => pick([...IRONIC_RULES, 'helper', 'default'])))];
    const options = {
      'oslo_policy.enforce_new_defaults': below(2) === 0,
      'oslo_policy.policy_default_rule': pick(['default', 'helper']),
      'DEFAULT.rbac_service_role_elevated_access': below(2) === 0,
      'DEFAULT.rbac_service_project_name': pick(['service', 'services']),
    };
    const checks = times(CHECKS, () => {
      const target = below(4) === 0 ? undefined : { owner: pick(PROJECTS), lessee: pick(PROJECTS) };
      return { caller: randomPerson(), name: pick(IRONIC_RULES), target };
    });
    return { overrides: Object.fromEntries(names.map((name) => [name, randomText(ironicCheck, 1)])), options, checks };
  });
  // Rules that refer to themselves are refused.
  const usable = files.filter(
    ({ overrides, options }) => refusalOf(() => createEnforcer(optionsOf(options), parseAll(overrides))) === undefined,
  );
  expect(usable.length).toBeGreaterThan(POLICY_FILES / 2);
  const theirs = (await python(
    usable.map(({ overrides, options, checks }) => ({
      overrides,
      options,
      checks: checks.map(({ caller, name, target }) => {
        const resource = resourceOf(name.replace('baremetal:', ''));
        const own = target && {
          [`${resource}.owner`]: target.owner,
          ...(target.lessee === null ? {} : { [`${resource}.lessee`]: target.lessee }),
        };
        return [asContext(caller), name, own ?? {}];
      }),
    })),
  )) as readonly (readonly (boolean | string)[])[];
  const counted = { allowed: 0, denied: 0 };
  let stricter = 0;
  const different: unknown[] = [];
  usable.forEach(({ overrides, options, checks }, number) => {
    const enforcer = createEnforcer(optionsOf(options), parseAll(overrides));
    checks.forEach(({ caller, name, target }, index) => {
      const policy = name.replace('baremetal:', '');
      // Rules that only serve other rules are no policies of requests.
      const known = name.startsWith('baremetal:') || name.startsWith('show_');
      if (!known) return;
      const mine = enforcer.allowed(caller, policy, target);
      const expected = theirs[number]![index];
      // Here, a caller without a project does not own a resource without an owner.
      const unscoped = caller.project === null && target?.owner === null;
      counted[mine ? 'allowed' : 'denied']++;
      if (unscoped && !mine && expected === true) {
        stricter++;
        return;
      }
      if (mine !== expected) different.push({ overrides, options, caller, name, target, mine, theirs: expected });
    });
  });
  expect(different.slice(0, 3)).toEqual([]);
  for (const count of Object.values(counted)) expect(count).toBeGreaterThan((POLICY_FILES * CHECKS) / 20);
  expect(stricter).toBeGreaterThan(0);
}, 900_000);
