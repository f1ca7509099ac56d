import fc from 'fast-check';
import { isStorable } from '../../model/text';
import { storableBytes } from '../../wire/storable-json';
import { anyText } from '../support/any-text';

const clean = (json: string): string => Buffer.from(storableBytes(Buffer.from(json))).toString();

it.each([
  [String.raw`"1.2.3\u0000\u0000"`, '"1.2.3"'],
  [String.raw`"\u0000"`, '""'],
  [String.raw`{"Boot\u0000":["a\u0000\u0000b\u0000",1]}`, String.raw`{"Boot":["a\ufffd\ufffdb",1]}`],
  [String.raw`"\ud800"`, String.raw`"\ufffd"`],
  [String.raw`"\uDC00\uD83D\uDE00\uD83D"`, String.raw`"\ufffd\uD83D\uDE00\ufffd"`],
  [String.raw`"\ud83d\ud83d\ude00"`, String.raw`"\ufffd\ud83d\ude00"`],
  [String.raw`"\ud83dx\ude00"`, String.raw`"\ufffdx\ufffd"`],
  [String.raw`"\\u0000\\\u0000\n\"\u0041"`, String.raw`"\\u0000\\\ufffd\n\"\u0041"`],
  [String.raw`"\u0000\"\u0000"`, String.raw`"\ufffd\""`],
  // No JSON: still no JSON, and nothing that is read beyond the end.
  [String.raw`"\u0000\u00`, String.raw`"\ufffd\u00`],
  ['\\ud800\\', '\\ufffd\\'],
  [String.raw`\ud8zz\u0000`, String.raw`\ud8zz\ufffd`],
])('%s becomes %s', (json, expected) => expect(clean(json).slice(0, expected.length)).toBe(expected));

it('JSON without such escapes is not copied', () => {
  const bytes = Buffer.from('{"a":"\\u0041 \\\\ü😀"}');
  expect(storableBytes(bytes)).toBe(bytes);
});

/** The text as the function changes it. */
const expected = (text: string): string =>
  (text as never as { toWellFormed(): string }).toWellFormed().replace(/\0+$/, '').replaceAll('\0', '\ufffd');
it('changes refused characters and padding only', () => {
  fc.assert(
    fc.property(anyText, anyText, (text, name) => {
      // Surrogates in pairs may be escapes too.
      const json = JSON.stringify({ [`k${name}`]: text, rest: [1, null, text] }).replace(
        /[^ -~]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`,
      );
      const found = JSON.parse(clean(json)) as Record<string, unknown>;
      expect(found).toEqual({ [expected(`k${name}`)]: expected(text), rest: [1, null, expected(text)] });
      for (const key of Object.keys(found)) expect(isStorable(key)).toBe(true);
    }),
  );
});
