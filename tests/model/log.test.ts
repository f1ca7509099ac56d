import { createBoundedLog, oneLine, printable, printableText, type Log } from '../../model/log';
import { testClock } from '../support/clock';
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
  const value = { text: UNSAFE_TEXTS.map(([, unsafeText]) => unsafeText).join('x'), list: [1, 'Ä'] };
  expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
  expect(JSON.parse(printableText(JSON.stringify(value, null, 2)))).toEqual(value);
});

it('printableText() keeps line breaks and tabs', () => {
  expect(printableText('one\n\ttwo\r\u001b[2J\u2028\n')).toBe('one\n\ttwo\\r\\u001b[2J\\u2028\n');
});

function open() {
  const lines: string[] = [];
  const at =
    (level: string, more: object) =>
    (message: string, fields: object = {}): void =>
      void lines.push(`${level} ${message} ${JSON.stringify({ ...more, ...fields })}`);
  const logWith = (more: object): Log => ({
    debug: at('debug', more),
    info: at('info', more),
    warn: at('warn', more),
    error: at('error', more),
    child: (fields) => logWith({ ...more, ...fields }),
  });
  const clock = testClock(0, 0);
  return { lines, clock, log: createBoundedLog(logWith({}), clock, { info: 3, warn: 2, error: 1 }) };
}

it('writes a message some times in a minute, then how often it was left out, with the fields of the last one', async () => {
  const { lines, clock, log } = open();
  for (let n = 1; n <= 1000; n++) log.warn('flood', { n });
  expect(lines).toEqual(['warn flood {"n":1}', 'warn flood {"n":2}']);
  log.warn('other');
  await clock.advance(60);
  expect(lines.slice(2)).toEqual(['warn other {}', 'warn flood {"n":1000,"repeated":998}']);
  log.warn('flood');
  expect(lines).toHaveLength(5);
});
it('has a number of lines for each level, shared with its children, and none for debug', () => {
  const { lines, log } = open();
  for (let n = 0; n < 5; n++) {
    log.info('a');
    log.child({ interface: 'eth0' }).error('b');
    log.debug('c');
  }
  expect(lines.filter((line) => line.startsWith('info'))).toHaveLength(3);
  expect(lines.filter((line) => line.startsWith('error'))).toEqual(['error b {"interface":"eth0"}']);
  expect(lines.filter((line) => line.startsWith('debug'))).toHaveLength(5);
});
it('waits only while it leaves out lines, and reports them when it stops', () => {
  const { lines, clock, log } = open();
  log.error('once');
  expect(clock.sleeping()).toBe(0);
  log.error('once', { again: true });
  expect(clock.sleeping()).toBe(1);
  log.stop();
  expect(clock.sleeping()).toBe(0);
  expect(lines.at(-1)).toBe('error once {"again":true,"repeated":1}');
  log.error('once');
  log.error('once');
  expect(clock.sleeping()).toBe(0);
});
