import { parseRule, type Vocabulary } from '../../policy/language';
import { checkReferences, compileRules, ReferenceError, type RuleSet } from '../../policy/rule-set';

const setOf = (rules: Readonly<Record<string, string>>, defaultRule = 'default'): RuleSet => ({
  rules: new Map(Object.entries(rules).map(([name, text]) => [name, parseRule(text)])),
  defaultRule,
});
const vocabulary: Vocabulary<undefined, undefined> = { roles: () => [], credential: () => undefined, target: () => undefined };
const decides = (set: RuleSet, name: string): boolean => compileRules(set, vocabulary)(name)(undefined, undefined);

it('evaluates the rules that others name', () => {
  const set = setOf({ a: 'rule:b and not rule:c', b: '@', c: '!', with_spaces: 'rule:a' });
  checkReferences(set);
  expect(['a', 'b', 'c', 'with_spaces'].map((name) => decides(set, name))).toEqual([true, true, false, true]);
});

it('a rule that does not exist is the default rule, and without that nobody passes', () => {
  expect(decides(setOf({ a: 'rule:none' }), 'a')).toBe(false);
  expect(decides(setOf({ a: 'rule:none', default: '@' }), 'a')).toBe(true);
  expect(decides(setOf({ a: 'rule:none', default: '!', other: '@' }, 'other'), 'a')).toBe(true);
  expect(decides(setOf({ other: '@' }, 'other'), 'none')).toBe(true);
});

it.each<[Readonly<Record<string, string>>, string, string]>([
  [{ a: 'rule:a' }, 'a', 'it refers to itself: a → a'],
  [{ a: '@ or rule:b', b: 'not (@ and rule:c)', c: 'rule:a' }, 'a', 'it refers to itself: a → b → c → a'],
  [{ default: 'rule:none' }, 'none', 'it refers to itself: default → none'],
])('refuses the circle in %j', (rules, rule, message) => {
  const check = (): void => checkReferences(setOf(rules));
  expect(check).toThrow(ReferenceError);
  expect(check).toThrow(expect.objectContaining({ rule, message }));
});

it('refuses rules whose evaluation would not end in time', () => {
  const chain = (length: number, text: (next: string) => string): RuleSet =>
    setOf(Object.fromEntries(Array.from({ length }, (_, index) => [`r${index}`, index + 1 < length ? text(`rule:r${index + 1}`) : '@'])));
  expect(() => checkReferences(chain(60, (next) => next))).not.toThrow();
  expect(() => checkReferences(chain(100, (next) => next))).toThrow(/refer to others more than 64 times/);
  expect(() => checkReferences(chain(40, (next) => `${next} and ${next}`))).toThrow(/needs more than 4096 other rules/);
});
