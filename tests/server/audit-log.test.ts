import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, readFileSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAudit } from '../../server/audit-log';
import type { AuditEntry } from '../../api/http/audit';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import { until } from '../support/until';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-audit-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = (): string => join(folder, `${++files}.log`);

const entry = (path: string): AuditEntry => ({
  time: '2026-03-01T10:00:00.000Z',
  service: 'baremetal',
  request_id: 'req-1',
  user: 'admin',
  project: null,
  address: '192.0.2.1',
  method: 'POST',
  path,
  status: 201,
  outcome: 'success',
});
const pathsIn = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { path?: string }).path);
const pathsOf = (file: string): unknown[] => pathsIn(readFileSync(file, 'utf8'));

function start(path: string): { readonly audit: ReturnType<typeof openAudit>; readonly errors: string[]; readonly lost: () => number } {
  const errors: string[] = [];
  const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: (message) => void errors.push(message), child: () => log };
  let lost = 0;
  const metrics: Metrics = {
    ...silentMetrics,
    count: (name) => {
      if (name === 'bloomery_audit_entries_lost_total') lost++;
    },
  };
  return { audit: openAudit({ 'audit.log_file': path }, log, systemClock, metrics), errors, lost: () => lost };
}

it('writes a line for each entry in order, to a file that only its owner may read', async () => {
  const path = newPath();
  const { audit } = start(path);
  const paths = Array.from({ length: 1000 }, (_, at) => `/v1/nodes/${at}`);
  for (const item of paths) audit.record(entry(item));
  await audit.stop();
  expect(pathsOf(path)).toEqual(paths);
  expect(JSON.parse(readFileSync(path, 'utf8').split('\n')[0]!)).toEqual(entry('/v1/nodes/0'));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('opens a new file on reopen() after the old one was moved away', async () => {
  const path = newPath();
  const { audit } = start(path);
  audit.record(entry('before'));
  await until('the first line', () => pathsOf(path).length === 1);
  renameSync(path, `${path}.1`);
  audit.reopen();
  audit.record(entry('after'));
  await audit.stop();
  expect(pathsOf(`${path}.1`)).toEqual(['before']);
  expect(pathsOf(path)).toEqual(['after']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('continues with the old file, and logs one error, when reopen() cannot open the new one', async () => {
  mkdirSync(join(folder, 'logs'));
  const path = join(folder, 'logs/audit.log');
  const { audit, errors } = start(path);
  renameSync(join(folder, 'logs'), join(folder, 'moved'));
  audit.reopen();
  audit.record(entry('still'));
  await audit.stop();
  expect(pathsOf(join(folder, 'moved/audit.log'))).toEqual(['still']);
  expect(errors).toEqual(['the audit log cannot be written']);
});

it('logs a full disk only once, and still stops', async () => {
  const { audit, errors } = start('/dev/full');
  audit.record(entry('/v1/nodes'));
  await until('the failure is logged', () => errors.length > 0);
  audit.record(entry('/v1/nodes'));
  await audit.stop();
  expect(errors).toEqual(['the audit log cannot be written', 'entries of the audit log are lost']);
});

it('names the option [audit]log_file when the file cannot be opened', () => {
  expect(() => start(join(folder, 'nosuch/audit.log'))).toThrow(/^\[audit\]log_file: ENOENT/);
});

it('limits the entries that wait for a slow reader, and records how many were lost', async () => {
  const path = newPath();
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const { audit, errors, lost } = start(path);
  const long = 'x'.repeat(10_000);
  const sent = 1000;
  for (let at = 0; at < sent; at++) audit.record(entry(`${at} ${long}`));
  expect(lost()).toBeGreaterThan(500);
  let text = '';
  const buffer = Buffer.alloc(2 ** 16);
  const read = (): void => {
    try {
      text += buffer.toString('utf8', 0, readSync(reader, buffer));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('EAGAIN');
    }
  };
  await until('the count of lost entries', () => {
    read();
    return text.includes('"lost"') && text.endsWith('\n');
  });
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly path?: string; readonly lost?: number });
  expect(lines.at(-1)!.lost).toBe(lost());
  expect(lines.length - 1 + lost()).toBe(sent);
  expect(lines.slice(0, -1).map((line) => line.path)).toEqual(Array.from({ length: sent - lost() }, (_, at) => `${at} ${long}`));
  expect(errors).toEqual([]);
  await audit.stop();
  closeSync(reader);
});

it('escapes what controls a terminal', async () => {
  const path = newPath();
  const { audit } = start(path);
  const unsafe = '/v1/\u001b[2J\u0007\u009b\u202e\u2028';
  audit.record(entry(unsafe));
  await audit.stop();
  expect(pathsOf(path)).toEqual([unsafe]);
  expect(readFileSync(path, 'utf8')).toMatch(/^[ -~]*\n$/);
});
