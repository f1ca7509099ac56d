/** Texts with everything that a database or a cut may not bear: U+0000, surrogates alone and in pairs, escapes, great length. */
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
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...UNITS), { maxLength: 40 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.tuple(fc.constantFrom(...UNITS), fc.integer({ min: 0, max: 100_000 })).map(([unit, times]) => unit.repeat(times)),
);
