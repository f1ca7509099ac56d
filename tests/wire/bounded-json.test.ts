import { JsonLimitError, parseJson, parseSmallJson, parseStrictJson } from '../../wire/bounded-json';

const parse = (text: string, limits = {}): unknown => {
  try {
    return parseSmallJson(Buffer.from(text), { values: 10, depth: 3, ...limits });
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
  [`${' \n'.repeat(8 * 1024)}1`, 1],
  [`${' \n'.repeat(8 * 1024)} 1`, 'blanks'],
  ['', 'SyntaxError'],
  ['"', 'SyntaxError'],
  ['"\\', 'SyntaxError'],
  [']]]]', 'SyntaxError'],
])('parseSmallJson parses or rejects %s', (text, expected) => expect(parse(text)).toEqual(expected));

it('parseStrictJson rejects megabytes of whitespace in large JSON', async () => {
  const limits = { values: 10, depth: 10 };
  for (const text of [`${' '.repeat(1 << 20)}1`, `[1,${'\n'.repeat(1 << 20)}2]`])
    await expect(parseStrictJson(Buffer.from(text), limits)).rejects.toThrow('blanks');
});
it('parseSmallJson replaces invalid UTF-8', () =>
  expect(parseSmallJson(Buffer.from([0x22, 0xff, 0x22]), { values: 1, depth: 1 })).toBe('\uFFFD'));
it('parseStrictJson rejects invalid UTF-8', async () => {
  await expect(parseStrictJson(Buffer.from([0x22, 0xff, 0x22]), { values: 1, depth: 1 })).rejects.toThrow(TypeError);
});

/** So short that each comma is between two pieces. */
const PIECE = 2;
const LIMITS = { values: 1000, depth: 10 };
const outcome = (parsing: () => unknown): unknown => {
  try {
    return JSON.stringify(parsing());
  } catch (error) {
    return (error as Error).name;
  }
};
it.each([
  '["x,]}\\"\\\\",1,[2,[3,"~",{"a":4}],5],6]',
  '{"a":"~","__proto__":{"b":1,"c":1,"d":2},"a":["~",[],{}],"10":1,"9":{}}',
  '{"e":[[],{},[["~",1]],{}],"f":[{"a":1},{"b":2,"c":[]}]}',
  ' [ { "n" : 1 , "z" : [ "~" , [ ] ] } , 2 ] ',
  '\uFEFF["é\\u00e9日",{"a":["é\\u00e9日",1]}]',
  '[[1,2],[3,4],[[5,6],7]]',
  '{"long name":"long \\\\\\u00e9 日本 \\\"text","\\ud83d\\ude00 as name":["a text",{"__proto__":"a text"}]}',
])('parsing %s in pieces gives the same result as JSON.parse, also after each change of one character', (text) => {
  const differing: unknown[] = [];
  const tokens = ['', ',', ']', '}', '[', '{', ':', '1', '"', '\u00a0', ' '];
  for (let at = 0; at <= text.length; at++)
    for (const changed of tokens.flatMap((token) => [
      text.slice(0, at) + token + text.slice(at),
      text.slice(0, at) + token + text.slice(at + 1),
    ])) {
      const inPieces = outcome(() => parseSmallJson(Buffer.from(changed), LIMITS, PIECE));
      const atOnce = outcome(() => JSON.parse(changed.replace(/^\uFEFF/, '')));
      if (inPieces !== atOnce) differing.push([changed, inPieces, atOnce]);
    }
  expect(differing).toEqual([]);
});
it('a member "__proto__" does not change the prototype of the result', () => {
  const parsed = parseSmallJson(Buffer.from('{"a":1,"__proto__":{"b":1,"c":2},"__proto__":3}'), LIMITS, PIECE);
  expect([Object.getPrototypeOf(parsed), Object.keys(parsed as object)]).toEqual([Object.prototype, ['a', '__proto__']]);
});
it('parseJson yields to other work while it parses a large text', async () => {
  const large = Buffer.from(`[${'"abcdefgh",'.repeat(400_000)}1]`);
  let turns = 0;
  const counting = setInterval(() => turns++);
  const parsed = await parseJson(large, { values: 500_000, depth: 2 });
  clearInterval(counting);
  expect(parsed).toHaveLength(400_001);
  expect(turns).toBeGreaterThan(1);
});

it.each(['small', 'large'])('texts of machines lose the characters that the database refuses, in %s JSON', async (size) => {
  const rest = size === 'large' ? Array.from({ length: 20_000 }, () => 'abc') : [];
  const text = JSON.stringify({ version: '1.2\0\0', 'a\0b': ['\ud800', '\\u0000', '😀'], rest });
  const limits = { values: 50_000, depth: 5 };
  const clean = { version: '1.2', 'a\ufffdb': ['\ufffd', '\\u0000', '😀'], rest };
  expect(await parseJson(Buffer.from(text), { ...limits, foreign: true })).toEqual(clean);
  expect(await parseJson(Buffer.from(text.replace('\\ud800', '\\uD800')), { ...limits, foreign: true })).toEqual(clean);
  expect(await parseJson(Buffer.from(text), limits)).toEqual(JSON.parse(text));
});
