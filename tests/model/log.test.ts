import { oneLine, printable, printableText } from '../../model/log';
import { UNSAFE_TEXTS } from '../support/unsafe-texts';

it.each(UNSAFE_TEXTS)('printable() shows %s as an escape of JSON', (_, text) => {
  const shown = printable(`a${text}b`);
  expect(shown).toMatch(/^a(?:\\u[0-9a-f]{4}|\\[nrt])b$/);
  expect(JSON.parse(`"${shown}"`)).toBe(`a${text}b`);
  expect(oneLine(`a${text} ${text}b${text}`)).toBe('a b');
});

it('printable() keeps other characters, and JSON', () => {
  const text = 'Ärger "\\n" 日本語 😀 עברית';
  expect(printable(text)).toBe(text);
  expect(oneLine(text)).toBe(text);
  const value = { text: UNSAFE_TEXTS.map(([, one]) => one).join('x'), list: [1, 'Ä'] };
  expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
  expect(JSON.parse(printableText(JSON.stringify(value, null, 2)))).toEqual(value);
});

it('printableText() keeps line breaks and tabs', () => {
  expect(printableText('one\n\ttwo\r\u001b[2J\u2028\n')).toBe('one\n\ttwo\\r\\u001b[2J\\u2028\n');
});
