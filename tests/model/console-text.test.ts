import { plainConsoleText } from '../../model/rules/console-text';

it.each([
  ['login: ', 'login: '],
  ['a\r\nb\r\r\nc\rd', 'a\nb\nc\nd'],
  ['\u001b[2J\u001b[1;1H\u001b[0;37;40mGRUB\u001b[0m', 'GRUB'],
  ['\u001b]0;the title\u0007text', 'text'],
  ['\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\', 'link'],
  ['\u001bP$q"p\u001b\\x\u001b(By\u001bMz', 'xyz'],
  ['tab\there\u0000\u0008\u007f\u009b', 'tab\there'],
  ['an escape at the end \u001b', 'an escape at the end '],
  ['\u001b[31', '[31'],
  ['grüße ✓', 'grüße ✓'],
])('%j becomes %j', (given, text) => expect(plainConsoleText(given)).toBe(text));
it('takes linear time', () => {
  for (const part of ['\u001b[', '\u001b]', '\u001b]x', '\r', '\u001b[0', '\u001b\u001b'])
    expect(plainConsoleText(part.repeat(100_000)).length).toBeLessThanOrEqual(part.length * 100_000);
});
