import { compileRule, formatRule, parseRule, RuleError, type PolicyValue, type Vocabulary } from '../../policy/language';

const MAX_RULE_LENGTH = 16_384;
const MAX_RULE_DEPTH = 64;
type Values = Readonly<Record<string, PolicyValue>>;
const vocabulary: Vocabulary<Values, Values> = {
  roles: (caller) => (caller['roles'] ?? []) as readonly string[],
  credential: (name) => (caller) => caller[name],
  target: (name) => (_caller, target) => target[name],
};
const decides = (rule: unknown, caller: Values = {}, target: Values = {}): boolean =>
  compileRule(parseRule(rule), vocabulary, () => () => false)(caller, target);

it.each<[unknown, Values, Values, boolean]>([
  ['', {}, {}, true],
  ['@', {}, {}, true],
  ['!', {}, {}, false],
  ['not !', {}, {}, true],
  ['not not @', {}, {}, true],
  ['NOT ! AND @', {}, {}, true],
  // not before and, and before or.
  ['not @ or @', {}, {}, true],
  ['@ or @ and !', {}, {}, true],
  ['! and @ or @', {}, {}, true],
  ['(@ or @) and !', {}, {}, false],
  ['not (@ and !)', {}, {}, true],
  ['((@))', {}, {}, true],
  ['@ or (@ or !) and !', {}, {}, true],
  // Roles in any case, also from the target.
  ['role:Admin', { roles: ['member', 'admin'] }, {}, true],
  ['role:admin', { roles: ['administrator'] }, {}, false],
  ['role:%(needed)s', { roles: ['admin'] }, { needed: 'ADMIN' }, true],
  ['role:%(needed)s', { roles: ['none'] }, {}, false],
  // Credentials: values as Python writes them.
  ['user_id:ada', { user_id: 'ada' }, {}, true],
  ['user_id:ada', {}, {}, false],
  ['user_id:a:b', { user_id: 'a:b' }, {}, true],
  ['is_admin:True', { is_admin: true }, {}, true],
  ['is_admin:true', { is_admin: true }, {}, false],
  ['project_id:None', { project_id: null }, {}, true],
  ['project_id:%(owner)s', { project_id: null }, { owner: null }, true],
  ['project_id:%(owner)s', { project_id: 'p' }, { owner: 'p' }, true],
  ['project_id:%(owner)s', { project_id: 'p' }, {}, false],
  ['level:3', { level: 3 }, {}, true],
  ['all:%(roles)s', { all: [['a', 'b']] }, { roles: ['a', 'b'] }, true],
  ['path:x-%(n)s', { path: 'x-3' }, { n: 3 }, true],
  // Values of different kinds differ, also when Python writes them alike.
  ['project_id:%(owner)s', { project_id: 'None' }, { owner: null }, false],
  ['project_id:%(owner)s', { project_id: null }, { owner: 'None' }, false],
  ['project_id:%(owner)s', { project_id: 'None' }, { owner: 'None' }, true],
  ['project_id:%(owner)s', { project_id: 'undefined' }, {}, false],
  ['project_id:%(owner)s', { project_id: 'null' }, { owner: null }, false],
  ['project_id:%(owner)s', { project_id: ['x', 'None'] }, { owner: null }, false],
  ['project_id:%(owner)s', { project_id: [null] }, { owner: 'None' }, false],
  ['user_id:%(enabled)s', { user_id: 'True' }, { enabled: true }, false],
  ['user_id:%(level)s', { user_id: '3' }, { level: 3 }, false],
  ['user_id:%(roles)s', { user_id: "['a', 'b']" }, { roles: ['a', 'b'] }, false],
  ['user_id:%(roles)s', { user_id: '[]' }, { roles: [] }, false],
  ['project_id:None', { project_id: 'None' }, {}, false],
  ['is_admin:True', { is_admin: 'True' }, {}, false],
  ['None:%(owner)s', {}, { owner: 'None' }, false],
  ["'None':%(owner)s", {}, { owner: null }, false],
  ["'None':%(owner)s", {}, { owner: 'None' }, true],
  ["'True':%(enabled)s", {}, { enabled: true }, false],
  ['True:%(enabled)s', {}, { enabled: 'True' }, false],
  ['None:None', {}, {}, true],
  ['role:%(owner)s', { roles: ['none'] }, { owner: null }, false],
  ['role:%(enabled)s', { roles: ['true'] }, { enabled: true }, false],
  ['role:%(owner)s-admin', { roles: ['none-admin'] }, { owner: null }, false],
  ['name:x-%(owner)s', { name: 'x-None' }, { owner: null }, false],
  ['name:x-%(enabled)s', { name: 'x-True' }, { enabled: true }, false],
  ['path:x-%(a)s-%(b)s%%', { path: 'x-1-2%' }, { a: '1', b: '2' }, true],
  ['path:x-%(a)s-%(b)s%%', { path: 'x-1-2%' }, { a: '1' }, false],
  // Paths into values; any member of a list counts.
  ['user.domain.id:d', { user: { domain: { id: 'd' } } }, {}, true],
  ['user.domain.id:d', { user: { domain: 'd' } }, {}, false],
  ['roles:admin', { roles: ['member', 'admin'] }, {}, true],
  ['groups.name:x', { groups: [{ name: 'y' }, { name: 'x' }] }, {}, true],
  ['constructor.name:Object', {}, {}, false],
  // Literals.
  ["'Member':%(role.name)s", {}, { 'role.name': 'Member' }, true],
  ['"Member":%(role.name)s', {}, { 'role.name': 'member' }, false],
  ['True:%(enabled)s', {}, { enabled: true }, true],
  ['None:%(owner)s', {}, { owner: null }, true],
  ['3:%(level)s', {}, { level: 3 }, true],
  // The older form.
  [[], {}, {}, true],
  [[[]], {}, {}, false],
  [[''], {}, {}, false],
  ['not_a_text:[]', {}, {}, false],
  [['role:a', 'role:b'], { roles: ['b'] }, {}, true],
  [[['role:a', 'role:b']], { roles: ['b'] }, {}, false],
  [[['role:a', 'role:b'], '@'], {}, {}, true],
  [['user_id:a b)'], { user_id: 'a b)' }, {}, true],
])('the rule %j with credentials %j and target %j decides %s', (rule, caller, target, expected) => {
  expect(decides(rule, caller, target)).toBe(expected);
});

