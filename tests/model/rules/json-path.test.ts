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
])('parseJsonPath evaluates %s', (path, found) => {
  expect(parseJsonPath(path)(DATA)).toEqual(found);
});

it.each(['', 'a[', 'a.0', 'é', 'a]', 'a..', '[', 'x'.repeat(1025)])('parseJsonPath rejects %j', (path) => {
  expect(() => parseJsonPath(path)).toThrow();
});
