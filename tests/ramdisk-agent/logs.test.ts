import { execFileSync } from 'node:child_process';
import { collectLogs, tar } from '../../ramdisk-agent/logs';
import { consoleLog } from '../../ramdisk-agent/log';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

it('tar creates an archive that the program tar reads', () => {
  const archive = tar(
    [
      ['one', 'first\n'],
      ['empty', ''],
      ['large', 'x'.repeat(100_000)],
    ],
    Date.parse('2026-01-02T03:04:05Z'),
  );
  expect(archive.length % 512).toBe(0);
  const listed = execFileSync('tar', ['--utc', '-tvf', '-'], { input: archive, encoding: 'utf8' });
  expect(listed.split('\n').map((line) => line.split(/\s+/).slice(2).join(' '))).toEqual([
    '6 2026-01-02 03:04 one',
    '0 2026-01-02 03:04 empty',
    '100000 2026-01-02 03:04 large',
    '',
  ]);
  expect(execFileSync('tar', ['-xOf', '-', 'one'], { input: archive, encoding: 'utf8' })).toBe('first\n');
});

it('collectLogs archives output and errors of programs, without the token', async () => {
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    if (program === 'dmesg') throw new Error('dmesg: not permitted');
    return args[0] === '/proc/cmdline' ? 'quiet ipa-agent-token=secret BOOTIF=x\n' : `output of ${program}\n`;
  };
  const root = fileTree({ 'sys/block/sda/size': '1', 'var/log/burnin.cpu': 'result' });
  const state = { outputFiles: ['/var/log/burnin.cpu'] };
  const host = { run, tree: tree(root), log: { text: () => 'agent lines\n' }, clock: { now: () => 0 }, state };
  const archive = Buffer.from(await collectLogs(host), 'base64');
  const read = (name: string): string => execFileSync('tar', ['-xzOf', '-', name], { input: archive, encoding: 'utf8' });
  expect(read('agent.log')).toBe('agent lines\n');
  expect(read('udev/sda')).toBe('output of udevadm\n');
  expect(read('var/log/burnin.cpu')).toBe('result');
  expect(read('df')).toBe('output of df\n');
  expect(read('dmesg')).toBe('dmesg: not permitted\n');
  expect(read('cmdline')).toBe('quiet ipa-agent-token=*** BOOTIF=x\n');
});

it('consoleLog keeps the last lines, and omits debug lines by default', () => {
  const written: string[] = [];
  const log = consoleLog((line) => written.push(line), { now: () => 0, sleep: async () => {} }, false, { keep: 2 });
  log.debug('one');
  log.info('two');
  log.child({ node: 'n' }).error('three', { code: 5 });
  expect(written).toEqual(['1970-01-01T00:00:00.000Z INFO two\n', '1970-01-01T00:00:00.000Z ERROR three {"node":"n","code":5}\n']);
  expect(log.text()).toBe('1970-01-01T00:00:00.000Z INFO two\n1970-01-01T00:00:00.000Z ERROR three {"node":"n","code":5}\n');
});

it('consoleLog escapes what controls a terminal, and writes one line', () => {
  const written: string[] = [];
  consoleLog((line) => written.push(line), { now: () => 0, sleep: async () => {} }, false).info('a\u001b[2J\nb', { text: '\u009b\u202e' });
  expect(written).toEqual(['1970-01-01T00:00:00.000Z INFO a\\u001b[2J\\nb {"text":"\\u009b\\u202e"}\n']);
});
