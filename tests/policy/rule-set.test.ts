import { parseRule, type Vocabulary } from '../../policy/language';
import { checkReferences, compileRules, RuleReferenceError, type RuleSet } from '../../policy/rule-set';

const setOf = (rules: Readonly<Record<string, string>>, defaultRule = 'default'): RuleSet => ({
  rules: new Map(Object.entries(rules).map(([name, text]) => [name, parseRule(text)])),
  defaultRule,
});
const vocabulary: Vocabulary<undefined, undefined> = { roles: () => [], credential: () => undefined, target: () => undefined };
const decides = (set: RuleSet, name: string): boolean => compileRules(set, vocabulary)(name)(undefined, undefined);

it('evaluates rules that refer to other rules', () => {
  const set = setOf({ a: 'rule:b and not rule:c', b: '@', c: '!', with_spaces: 'rule:a' });
  checkReferences(set);
  expect(['a', 'b', 'c', 'with_spaces'].map((name) => decides(set, name))).toEqual([true, true, false, true]);
});

it('a reference to an unknown rule means the default rule, and denies everybody if there is none', () => {
  expect(decides(setOf({ a: 'rule:none' }), 'a')).toBe(false);
  expect(decides(setOf({ a: 'rule:none', default: '@' }), 'a')).toBe(true);
  expect(decides(setOf({ a: 'rule:none', default: '!', other: '@' }, 'other'), 'a')).toBe(true);
  expect(decides(setOf({ other: '@' }, 'other'), 'none')).toBe(true);
});

it.each<[Readonly<Record<string, string>>, readonly string[]]>([
  [{ a: 'rule:a' }, ['a', 'a']],
  [{ a: '@ or rule:b', b: 'not (@ and rule:c)', c: 'rule:a' }, ['a', 'b', 'c', 'a']],
  [{ z: 'rule:a', a: 'rule:b', b: 'rule:a' }, ['a', 'b', 'a']],
  [{ default: 'rule:none' }, ['default', 'none']],
])('refuses the circular references of %j', (rules, names) => {
  const check = (): void => checkReferences(setOf(rules));
  expect(check).toThrow(RuleReferenceError);
  expect(check).toThrow(`it refers to itself: ${names.join(' → ')}`);
});

it('refuses rules with too deep references or too many checks', () => {
  const chain = (length: number, text: (next: string) => string): RuleSet =>
    setOf(Object.fromEntries(Array.from({ length }, (_, index) => [`r${index}`, index + 1 < length ? text(`rule:r${index + 1}`) : '@'])));
  const backwards = ({ rules, defaultRule }: RuleSet): RuleSet => ({ rules: new Map([...rules].reverse()), defaultRule });
  for (const order of [(set: RuleSet) => set, backwards]) {
    expect(() => checkReferences(order(chain(65, (next) => next)))).not.toThrow();
    expect(() => checkReferences(order(chain(66, (next) => next)))).toThrow(/refer to each other through more than 64 levels/);
    expect(() => checkReferences(order(chain(40, (next) => `${next} and ${next}`)))).toThrow(/takes more than 20000 checks/);
  }
});
