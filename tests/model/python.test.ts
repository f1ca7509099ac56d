import { pformat, repr, str, toBoolean, toInteger, typeName } from '../../model/python';

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
])('repr(%p) is %s', (value, expected) => expect(repr(value)).toBe(expected));

it('str returns text without quotes', () => expect([str('a'), str(5), str(null)]).toEqual(['a', '5', 'None']));

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
])('toBoolean(%p) is %p', (value, expected) => expect(toBoolean(value)).toBe(expected));

it.each([
  ['5', 5],
  [' -5 ', -5],
  ['1_000', 1000],
  [5.9, 5],
  [true, 1],
  ['5.5', undefined],
  ['', undefined],
  [[], undefined],
])('toInteger(%p) is %p', (value, expected) => expect(toInteger(value)).toBe(expected));

it("typeName returns the names of Python's types", () =>
  expect([null, 'a', 1, 1.5, true, [], {}].map(typeName)).toEqual(['NoneType', 'str', 'int', 'float', 'bool', 'list', 'dict']));

/** What Python 3.11 printed: pprint.pformat(value, width=72, sort_dicts=False). */
it.each([
  [{ a: 1 }, "{'a': 1}"],
  [{ key: 'x'.repeat(60), other: [1, null, true] }, `{'key': '${'x'.repeat(60)}',\n 'other': [1, None, True]}`],
  [
    'a long text of many words '.repeat(4),
    "('a long text of many words a long text of many words a long text of '\n 'many words a long text of many words ')",
  ],
  [
    [{ interface: 'bogus', args: { note: 'words and words and more words to be cut at blanks' } }],
    "[{'interface': 'bogus',\n  'args': {'note': 'words and words and more words to be cut at '\n                   'blanks'}}]",
  ],
])('pformat of %j', (value, text) => expect(pformat(value, 72)).toBe(text));
