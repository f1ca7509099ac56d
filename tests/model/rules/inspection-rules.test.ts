import { ACTIONS, checkedRule, namedArguments, operatorOf, OPERATORS, type RuleStep } from '../../../model/rules/inspection-rules';

const good: RuleStep = { op: 'fail', args: { msg: 'no' } };
const wrong = (part: { conditions?: RuleStep[]; actions?: RuleStep[]; phase?: unknown; priority?: number }): readonly string[] =>
  checkedRule({ conditions: [], actions: [good], ...part }).wrong;

it.each<[RuleStep, string | undefined]>([
  [{ op: 'eq', args: { values: [] } }, undefined],
  [{ op: '!eq', args: { values: [], force_strings: true } }, undefined],
  [{ op: 'eq', args: [[1, 2]] }, undefined],
  [{ op: 'eq', args: [[1, 2], true, 'more'] }, undefined],
  [{ op: 'eq', args: {} }, 'Invalid parameters for condition operator eq: missing required argument(s): values'],
  [{ op: 'eq', args: [] }, 'Invalid parameters for condition operator eq: Not enough arguments provided. Missing: values'],
  [
    { op: '!in-net', args: { a: 1, subnet: 's' } },
    'Invalid parameters for condition operator in-net: missing required argument(s): address; unexpected argument(s): a',
  ],
  [{ op: 'matches', args: ['x'] }, 'Invalid parameters for condition operator matches: Not enough arguments provided. Missing: regex'],
  // `constructor`, a property of every object, is no argument.
  [
    { op: 'is-none', args: { value: 1, constructor: 1 } },
    'Invalid parameters for condition operator is-none: unexpected argument(s): constructor',
  ],
])('checkedRule with condition %j finds the problem %p', (condition, problem) => {
  expect(wrong({ conditions: [condition] })).toEqual(problem === undefined ? [] : [problem]);
});

it('checkedRule adds the argument plugin_data to actions on plugin data', () => {
  const actions: RuleStep[] = [
    { op: 'set-plugin-data', args: { path: 'a', value: 1 } },
    { op: 'unset-plugin-data', args: ['a'] },
  ];
  expect(checkedRule({ conditions: [], actions })).toMatchObject({
    actions: [{ args: { path: 'a', value: 1, plugin_data: {} } }, { args: ['a', {}] }],
    wrong: [],
  });
});

it('checkedRule reports all problems', () => {
  expect(wrong({ phase: 'early', priority: 10_000, actions: [{ op: 'log', args: {} }] })).toEqual([
    'Invalid phase: early. Valid phases are: main',
    'Priority must be between 0 and 9999 for user-defined rules.',
    'Invalid parameters for action operator log: missing required argument(s): msg',
  ]);
  expect(wrong({ phase: null })).toEqual(['Invalid phase: None. Valid phases are: main']);
});

it('checkedRule accepts the priorities and phases that rules of users may have', () => {
  expect(wrong({ phase: 'main', priority: 9999 })).toEqual([]);
  expect(wrong({ priority: 0 })).toEqual([]);
});

it('checkedRule does not add plugin_data to other steps, and counts it in a list', () => {
  const conditions: RuleStep[] = [{ op: 'is-true', args: { value: 1 } }];
  const actions: RuleStep[] = [{ op: 'set-attribute', args: ['a', 1], loop: [1] }];
  expect(checkedRule({ conditions, actions })).toEqual({ conditions, actions, wrong: [] });
  const problem = 'Invalid parameters for action operator set-plugin-data: Not enough arguments provided. Missing: plugin_data';
  expect(wrong({ actions: [{ op: 'set-plugin-data', args: ['a'] }] })).toEqual([problem]);
});

/** What the signatures of Ironic 39's classes say: required and optional arguments, and FORMATTED_ARGS. */
const signatures = (table: typeof OPERATORS): readonly (readonly [string, string, string, string])[] =>
  Object.entries(table).map(([name, { required, optional, filled }]) => [name, required.join(' '), optional.join(' '), filled.join(' ')]);
it('the operators take the arguments that those of Ironic take', () => {
  expect(signatures(OPERATORS)).toEqual([
    ['eq', 'values', 'force_strings', 'values'],
    ['lt', 'values', 'force_strings', 'values'],
    ['gt', 'values', 'force_strings', 'values'],
    ['is-empty', 'value', '', 'value'],
    ['in-net', 'address subnet', '', 'address subnet'],
    ['matches', 'value regex', '', 'value'],
    ['contains', 'value regex', '', 'value'],
    ['one-of', 'value', 'values', 'value'],
    ['is-none', 'value', '', 'value'],
    ['is-true', 'value', '', 'value'],
    ['is-false', 'value', '', 'value'],
  ]);
});
it('the actions take the arguments that those of Ironic take', () => {
  expect(signatures(ACTIONS)).toEqual([
    ['fail', 'msg', '', ''],
    ['log', 'msg', 'level', 'msg'],
    ['set-attribute', 'path value', '', 'value'],
    ['extend-attribute', 'path value', 'unique', 'value'],
    ['del-attribute', 'path', '', ''],
    ['set-capability', 'name value', '', 'value'],
    ['unset-capability', 'name', '', ''],
    ['add-trait', 'name', '', ''],
    ['remove-trait', 'name', '', ''],
    ['set-plugin-data', 'path value plugin_data', '', 'value'],
    ['extend-plugin-data', 'path value plugin_data', 'unique', 'value'],
    ['unset-plugin-data', 'path plugin_data', '', ''],
    ['set-port-attribute', 'port_id path value', '', 'value'],
    ['extend-port-attribute', 'port_id path value', 'unique', 'value'],
    ['del-port-attribute', 'port_id path', '', ''],
    ['api-call', 'url', 'headers proxies timeout retries backoff_factor', 'url'],
  ]);
  const onPluginData = Object.keys(ACTIONS).filter((name) => ACTIONS[name]!.onPluginData);
  expect(onPluginData).toEqual(['set-plugin-data', 'extend-plugin-data', 'unset-plugin-data']);
});

it.each<[string, RuleStep['args'], object]>([
  ['log', { msg: 'm', level: 'info' }, { msg: 'm', level: 'info' }],
  ['log', ['m'], { msg: 'm' }],
  ['log', ['m', 'info'], { msg: 'm', level: 'info' }],
  ['log', ['m', 'info', 'more'], { msg: 'm', level: 'info' }],
  ['extend-attribute', ['a', 1, true], { path: 'a', value: 1, unique: true }],
  ['set-plugin-data', ['a', 1, {}], { path: 'a', value: 1 }],
  ['set-plugin-data', { path: 'a', value: 1, plugin_data: {} }, { path: 'a', value: 1 }],
  ['extend-plugin-data', ['a', 1, {}, true], { path: 'a', value: 1, unique: true }],
  // Only actions on plugin data have this argument from the server.
  ['log', { msg: 'm', plugin_data: 1 }, { msg: 'm', plugin_data: 1 }],
])('namedArguments of %s names the arguments %j', (op, args, named) => {
  expect(namedArguments({ op, args }, ACTIONS[op]!)).toEqual(named);
});

it.each([
  ['eq', 'eq'],
  ['!eq', 'eq'],
  ['is-none', 'is-none'],
  ['a!b', 'a!b'],
])('operatorOf(%j) is %j', (op, name) => expect(operatorOf(op)).toBe(name));
