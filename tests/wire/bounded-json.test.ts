import { JsonLimitError, parseJson } from '../../wire/bounded-json';

const parse = (text: string, limits = {}): unknown => {
  try {
    return parseJson(Buffer.from(text), { values: 10, depth: 3, ...limits });
  } catch (error) {
    return error instanceof JsonLimitError ? error.limit : (error as Error).name;
  }
};

it.each<[string, unknown]>([
  ['{"a":[1,"x"]}', { a: [1, 'x'] }],
  ['\uFEFF1', 1],
  ['"[[[[{{{{,,,,,,,,,,,,"', '[[[[{{{{,,,,,,,,,,,,'],
  ['"\\"[[[[[[\\\\"', '"[[[[[[\\'],
  ['[[[1]]]', [[[1]]]],
  ['[[[[1]]]]', 'depth'],
  ['[[],[],[[]]]', [[], [], [[]]]],
  [`[${'1,'.repeat(8)}1]`, Array.from({ length: 9 }, () => 1)],
  [`[${'1,'.repeat(10)}1]`, 'values'],
  ['{"a":1,"b":2,"c":3,"d":4,"e":5}', { a: 1, b: 2, c: 3, d: 4, e: 5 }],
  ['{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', 'values'],
  ['9'.repeat(1025), 'number'],
  [`"${'9'.repeat(1025)}"`, '9'.repeat(1025)],
  ['', 'SyntaxError'],
  ['"', 'SyntaxError'],
  ['"\\', 'SyntaxError'],
  [']]]]', 'SyntaxError'],
])('%s', (text, expected) => expect(parse(text)).toEqual(expected));

it('replaces bytes that are no UTF-8', () => expect(parseJson(Buffer.from([0x22, 0xff, 0x22]), { values: 1, depth: 1 })).toBe('\uFFFD'));
