import fc from 'fast-check';
import { isStorable, shortened, storable, storableJson } from '../../model/text';
import { anyText } from '../support/any-text';

it.each([
  ['', ''],
  ['plain', 'plain'],
  ['ü😀', 'ü😀'],
  ['a\0b', 'a\ufffdb'],
  ['a\ud800b', 'a\ufffdb'],
  ['\udc00\0', '\ufffd\ufffd'],
])('storable(%j) is %j', (text, expected) => {
  expect(storable(text)).toBe(expected);
  expect(isStorable(text)).toBe(text === expected);
});

it.each([
  [{ a: '\0' }, '{"a":"\ufffd"}'],
  [{ '\0': '\ud800' }, '{"\ufffd":"\ufffd"}'],
  // The texts are a backslash with letters, and not escapes.
  [['\\u0000', '\\\\u0000', '\\ud800', '\\\0'], String.raw`["\\u0000","\\\\u0000","\\ud800","\\${'\ufffd'}"]`],
  [['\u0001', '😀', '"'], String.raw`["\u0001","😀","\""]`],
])('storableJson(%j)', (value, expected) => expect(storableJson(value)).toBe(expected));

it.each([
  ['short', 5, 'short'],
  ['0123456789'.repeat(10), 45, '012345678901234567890123456 […] 7890123456789'],
  // Too little room for both ends.
  ['0123456789', 8, '01234567'],
])('shortened(%j, %d) is %j', (text, most, expected) => expect(shortened(text, most)).toBe(expected));

it('shortened() keeps both ends, never cuts a character, and is never too long', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 0, max: 100 }), (text, most) => {
      const well = storable(text);
      const short = shortened(well, most);
      expect(short.length).toBeLessThanOrEqual(most);
      expect(isStorable(short)).toBe(true);
      if (well.length <= most) expect(short).toBe(well);
    }),
  );
});

it('storable() and storableJson() leave nothing that the database refuses, and change nothing else', () => {
  fc.assert(
    fc.property(fc.jsonValue(), anyText, anyText, (value, name, text) => {
      expect(isStorable(storable(text))).toBe(true);
      const json = JSON.parse(storableJson({ [name]: [text, value] })) as unknown;
      expect(storableJson(json)).toBe(JSON.stringify(json));
      if (isStorable(text) && isStorable(name) && name !== '__proto__')
        expect(Object.entries(json as object)[0]).toEqual([
          name,
          [text, JSON.parse(JSON.stringify((json as Record<string, unknown[]>)[name]![1]))],
        ]);
    }),
  );
});
