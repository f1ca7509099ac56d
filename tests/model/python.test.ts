import { BOOLEAN_WORDS, pformat, repr, str, toBoolean, toInteger, typeName } from '../../model/python';

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
  ['\t\r\n', "'\\t\\r\\n'"],
  ['\u007f\u0080', "'\\x7f\\x80'"],
  ['é~ !', "'é~ !'"],
  ['say "x"', `'say "x"'`],
  ["it's\n", '"it\'s\\n"'],
  ['-', "'-'"],
  ['', "''"],
  [false, 'False'],
  [undefined, 'None'],
  [[], '[]'],
  [{}, '{}'],
  [{ "it's": 1, b: 2 }, "{\"it's\": 1, 'b': 2}"],
  [['a', null], "['a', None]"],
  [{ a: { b: [1] } }, "{'a': {'b': [1]}}"],
])('repr(%p) is %s', (value, expected) => expect(repr(value)).toBe(expected));

it('str returns text without quotes', () => expect([str('a'), str(5), str(null)]).toEqual(['a', '5', 'None']));

it.each<readonly [unknown, boolean | undefined]>([
  ['Yes', true],
  [' on ', true],
  ['1', true],
  [true, true],
  ['F', false],
  ['no', false],
  [0, false],
  ...['1', 't', 'true', 'on', 'y', 'yes', 'TRUE'].map((word) => [word, true] as const),
  ...['0', 'f', 'false', 'off', 'n', 'no', ' Off\n'].map((word) => [word, false] as const),
  [false, false],
  [1, true],
  [2, undefined],
  ['maybe', undefined],
  ['', undefined],
  [null, undefined],
])('toBoolean(%p) is %p', (value, expected) => expect(toBoolean(value)).toBe(expected));

it.each<[unknown, number | undefined]>([
  ['5', 5],
  [' -5 ', -5],
  ['1_000', 1000],
  [5.9, 5],
  [true, 1],
  [false, 0],
  [-5.9, -5],
  ['+5', 5],
  ['\t5\n', 5],
  ['1_0_0', 100],
  ['_5', undefined],
  ['5_', undefined],
  ['5__0', undefined],
  ['5 0', undefined],
  ['x5', undefined],
  ['5x', undefined],
  ['--5', undefined],
  [NaN, undefined],
  [Infinity, undefined],
  [null, undefined],
  [['5'], undefined],
  ['5.5', undefined],
  ['', undefined],
  [[], undefined],
])('toInteger(%p) is %p', (value, expected) => expect(toInteger(value)).toBe(expected));

it('BOOLEAN_WORDS lists the words in the order in which messages list them', () =>
  expect(BOOLEAN_WORDS).toBe("'0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'"));

it("typeName returns the names of Python's types", () =>
  expect([null, undefined, 'a', 1, 1.5, true, [], {}].map(typeName)).toEqual([
    'NoneType',
    'NoneType',
    'str',
    'int',
    'float',
    'bool',
    'list',
    'dict',
  ]));

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
  [{}, '{}'],
  [[], '[]'],
  [[1, 2, 3], '[1, 2, 3]'],
  ['x'.repeat(71), "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"],
  ['x'.repeat(80), "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"],
  [['x'.repeat(80)], "['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']"],
  ['word '.repeat(14) + 'x', "('word word word word word word word word word word word word word '\n 'word x')"],
  ['word '.repeat(20), "('word word word word word word word word word word word word word '\n 'word word word word word word word ')"],
  [
    ['word '.repeat(20), 1],
    "['word word word word word word word word word word word word word '\n 'word word word word word word word ',\n 1]",
  ],
  [
    { k: ['word '.repeat(16), 'b'], l: { m: 'n'.repeat(50), o: 'p'.repeat(30) } },
    "{'k': ['word word word word word word word word word word word word '\n       'word word word word ',\n       'b'],\n 'l': {'m': 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',\n       'o': 'pppppppppppppppppppppppppppppp'}}",
  ],
  [[Array.from({ length: 20 }, () => 1), [2]], '[[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [2]]'],
  [
    { a: null, b: true, c: 'y'.repeat(70) },
    "{'a': None,\n 'b': True,\n 'c': 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'}",
  ],
  [{ "it's": 'z'.repeat(70), q: 1 }, "{\"it's\": 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz',\n 'q': 1}"],
  ['aa ' + 'b'.repeat(80) + ' c', "('aa '\n 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb '\n 'c')"],
  [
    { ['k'.repeat(30)]: 'word '.repeat(12), l: 1 },
    "{'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk': 'word word word word word word word '\n                                   'word word word word word ',\n 'l': 1}",
  ],
  [
    [{ a: { b: { c: 'word '.repeat(16) } } }],
    "[{'a': {'b': {'c': 'word word word word word word word word word word '\n                   'word word word word word word '}}}]",
  ],
  ['a'.repeat(36) + ' ' + 'b'.repeat(34), "('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa '\n 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb')"],
  ['a'.repeat(36) + ' ' + 'b'.repeat(31), "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'"],
  [['a'.repeat(34) + ' ' + 'b'.repeat(33)], "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb']"],
  [['a'.repeat(34) + ' ' + 'b'.repeat(34)], "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa '\n 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb']"],
  [{ n: 12345678901, t: 'x'.repeat(46) }, "{'n': 12345678901,\n 't': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}"],
  [{ n: 12345678901, t: 'x'.repeat(47) }, "{'n': 12345678901,\n 't': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}"],
  ["it's ".repeat(18), "(\"it's it's it's it's it's it's it's it's it's it's it's it's it's \"\n \"it's it's it's it's it's \")"],
  [
    'two  blanks  '.repeat(8),
    "('two  blanks  two  blanks  two  blanks  two  blanks  two  blanks  '\n 'two  blanks  two  blanks  two  blanks  ')",
  ],
  [
    'line one\nline two\n'.repeat(5),
    "('line one\\n'\n 'line two\\n'\n 'line one\\n'\n 'line two\\n'\n 'line one\\n'\n 'line two\\n'\n 'line one\\n'\n 'line two\\n'\n 'line one\\n'\n 'line two\\n')",
  ],
  [
    { a: 'first\r\nsecond\rthird\n'.repeat(4), b: 1 },
    "{'a': 'first\\r\\n'\n      'second\\r'\n      'third\\n'\n      'first\\r\\n'\n      'second\\r'\n      'third\\n'\n      'first\\r\\n'\n      'second\\r'\n      'third\\n'\n      'first\\r\\n'\n      'second\\r'\n      'third\\n',\n 'b': 1}",
  ],
  [
    'x'.repeat(90) + '\n' + 'word '.repeat(20),
    "('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n'\n 'word word word word word word word word word word word word word '\n 'word word word word word word word ')",
  ],
  [['a b\n' + 'c'.repeat(80)], "['a b\\n'\n 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc']"],
  [
    { k: ['q\n'.repeat(20), 'r'] },
    "{'k': ['q\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\nq\\n',\n       'r']}",
  ],
  ['y '.repeat(34) + 'zz', "'y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y zz'"],
  ['y '.repeat(34) + 'zzz', "('y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y '\n 'zzz')"],
  [5, '5'],
  [null, 'None'],
])('pformat of %j', (value, text) => expect(pformat(value, 72)).toBe(text));