it.each<[unknown, RegExp]>([
  [' ', /blank/],
  ['admin', /no colon/],
  ['@ @', /not expected/],
  ['@ and', /ends where/],
  ['and @', /"and" is not expected/],
  ['not', /ends where/],
  ['(@', /ends where/],
  ['x'.repeat(200), /"x{100}…" is not a check/],
  ['@)', /"\)" is not expected/],
  ['()', /"\)" is not expected/],
  ['@ not @', /"not" is not expected/],
  ["'a':'b'", /is not a check/],
  ['"a"', /is not a check/],
  ['http://policy.example/%(target)s', /another server/],
  ['https://policy.example', /another server/],
  ['x:%(name)', /neither %\(name\)s nor %%/],
  ['x:%(name)d', /neither/],
  ['x:%s', /neither/],
  ['x:100%', /neither/],
  ['x:%()s', /neither/],
  [':x', /neither the name of a credential nor a literal/],
  ['a..b:x', /neither/],
  ['class:x', /neither/],
  ['2a:x', /neither/],
  ["'a:x", /neither/],
  ['[1]:x', /neither/],
  ['role:a\0b', /control/],
  [['@ and @'], /no colon/],
  [[['@', '']], /no colon/],
  [[[['@']]], /not a text/],
  [[1], /not a text/],
  [null, /neither a text nor a list/],
  [true, /neither/],
  [false, /neither/],
  [0, /neither/],
  [{}, /neither/],
])('refuses the rule %j', (rule, message) => {
  expect(() => parseRule(rule)).toThrow(RuleError);
  expect(() => parseRule(rule)).toThrow(message);
});

it('limits the length and the depth of a rule', () => {
  const nested = (depth: number): string => `${'('.repeat(depth)}@${')'.repeat(depth)}`;
  expect(decides(nested(MAX_RULE_DEPTH))).toBe(true);
  expect(() => parseRule(nested(MAX_RULE_DEPTH + 1))).toThrow(/nested/);
  expect(() => parseRule(`${'not '.repeat(MAX_RULE_DEPTH + 1)}@`)).toThrow(/nested/);
  expect(decides(`${'! or '.repeat(3000)}@`)).toBe(true);
  const long = `user_id:${'x'.repeat(MAX_RULE_LENGTH)}`;
  for (const rule of [
    long,
    [long],
    Array.from({ length: MAX_RULE_LENGTH }, () => '@'),
    Array.from({ length: MAX_RULE_LENGTH + 1 }, () => ''),
  ])
    expect(() => parseRule(rule)).toThrow(/longer/);
});

it('formats rules as oslo.policy does', () => {
  const rule = `not (role:a or "x":%(y)s) and (a.b:%(c)s%% or rule:r) and @`;
  expect(formatRule(parseRule(rule))).toBe(`(not (role:a or "x":%(y)s) and (a.b:%(c)s%% or rule:r) and @)`);
  expect(formatRule(parseRule(formatRule(parseRule(rule))))).toBe(formatRule(parseRule(rule)));
});
