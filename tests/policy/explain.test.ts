import { NOBODY, type Caller } from '../../policy/caller';
import { createEnforcer } from '../../policy/enforcer';
import { explain, type Explanation } from '../../policy/explain';
import { parseRule } from '../../policy/language';
import { POLICIES } from '../../policy/rules';
import { optionsOf } from '../support/options';

const of = (project: string, ...roles: readonly string[]): Caller => ({ ...NOBODY, user: 'u', project, roles });
const system = (...roles: readonly string[]): Caller => ({ ...NOBODY, user: 'u', system: true, roles });
const leased = { owner: 'o', lessee: 'l' };
const explained = (caller: Caller, rules: Readonly<Record<string, string>>, name = 'baremetal:node:get'): Explanation =>
  explain(optionsOf(), new Map(Object.entries(rules).map(([rule, text]) => [rule, parseRule(text)])), name, caller, leased);

it.each<[Readonly<Record<string, string>>, Caller, boolean, readonly (readonly [string, string])[]]>([
  [{ 'baremetal:node:get': '' }, of('x'), true, [['@', '@']]],
  [{ 'baremetal:node:get': 'role:a or (role:b or role:c)' }, of('x', 'c'), true, [['role:c', 'role:c']]],
  [
    { 'baremetal:node:get': 'role:a or role:b and role:c' },
    of('x', 'b'),
    false,
    [
      ['role:a', 'role:a'],
      ['(role:b and role:c)', 'role:c'],
    ],
  ],
  [
    { 'baremetal:node:get': 'role:a and not rule:mine', mine: 'project_id:%(node.owner)s' },
    of('o', 'a'),
    false,
    [['(role:a and not rule:mine)', 'not rule:mine → project_id:%(node.owner)s']],
  ],
  [
    { 'baremetal:node:get': 'role:a and (role:b or role:c)' },
    of('o', 'a'),
    false,
    [['(role:a and (role:b or role:c))', 'role:b or role:c']],
  ],
  [{ 'baremetal:node:get': 'rule:gone' }, of('o'), false, [['rule:gone', 'rule:gone, which does not exist']]],
])('explains how %j decides', (rules, caller, allowed, clauses) => {
  const found = explained(caller, rules);
  expect(found).toMatchObject({ allowed });
  expect(found.scope).toBeUndefined();
  expect(found.clauses).toEqual(clauses.map(([text, decided]) => ({ text, decided, passed: allowed })));
});

it('names the scope of the caller if the rule is not for it', () => {
  expect(explained(of('x', 'a'), { 'baremetal:chassis:get': 'role:a' }, 'baremetal:chassis:get')).toMatchObject({
    allowed: false,
    scope: 'it is for the scope system, and the caller has the scope project',
    clauses: [{ text: 'role:a', passed: true }],
  });
});

it('decides as the enforcer of the server does', () => {
  const enforcer = createEnforcer(optionsOf());
  const callers = ['admin', 'manager', 'member', 'reader', 'service'].flatMap((role) => [system(role), of('o', role), of('l', role)]);
  // One policy of each default.
  const different = new Map(POLICIES.filter((row) => row.name.startsWith('baremetal:')).map((row) => [row.check, row]));
  for (const { name } of different.values())
    for (const caller of callers)
      expect([name, explained(caller, {}, name).allowed]).toEqual([
        name,
        enforcer.allowed(caller, name.slice('baremetal:'.length), leased),
      ]);
});
