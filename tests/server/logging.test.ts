import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog, logPath, lineOf, maskSecrets } from '../../server/logging';
import { UNSAFE_TEXTS } from '../support/unsafe-texts';
import { until } from '../support/until';

type LogOptions = Parameters<typeof createLog>[0];
const folder = mkdtempSync(join(tmpdir(), 'bloomery-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const file = (): string => join(folder, `${++files}.log`);
const options = (changed: Partial<LogOptions>): LogOptions => ({
  'DEFAULT.debug': false,
  'DEFAULT.log_file': null,
  'DEFAULT.log_dir': null,
  'DEFAULT.use_json': true,
  'DEFAULT.default_log_levels': [],
  ...changed,
});
const linesOf = (path: string): Readonly<Record<string, unknown>>[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

it('writes a message as a line of JSON, with the fields of its logger and of the call', () => {
  const path = file();
  const { log, flush } = createLog(options({ 'DEFAULT.log_file': path }));
  log.child({ component: 'api' }).info('request', { request_id: 'req-1', status: 200 });
  log.debug('not now');
  flush();
  expect(linesOf(path)).toEqual([
    { level: 'INFO', time: expect.any(String) as unknown, component: 'api', request_id: 'req-1', status: 200, msg: 'request' },
  ]);
});

it.each([true, false])('removes credentials from URLs (JSON: %s)', (json) => {
  const path = file();
  const { log } = createLog(options({ 'DEFAULT.log_file': path, 'DEFAULT.use_json': json }));
  log
    .child({ from: 'http://u:hush@a/' })
    .warn('http://u:hush@b/', { error: new Error('no http://u:hush@c/'), list: [{ d: 'http://u:hush@d/' }] });
  const text = readFileSync(path, 'utf8');
  expect(text).not.toContain('hush');
  for (const host of 'abcd') expect(text).toContain(`http://${host}/`);
});

it('writes warnings immediately, and other lines after a short delay', async () => {
  const path = file();
  const { log } = createLog(options({ 'DEFAULT.log_file': path }));
  log.info('one');
  expect(readFileSync(path, 'utf8')).toBe('');
  log.warn('two');
  expect(linesOf(path).map(({ msg }) => msg)).toEqual(['one', 'two']);
  log.info('three');
  await until('the third line', () => linesOf(path).length >= 3);
  expect(linesOf(path).map(({ msg }) => msg)).toEqual(['one', 'two', 'three']);
});

it('opens a new file on reopen() after the old one was moved away', () => {
  const path = file();
  const { log, flush, reopen } = createLog(options({ 'DEFAULT.log_file': path }));
  log.info('before');
  renameSync(path, `${path}.1`);
  log.info('between');
  reopen();
  log.info('after');
  flush();
  expect(linesOf(`${path}.1`).map(({ msg }) => msg)).toEqual(['before', 'between']);
  expect(linesOf(path).map(({ msg }) => msg)).toEqual(['after']);
});

it('survives a full disk, and a log folder that was removed', () => {
  const full = createLog(options({ 'DEFAULT.log_file': '/dev/full' }));
  full.log.error('nowhere to write to');
  full.flush();
  const gone = join(folder, 'gone');
  mkdirSync(gone);
  const { log, flush, reopen } = createLog(options({ 'DEFAULT.log_file': join(gone, 'log') }));
  rmSync(gone, { recursive: true });
  const said = jest.spyOn(console, 'error').mockImplementation(() => {});
  reopen();
  log.error('lost');
  flush();
  expect(said).toHaveBeenCalledWith(expect.stringContaining('cannot be reopened'));
  said.mockRestore();
});

it('applies [DEFAULT]default_log_levels to the components that it names', () => {
  const path = file();
  const levels = ['store=DEBUG', 'api = WARNING', 'amqp=WARN'];
  const { log, flush } = createLog(options({ 'DEFAULT.log_file': path, 'DEFAULT.default_log_levels': levels }));
  log.child({ component: 'store' }).child({ node: 'x' }).debug('shown');
  log.child({ component: 'api' }).info('hidden');
  log.child({ component: 'boot' }).debug('hidden');
  flush();
  expect(linesOf(path).map(({ msg }) => msg)).toEqual(['shown']);
});

it.each(['api', 'api=LOUD', '=INFO'])('refuses "%s" in [DEFAULT]default_log_levels', (level) => {
  expect(() => createLog(options({ 'DEFAULT.default_log_levels': [level] }))).toThrow(`[DEFAULT]default_log_levels: "${level}"`);
});

it.each([
  [null, null, undefined],
  ['a.log', null, 'a.log'],
  [null, '/var/log/x', '/var/log/x/bloomery.log'],
  ['a.log', '/var/log/x', '/var/log/x/a.log'],
  ['/tmp/a.log', '/var/log/x', '/tmp/a.log'],
])('log_file %p and log_dir %p give the path %p', (given, dir, expected) => {
  expect(logPath(options({ 'DEFAULT.log_file': given, 'DEFAULT.log_dir': dir }))).toBe(expected);
});

it('formats text lines as oslo.log does', () => {
  const line = {
    level: 'WARNING',
    time: '2026-03-01T00:00:00.123Z',
    component: 'api',
    request_id: 'req-1',
    user: 'bob',
    status: 200,
    why: 'two words',
    msg: 'said',
  };
  expect(lineOf(JSON.stringify(line), 'text')).toBe(
    `2026-03-01 00:00:00.123 ${process.pid} WARNING api [- req-1 bob -] said status=200 why="two words"\n`,
  );
  expect(lineOf(JSON.stringify({ level: 'INFO', time: '2026-03-01T00:00:00.123Z', msg: 'said\nmore' }), 'text')).toMatch(
    / INFO bloomery \[-\] said\\nmore\n$/,
  );
});

it.each([
  ['DEBUG', '<7>'],
  ['INFO', '<6>'],
  ['WARNING', '<4>'],
  ['ERROR', '<3>'],
  ['CRITICAL', '<2>'],
])('lines for the journal have the priority of %s (sd-daemon(3)): %s', (level, prefix) => {
  const line = { level, time: '2026-03-01T00:00:00.123Z', msg: '<0> said\n<0> more' };
  expect(lineOf(JSON.stringify(line), 'journal')).toBe(
    `${prefix}2026-03-01 00:00:00.123 ${process.pid} ${level} bloomery [-] <0> said\\n<0> more\n`,
  );
});

it('maskSecrets() masks secrets at any depth, and leaves other values unchanged', () => {
  const plain = { node: 'x', count: 1, none: null };
  expect(maskSecrets(plain)).toBe(plain);
  expect(maskSecrets({ password: 'x', inner: [{ agent_secret_token: 'y', ok: 1 }], configdrive: null })).toEqual({
    password: '******',
    inner: [{ agent_secret_token: '******', ok: 1 }],
    configdrive: null,
  });
});

it.each([true, false])('escapes what controls a terminal or breaks a line (JSON: %s)', (json) => {
  const path = file();
  const { log, flush } = createLog(options({ 'DEFAULT.log_file': path, 'DEFAULT.use_json': json }));
  const unsafe = `x${UNSAFE_TEXTS.map(([, text]) => text).join('x')}x`;
  const fields = { callback_url: unsafe, [unsafe]: 1, list: [{ deep: unsafe }], error: new Error(unsafe) };
  log.child({ component: unsafe, request_id: unsafe, user: unsafe, project: unsafe, node: unsafe }).warn(unsafe, fields);
  // Long texts take another path through the serializer.
  log.warn(unsafe.repeat(50));
  log.warn('last');
  flush();
  const written = readFileSync(path, 'utf8');
  expect(written.trimEnd().split('\n')).toHaveLength(3);
  expect(written.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cs}\u061c\u200f\u2028-\u202e\u2066-\u2069]/u);
  if (json) expect(JSON.parse(written.split('\n')[0]!)).toMatchObject({ msg: unsafe, callback_url: unsafe, list: [{ deep: unsafe }] });
});
