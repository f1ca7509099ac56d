/** Texts with everything that a database or a cut may not bear: U+0000, surrogates alone and in pairs, escapes, great length. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';

const UNITS = [
  '\0',
  '\ud800',
  '\udbff',
  '\udc00',
  '\udfff',
  '\ufffd',
  '😀',
  'ü',
  '\\',
  '\\u0000',
  '\\ud800',
  '"',
  "'",
  '\n',
  '%',
  '{',
  ',',
  '}',
  'a',
  ' ',
];
/** As `fc.string({ unit: 'binary' })`, which first makes a table of all code points: that takes two seconds. Surrogates are alone too. */
const codePoints = fc.array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 40 }).map((points) => String.fromCodePoint(...points));
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...UNITS), { maxLength: 40 }).map((parts) => parts.join('')),
  codePoints,
  fc.tuple(fc.constantFrom(...UNITS), fc.integer({ min: 0, max: 5000 })).map(([unit, times]) => unit.repeat(times)),
);

/** Compression makes a text shorter for indexes, but not this one. */
export function incompressible(length: number): string {
  let text = '';
  for (let at = 0; text.length < length; at++) text += createHash('sha512').update(String(at)).digest('base64url');
  return text.slice(0, length);
}
