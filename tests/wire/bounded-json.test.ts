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

const LIMITS = { values: 500_000, depth: 10 };
const range = <T>(length: number, of: (at: number) => T): readonly T[] => Array.from({ length }, (_, at) => of(at));
const names = (count: number, of: (at: number) => unknown): unknown => Object.fromEntries(range(count, (at) => [`name ${at}`, of(at)]));
/** More than is parsed in one turn. */
it.each<[string, unknown]>([
  ['a list', range(60_000, (at) => at / 3)],
  ['an object', names(30_000, (at) => `${at}`)],
  ['lists in an object', { a: range(30_000, (at) => [at]), b: [], c: {}, d: range(30_000, () => null), e: 'é日' }],
  ['objects in lists', range(9, () => [names(6000, (at) => [at, { at }]), 1, {}])],
  ['deep containers', range(6, (at) => at).reduce<unknown>((inner, at) => ({ [at]: range(6000, () => true), inner, last: 1 }), [])],
  ['a long text', { text: 'é"\\\u0000日😀'.repeat(200_000), name: 1 }],
  ['a long name', { ['é"\\日'.repeat(200_000)]: [1, { a: 2 }] }],
])('parseJson returns the value of JSON.parse for %s', async (_, value) => {
  const text = JSON.stringify(value);
  expect(JSON.stringify(await parseJson(Buffer.from(`\uFEFF${text}`), LIMITS))).toBe(text);
});
it.each([
  ['small', ''],
  ['large', `,"list":[${'1,'.repeat(60_000)}1]`],
])('in %s JSON, a member "__proto__" does not change the prototype of the result', async (_, rest) => {
  const parsed = (await parseJson(Buffer.from(`{"a":1,"__proto__":{"b":1},"__proto__":3${rest}}`), LIMITS)) as object;
  expect([Object.getPrototypeOf(parsed), Object.keys(parsed).slice(0, 2)]).toEqual([Object.prototype, ['a', '__proto__']]);
});
it('parseJson rejects large JSON with the error of JSON.parse, and parses the next', async () => {
  const text = `[${'1,'.repeat(60_000)}]`;
  const reason = (() => {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      return error;
    }
  })();
  await expect(parseJson(Buffer.from(text), LIMITS)).rejects.toEqual(reason);
  await expect(parseJson(Buffer.from(text.replace(',]', ']')), LIMITS)).resolves.toHaveLength(60_000);
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
