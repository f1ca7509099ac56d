/** The environment of the test files (tests/support/jest/environment.js). */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const Environment =
  jest.requireActual<new (config: object, context: object) => { teardown(): Promise<void> }>('./support/jest/environment');
const config = { globalConfig: {}, projectConfig: { globals: {}, testEnvironmentOptions: {} } };

let run: string;
const before = { ...process.env };
beforeEach(() => {
  run = mkdtempSync(join(tmpdir(), 'bloomery-environment-'));
  Object.assign(process.env, { BLOOMERY_TEST_FOLDER: run, JEST_WORKER_ID: '7' });
});
afterEach(() => {
  Object.assign(process.env, before);
  rmSync(run, { recursive: true });
});

it('has a temporary and home folder, which ends with the file', async () => {
  const environment = new Environment(config, {});
  const folder = join(run, '7');
  expect([process.env['TMPDIR'], process.env['HOME']]).toEqual([folder, folder]);
  await environment.teardown();
  expect([process.env['TMPDIR'], process.env['HOME']]).toEqual([before['TMPDIR'], before['HOME']]);
  expect(existsSync(folder)).toBe(false);
});

it('fails a file that leaves something in the folder, and removes it', async () => {
  const environment = new Environment(config, {});
  const folder = join(run, '7');
  mkdirSync(join(folder, 'bloomery-x/empty'), { recursive: true });
  writeFileSync(join(folder, 'bloomery-x/file'), '');
  await expect(environment.teardown()).rejects.toThrow(
    'the test file left 2 files in its temporary folder: bloomery-x/empty, bloomery-x/file',
  );
  expect(existsSync(folder)).toBe(false);
});

it('gives each file its own', () => {
  expect(tmpdir()).toBe(join(before['BLOOMERY_TEST_FOLDER']!, before['JEST_WORKER_ID']!));
  expect(homedir()).toBe(tmpdir());
});
