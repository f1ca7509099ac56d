/** Rules of ironic-inspector. The messages about schemas are those that the Python package jsonschema 4.26.0 prints for the same lists. */
import { Fault } from '../../../model/errors';
import { checkedIntrospectionRule, fieldOf } from '../../../model/rules/introspection-rules';

/** The message of the refusal; undefined: the rule is accepted. */
function refusal(conditions: unknown, actions: unknown): string | undefined {
  try {
    checkedIntrospectionRule(conditions, actions);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Fault);
    expect(error).toMatchObject({ name: 'Invalid', status: 400 });
    return (error as Fault).message;
  }
}
const fail = { action: 'fail', message: 'no' };

const CONDITIONS = `{'title': 'Inspector rule conditions schema',
     'type': 'array',
     'minItems': 0,
     'items': {'type': 'object',
               'required': ['op', 'field'],
               'properties': {'op': {'description': 'condition operator',
                                     'enum': ['contains',
                                              'eq',
                                              'ge',
                                              'gt',
                                              'in-net',
                                              'is-empty',
                                              'le',
                                              'lt',
                                              'matches',
                                              'ne']},
                              'field': {'description': 'JSON path to field '
                                                       'for matching',
                                        'type': 'string'},
                              'multiple': {'description': 'how to treat '
                                                          'multiple values',
                                           'enum': ['all', 'any', 'first']},
                              'invert': {'description': 'whether to invert '
                                                        'the result',
                                         'type': 'boolean'}},
               'additionalProperties': True}}`;
const CONDITION = `{'type': 'object',
     'required': ['op', 'field'],
     'properties': {'op': {'description': 'condition operator',
                           'enum': ['contains',
                                    'eq',
                                    'ge',
                                    'gt',
                                    'in-net',
                                    'is-empty',
                                    'le',
                                    'lt',
                                    'matches',
                                    'ne']},
                    'field': {'description': 'JSON path to field for '
                                             'matching',
                              'type': 'string'},
                    'multiple': {'description': 'how to treat multiple '
                                                'values',
                                 'enum': ['all', 'any', 'first']},
                    'invert': {'description': 'whether to invert the '
                                              'result',
                               'type': 'boolean'}},
     'additionalProperties': True}`;
const ACTIONS = `{'title': 'Inspector rule actions schema',
     'type': 'array',
     'minItems': 1,
     'items': {'type': 'object',
               'required': ['action'],
               'properties': {'action': {'description': 'action to take',
                                         'enum': ['add-trait',
                                                  'extend-attribute',
                                                  'fail',
                                                  'remove-trait',
                                                  'set-attribute',
                                                  'set-capability']}},
               'additionalProperties': True}}`;
const ACTION = `{'type': 'object',
     'required': ['action'],
     'properties': {'action': {'description': 'action to take',
                               'enum': ['add-trait',
                                        'extend-attribute',
                                        'fail',
                                        'remove-trait',
                                        'set-attribute',
                                        'set-capability']}},
     'additionalProperties': True}`;
