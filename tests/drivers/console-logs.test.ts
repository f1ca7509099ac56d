/** The files of console logs. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConsoleLogs, type ConsoleLogs } from '../../drivers/console-logs';
import { silentLog } from '../../model/log';

const [ONE, TWO] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
let root: string;
const warnings: string[] = [];
const logsOf = (inAll = 1 << 20): ConsoleLogs =>
  createConsoleLogs({
    root,
    inAll,
    log: { ...silentLog, warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`) },
  });
const filesOf = (node: string): readonly (readonly [string, number])[] =>
  readdirSync(join(root, node)).map((name) => [name, statSync(join(root, node, name)).size] as const);
const textOf = async (logs: ConsoleLogs, node: string, offset?: number, limit = 1000) => {
  const { bytes, ...rest } = await logs.read(node, offset, limit);
  return { ...rest, text: bytes.toString() };
};
beforeEach(() => {
  warnings.splice(0);
  const folder = mkdtempSync(join(tmpdir(), 'console-logs-'));
  root = join(folder, 'logs');
});
afterEach(() => rmSync(join(root, '..'), { recursive: true, force: true }));

it('makes nothing before a machine says something', async () => {
  const logs = logsOf();
  expect(await textOf(logs, ONE)).toEqual({ start: 0, end: 0, offset: 0, next: 0, text: '' });
  await logs.remove(ONE);
  expect(await logs.nodes()).toEqual([]);
  expect(() => readdirSync(root)).toThrow('ENOENT');
});
it('saves what a machine says, for nobody else on the host, and a restart continues it', async () => {
  const first = logsOf();
  first.add(ONE, Buffer.from('BIOS\n'), 100);
  first.add(ONE, Buffer.from('GRUB\n'), 100);
  await first.settle();
  const second = logsOf();
  second.add(ONE, Buffer.from('login: '), 100);
  expect(await textOf(second, ONE)).toEqual({ start: 0, end: 17, offset: 0, next: 17, text: 'BIOS\nGRUB\nlogin: ' });
  expect(await textOf(second, ONE, undefined, 7)).toMatchObject({ offset: 10, text: 'login: ' });
  expect(await textOf(second, ONE, 5, 5)).toMatchObject({ offset: 5, next: 10, text: 'GRUB\n' });
  expect(await textOf(second, ONE, 17)).toMatchObject({ offset: 17, next: 17, text: '' });
  expect(await textOf(second, ONE, 18)).toMatchObject({ offset: 0, next: 17 });
  expect(statSync(join(root, ONE)).mode & 0o777).toBe(0o700);
  expect(statSync(join(root, ONE, filesOf(ONE)[0]![0])).mode & 0o777).toBe(0o600);
  expect(await second.nodes()).toEqual([ONE]);
  await second.remove(ONE);
  expect(await textOf(second, ONE)).toMatchObject({ end: 0 });
  expect(readdirSync(root)).toEqual([]);
});
it('keeps the last bytes of a node, and offsets go on', async () => {
  const logs = logsOf();
  for (let number = 0; number < 100; number++) logs.add(ONE, Buffer.from(`${String(number).padStart(9)}\n`), 100);
  await logs.settle();
  logs.add(ONE, Buffer.from('x'.repeat(5000)), 100);
  logs.add(ONE, Buffer.from('the end'), 100);
  const { start, end, text } = await textOf(logs, ONE, 0);
  // What exceeds the size of a node at once has no offsets.
  expect(end - start).toBe(text.length);
  expect(text).toMatch(/^x{50,93}the end$/);
  const files = filesOf(ONE);
  expect(files.map(([, size]) => size).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(100);
  expect(files.length).toBeLessThanOrEqual(2);
});
it('bounds the logs of all nodes: the oldest output goes, then nothing more is saved, and it says so once', async () => {
  const logs = logsOf(250);
  logs.add(ONE, Buffer.from('1'.repeat(100)), 100);
  await logs.settle();
  logs.add(TWO, Buffer.from('2'.repeat(100)), 100);
  await logs.settle();
  logs.add(TWO, Buffer.from('3'.repeat(40)), 100);
  await logs.settle();
  // The first half of ONE was needed for the last bytes of TWO only if there was no room.
  const sizes = (): number => [ONE, TWO].flatMap((node) => filesOf(node)).reduce((sum, [, size]) => sum + size, 0);
  expect(sizes()).toBeLessThanOrEqual(250);
  const small = logsOf(190);
  small.add(TWO, Buffer.from('4'.repeat(40)), 100);
  await small.settle();
  expect(sizes()).toBeLessThanOrEqual(190);
  expect(await textOf(small, ONE)).toMatchObject({ start: 50, end: 100 });
  const tiny = logsOf(10);
  for (const text of ['5'.repeat(60), '6'.repeat(60)]) {
    tiny.add(ONE, Buffer.from(text), 100);
    await tiny.settle();
  }
  expect(warnings).toEqual([expect.stringContaining('[console]saved_logs_limit')]);
});
it('a log whose files have a gap begins after it, and other files are no logs', async () => {
  mkdirSync(join(root, ONE), { recursive: true });
  for (const [name, text] of [
    ['000000000000000', 'old'],
    ['000000000000100', 'new'],
    ['000000000000103', 'er'],
    ['notes', 'x'],
  ] as const)
    writeFileSync(join(root, ONE, name), text);
  mkdirSync(join(root, 'lost+found'));
  const logs = logsOf();
  expect(await textOf(logs, ONE)).toMatchObject({ start: 100, end: 105, text: 'newer' });
  expect(await logs.nodes()).toEqual([ONE]);
});
it('a disk that refuses is said once, and costs no memory', async () => {
  writeFileSync(root, 'a file where the folder should be');
  const logs = logsOf();
  for (let count = 0; count < 100; count++) logs.add(ONE, Buffer.alloc(1 << 16), 1 << 20);
  await logs.settle();
  logs.add(ONE, Buffer.from('x'), 1 << 20);
  await logs.settle();
  expect(warnings).toHaveLength(1);
});
