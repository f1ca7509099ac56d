/** What the Python package jsonpath-rw 1.4.0 finds with the same paths. */
import { parseJsonPath } from '../../../model/rules/json-path';

const DATA = { a: [{ b: 1 }, { b: 2 }], b: { c: 3 }, 'a-b': 5 };

it.each<[string, readonly unknown[]]>([
  ['a', [DATA.a]],
  ['$.a', [DATA.a]],
  ['a.b', []],
  ['a[0]', [{ b: 1 }]],
  ['a[-1]', [{ b: 2 }]],
  ['a[*]', DATA.a],
  ['a[*].b', [1, 2]],
  ['a[1:2]', [{ b: 2 }]],
  ['a..b', [1, 2]],
  ['$..b', [{ c: 3 }, 1, 2]],
  ['*', [DATA.a, DATA.b, 5]],
  ['a.*', []],
  ["'a-b'", [5]],
  ['a-b', [5]],
  ['"a b".c', []],
  ['a|b', [DATA.a, DATA.b]],
  ['a,b', [DATA.a, DATA.b]],
  ['_x', []],
  ['a.b|c', []],
  ['a[*].b|c', [1, 2]],
  ['a[*].x|b', [1, 2]],
  ['a[*].b|b.c', []],
  ['b.c|x', [3]],
  ['x|b.c', [3]],
  // Brackets apply to all that precedes them, and then `|` too.
  ['x|a[0].b', [1]],
  ['a[0]|a[1].b', [2]],
  ['a[0]|b', [{ b: 1 }, DATA.b]],
  ['a[0].x|b', [1]],
  ['a[*][0:1]', DATA.a],
  ['x.y|z[0]', []],
  ['x|a|b', [DATA.a, DATA.b]],
  ['a|x', [DATA.a]],
  ['$..c|b', [{ c: 3 }, 1, 2, 3]],
  ['$', [DATA]],
  ['b.$', [DATA]],
  ['a[0].$.b', [{ c: 3 }]],
  ['`this`', [DATA]],
  ['b.`this`.c', [3]],
  ['a[0:1]', [{ b: 1 }]],
  ['a[:1]', [{ b: 1 }]],
  ['a[1:]', [{ b: 2 }]],
  ['a[:]', DATA.a],
  ['a[-1:]', [{ b: 2 }]],
  ['a[-1:0]', []],
  ['a[2]', []],
  ['a[00]', [{ b: 1 }]],
  ['b[*]', [{ c: 3 }]],
  ['b[*].c', [3]],
  ['b[0:1]', [{ c: 3 }]],
  ['a[*][*]', DATA.a],
  ['a[b]', []],
  ['a[0][b]', [1]],
  ['a.[0]', [{ b: 1 }]],
  ['[a]', [DATA.a]],
  ['[a,b]', [DATA.a, DATA.b]],
  ["b['c']", [3]],
  ["b.'c'", [3]],
  ['"a-b"', [5]],
  ['a..*', [1, 2]],
  ['$..*', [DATA.a, DATA.b, 5, 1, 2, 3]],
  ['b..c', [3]],
  ['b.c,d', [3]],
  ['b.*', [3]],
  ['*.c', [3]],
  [' a [ 0 ] . b ', [1]],
  ['@type', []],
  ['_x1-y', []],
  ['b.c.d', []],
])('parseJsonPath evaluates %s', (path, found) => {
  expect(parseJsonPath(path)(DATA)).toEqual(found);
});

it.each<[unknown, string, readonly unknown[]]>([
  [{ _a1: 1, '@b': 2, A: 3 }, '_a1', [1]],
  [{ _a1: 1, '@b': 2, A: 3 }, '@b', [2]],
  [{ _a1: 1, '@b': 2, A: 3 }, 'A', [3]],
  [{ _a1: 1, '@b': 2, A: 3 }, 'a', []],
  [{ 'a.b': 1, '': 2 }, "'a.b'", [1]],
  [{ 'a.b': 1, '': 2 }, "''", [2]],
  [{ 'a.b': 1, '': 2 }, '""', [2]],
  // No member of every object.
  [{}, 'constructor', []],
  [{ a: null, b: [null] }, 'a', [null]],
  [{ a: null, b: [null] }, 'b[0]', [null]],
  [{ a: null }, 'a.b', []],
  [{ a: 'text' }, 'a.length', []],
  [{ a: 'text' }, 'a[0]', []],
  [{ a: 'text' }, 'a.*', []],
  [{ a: [[1, 2], [3]] }, 'a[*][0]', [1, 3]],
  [{ a: { b: { a: 1 } } }, 'a..a', [1]],
  [Array.from({ length: 12 }, (_, at) => at), '[10:12]', [10, 11]],
  [null, 'a', []],
])('parseJsonPath finds in %j what the path %j selects', (data, path, found) => {
  expect(parseJsonPath(path)(data)).toEqual(found);
});

const END = 'Parse error near the end of string!';
it.each<[string, string]>([
  ['', END],
  ['a.', END],
  ['a..', END],
  ['a[', END],
  ['a[0', END],
  ['a[*', END],
  ['[', END],
  ['a,', END],
  ['a|', END],
  ['a]', 'Parse error near token ]'],
  ['a.0', 'Parse error near token 0'],
  ['0', 'Parse error near token 0'],
  ['a[]', 'Parse error near token ]'],
  ['a[0]b', 'Parse error near token b'],
  ['a b', 'Parse error near token b'],
  ['a[:x]', 'Parse error near token x'],
  ['a[x:1]', 'Parse error near token :'],
  ['a[1:2:1]', 'Parse error near token :'],
  ['a[1,2]', 'Parse error near token ,'],
  ['a[b,]', 'Parse error near token ]'],
  ['a||b', 'Parse error near token |'],
  ['|a', 'Parse error near token |'],
  ['..a', 'Parse error near token ..'],
  ['a...b', 'Parse error near token .'],
  ['$$', 'Parse error near token $'],
  ["'*'x", 'Parse error near token x'],
  ['b.c`this`', 'Parse error near token this'],
  ['b.`that`', 'Unknown named operator `that`'],
  ['-', 'Error on line 1, col 0: Unexpected character: - '],
  ['a[-]', 'Error on line 1, col 2: Unexpected character: - '],
  ['é', 'Error on line 1, col 0: Unexpected character: é '],
  ['a#', 'Error on line 1, col 1: Unexpected character: # '],
  ["'a", "Error on line 1, col 0: Unexpected character: ' "],
  ['"a', 'Error on line 1, col 0: Unexpected character: " '],
  ['`a', 'Error on line 1, col 0: Unexpected character: ` '],
])('parseJsonPath refuses %j: %s', (path, message) => {
  expect(() => parseJsonPath(path)).toThrow(new Error(message));
});
it('parseJsonPath refuses paths of more than 1024 characters', () => {
  expect(parseJsonPath('x'.repeat(1024))({})).toEqual([]);
  expect(() => parseJsonPath('x'.repeat(1025))).toThrow(new Error('it is longer than 1024 characters'));
});
it('parseJsonPath limits the number of values that a path selects', () => {
  const many = (count: number): string => Array.from({ length: count }, () => '$|$').join('.');
  expect(parseJsonPath(many(16))({})).toHaveLength(65_536);
  expect(() => parseJsonPath(many(17))({})).toThrow(new Error('the JSON path selects more than 100000 values'));
});