it.each<[unknown, string]>([
  [
    'x',
    `'x' is not of type 'array'

Failed validating 'type' in schema:
    ${CONDITIONS}

On instance:
    'x'`,
  ],
  [
    [5],
    `5 is not of type 'object'

Failed validating 'type' in schema['items']:
    ${CONDITION}

On instance[0]:
    5`,
  ],
  [
    [{}],
    `'op' is a required property

Failed validating 'required' in schema['items']:
    ${CONDITION}

On instance[0]:
    {}`,
  ],
  [
    [{ op: 'eq' }],
    `'field' is a required property

Failed validating 'required' in schema['items']:
    ${CONDITION}

On instance[0]:
    {'op': 'eq'}`,
  ],
  [
    [{ op: 'zz', field: 'a' }],
    `'zz' is not one of ['contains', 'eq', 'ge', 'gt', 'in-net', 'is-empty', 'le', 'lt', 'matches', 'ne']

Failed validating 'enum' in schema['items']['properties']['op']:
    {'description': 'condition operator',
     'enum': ['contains',
              'eq',
              'ge',
              'gt',
              'in-net',
              'is-empty',
              'le',
              'lt',
              'matches',
              'ne']}

On instance[0]['op']:
    'zz'`,
  ],
  [
    [{ op: 'eq', field: 5 }],
    `5 is not of type 'string'

Failed validating 'type' in schema['items']['properties']['field']:
    {'description': 'JSON path to field for matching', 'type': 'string'}

On instance[0]['field']:
    5`,
  ],
  [
    [
      { op: 'eq', field: 'a', value: 1 },
      { op: 'eq', field: 'a', multiple: 'none' },
    ],
    `'none' is not one of ['all', 'any', 'first']

Failed validating 'enum' in schema['items']['properties']['multiple']:
    {'description': 'how to treat multiple values',
     'enum': ['all', 'any', 'first']}

On instance[1]['multiple']:
    'none'`,
  ],
  [
    [{ op: 'eq', field: 'a', invert: 1 }],
    `1 is not of type 'boolean'

Failed validating 'type' in schema['items']['properties']['invert']:
    {'description': 'whether to invert the result', 'type': 'boolean'}

On instance[0]['invert']:
    1`,
  ],
])('refuses the conditions %j, which do not match the schema', (given, message) => {
  expect(refusal(given, [fail])).toBe(`Validation failed for conditions: ${message}`);
});
it.each<[unknown, string]>([
  [
    {},
    `{} is not of type 'array'

Failed validating 'type' in schema:
    ${ACTIONS}

On instance:
    {}`,
  ],
  [
    [],
    `[] should be non-empty

Failed validating 'minItems' in schema:
    ${ACTIONS}

On instance:
    []`,
  ],
  [
    [null],
    `None is not of type 'object'

Failed validating 'type' in schema['items']:
    ${ACTION}

On instance[0]:
    None`,
  ],
  [
    [{ path: 'a' }],
    `'action' is a required property

Failed validating 'required' in schema['items']:
    ${ACTION}

On instance[0]:
    {'path': 'a'}`,
  ],
  [
    [{ action: 'run' }],
    `'run' is not one of ['add-trait', 'extend-attribute', 'fail', 'remove-trait', 'set-attribute', 'set-capability']

Failed validating 'enum' in schema['items']['properties']['action']:
    {'description': 'action to take',
     'enum': ['add-trait',
              'extend-attribute',
              'fail',
              'remove-trait',
              'set-attribute',
              'set-capability']}

On instance[0]['action']:
    'run'`,
  ],
  [
    [{ action: 'fail', message: 'm' }, { action: ['fail'] }],
    `['fail'] is not one of ['add-trait', 'extend-attribute', 'fail', 'remove-trait', 'set-attribute', 'set-capability']

Failed validating 'enum' in schema['items']['properties']['action']:
    {'description': 'action to take',
     'enum': ['add-trait',
              'extend-attribute',
              'fail',
              'remove-trait',
              'set-attribute',
              'set-capability']}

On instance[1]['action']:
    ['fail']`,
  ],
])('refuses the actions %j, which do not match the schema', (given, message) => {
  expect(refusal([], given)).toBe(`Validation failed for actions: ${message}`);
});

it.each<[object, string]>([
  [{ op: 'eq' }, 'Invalid parameters for operator eq: missing required parameter(s): value'],
  [{ op: 'eq', value: null }, 'Invalid parameters for operator eq: missing required parameter(s): value'],
  [{ op: 'ge', value: 1, unit: 'MB', colour: 'red' }, 'Invalid parameters for operator ge: unexpected parameter(s): unit, colour'],
  [{ op: 'lt', unit: 'MB' }, 'Invalid parameters for operator lt: missing required parameter(s): value; unexpected parameter(s): unit'],
  [{ op: 'is-empty', value: 1 }, 'Invalid parameters for operator is-empty: unexpected parameter(s): value'],
  [{ op: 'matches' }, 'Invalid parameters for operator matches: missing required parameter(s): value'],
])('refuses the condition %j with wrong parameters', (condition, message) => {
  expect(refusal([{ field: 'a', ...condition }], [fail])).toBe(message);
});
it.each<[object, string]>([
  [{ action: 'fail' }, 'Invalid parameters for action fail: missing required parameter(s): message'],
  [{ action: 'add-trait' }, 'Invalid parameters for action add-trait: missing required parameter(s): name'],
  [{ action: 'remove-trait', name: null }, 'Invalid parameters for action remove-trait: missing required parameter(s): name'],
  [{ action: 'set-capability', value: 1 }, 'Invalid parameters for action set-capability: missing required parameter(s): name'],
  [{ action: 'extend-attribute' }, 'Invalid parameters for action extend-attribute: missing required parameter(s): path, value'],
  // Inspector looks for the value first, and then for everything else.
  [{ action: 'set-attribute', other: 1 }, 'Invalid parameters for action set-attribute: missing required parameter(s): value'],
  [
    { action: 'set-attribute', value: 1, other: 1 },
    'Invalid parameters for action set-attribute: missing required parameter(s): path; unexpected parameter(s): other',
  ],
])('refuses the action %j with wrong parameters', (action, message) => {
  expect(refusal([], [action])).toBe(message);
});
it.each<object>([
  { action: 'add-trait', name: 'CUSTOM_A' },
  { action: 'remove-trait', name: 'CUSTOM_A' },
  { action: 'extend-attribute', path: 'extra/a', value: 1 },
  { action: 'extend-attribute', path: 'extra/a', value: 1, unique: true },
  { action: 'set-attribute', path: 'owner', value: null },
  { action: 'set-attribute', path: 'driver', value: 'redfish', reset_interfaces: true },
  { action: 'set-capability', name: 'a' },
  { action: 'set-capability', name: 'a', value: null, unknown: null },
])('stores the action %j unchanged', (action) => {
  expect(checkedIntrospectionRule([], [fail, action]).actions).toEqual([fail, action]);
});

