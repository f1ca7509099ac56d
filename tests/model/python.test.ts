import { repr, str, toBoolean, toInteger, typeName } from '../../model/python';

it.each([
  [null, 'None'],
  [true, 'True'],
  [5, '5'],
  [5.5, '5.5'],
  ['a', "'a'"],
  ["it's", '"it\'s"'],
  ['both \' and "', "'both \\' and \"'"],
  ['back\\slash\n', "'back\\\\slash\\n'"],
  ['\u0001', "'\\x01'"],
  [['a', null], "['a', None]"],
  [{ a: { b: [1] } }, "{'a': {'b': [1]}}"],
])('repr of %p', (value, expected) => expect(repr(value)).toBe(expected));

it('shows text bare', () => expect([str('a'), str(5), str(null)]).toEqual(['a', '5', 'None']));

it.each([
  ['Yes', true],
  [' on ', true],
  ['1', true],
  [true, true],
  ['F', false],
  ['no', false],
  [0, false],
  ['maybe', undefined],
  ['', undefined],
  [null, undefined],
])('boolean %p', (value, expected) => expect(toBoolean(value)).toBe(expected));

it.each([
  ['5', 5],
  [' -5 ', -5],
  ['1_000', 1000],
  [5.9, 5],
  [true, 1],
  ['5.5', undefined],
  ['', undefined],
  [[], undefined],
])('integer %p', (value, expected) => expect(toInteger(value)).toBe(expected));

it('names types', () =>
  expect([null, 'a', 1, 1.5, true, [], {}].map(typeName)).toEqual(['NoneType', 'str', 'int', 'float', 'bool', 'list', 'dict']));
