import { checkedRule, type RuleStep } from '../../../model/rules/inspection-rules';

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