it.each<[unknown, boolean]>([
  ['^a+$', true],
  ['(?P<one>x)-(?P<other>y)', true],
  ['(?i)abc', true],
  ['(?ims)abc', true],
  ['(', false],
  ['x(?P<a', false],
  ['[a', false],
  // Python permits flags at the start only, and nothing to repeat remains without them.
  ['a(?i)', false],
  ['(?i)+', false],
])('accepts the regular expression %j as Python does: %s', (value, accepted) => {
  for (const op of ['matches', 'contains']) {
    const message = refusal([{ op, field: 'a', value }], [fail]);
    const expected = expect.stringMatching(new RegExp(`^Invalid parameters for operator ${op}: invalid regular expression: .`)) as string;
    expect(message).toEqual(accepted ? undefined : expected);
  }
});
it.each<[unknown, boolean]>([
  ['192.0.2.0/24', true],
  ['192.0.2.1', true],
  ['192.0.2.1/0', true],
  ['192.0.2.1/32', true],
  ['192.0.2.1/33', false],
  ['2001:db8::/64', true],
  ['2001:db8::1/128', true],
  ['2001:db8::/129', false],
  ['10.0.0.0/255.0.0.0', true],
  ['10.0.0.0/0.255.255.255', true],
  ['10.0.0.0/0.0.0.0', true],
  ['10.0.0.0/255.255.255.255', true],
  ['10.0.0.0/255.0.255.0', false],
  ['2001:db8::/255.0.0.0', false],
  ['fe80::1%eth0/64', false],
  ['10/8', false],
  ['010.0.0.1/8', false],
  ['192.0.2.0/24/24', false],
  ['192.0.2.0/', false],
  ['192.0.2.0/-8', false],
  ['192.0.2.0/0x8', false],
  ['192.0.2.0/1e1', false],
  ['192.0.2.256/24', false],
  ['here', false],
  ['', false],
])('accepts the network %j of the operator in-net: %s', (value, accepted) => {
  const message = `Invalid parameters for operator in-net: invalid value: invalid IPNetwork ${String(value)}`;
  expect(refusal([{ op: 'in-net', field: 'a', value }], [fail])).toBe(accepted ? undefined : message);
});

it.each<[object, object]>([
  [
    { op: 'is-empty', field: 'a' },
    { multiple: 'any', invert: false },
  ],
  [{ op: 'eq', field: 'node://uuid', value: 'u', multiple: 'all' }, { invert: false }],
  [{ op: 'ne', field: 'data://a.b', value: 0, invert: true }, { multiple: 'any' }],
  [{ op: 'gt', field: 'a[*].b', value: false, multiple: 'first', invert: true }, {}],
  [
    { op: 'le', field: 'a', value: '' },
    { multiple: 'any', invert: false },
  ],
])('stores the condition %j with the defaults %j', (condition, defaults) => {
  expect(checkedIntrospectionRule([condition], [fail])).toEqual({ conditions: [{ ...condition, ...defaults }], actions: [fail] });
});
it.each([
  ['http://a', 'Unsupported scheme for field: http, valid values are node:// or data://'],
  ['://a', 'Unsupported scheme for field: , valid values are node:// or data://'],
  ['data://a[', 'Unable to parse field JSON path data://a[: Parse error near the end of string!'],
  ['a.', 'Unable to parse field JSON path a.: Parse error near the end of string!'],
])('refuses the field %j', (field, message) => {
  expect(refusal([{ op: 'is-empty', field }], [fail])).toBe(message);
});
it.each([
  ['a.b', 'data', 'a.b'],
  ['data://a.b', 'data', 'a.b'],
  ['node://uuid', 'node', 'uuid'],
  ['://a', '', 'a'],
  ['node:/uuid', 'data', 'node:/uuid'],
])('fieldOf splits %j into the scheme %j and the path %j', (field, scheme, path) => {
  expect(fieldOf(field)).toEqual({ scheme, path });
});
