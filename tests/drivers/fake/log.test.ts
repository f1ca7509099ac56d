/** [fake]step_log: which entries are written, by which conductor, and that the steps for tests exist only with this option. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withStepLog, type FakeEvent } from '../../../drivers/fake/log';
import { INTERFACES } from '../../../drivers/index';
import type { Task } from '../../../drivers/interfaces';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-step-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let now = 1000;
const task = {
  node: { uuid: 'a-node', lock_fence: 7, reservation: 'here', power_state: 'power off' },
  options: { 'fake.vendor_delay': '0', 'fake.power_delay': '0' },
  clock: { now: () => (now += 1) },
  log: { debug: () => {} },
  save: async () => {},
} as unknown as Task;

it('without a file, the interfaces are unchanged and have no count_step', () => {
  expect(withStepLog(INTERFACES, null)).toBe(INTERFACES);
  expect(INTERFACES.vendor['fake']!.steps!.map(({ step }) => step)).not.toContain('count_step');
});

it('writes an entry before and after each step and power action, with the fencing number', async () => {
  const file = join(folder, 'log');
  const { vendor, power } = withStepLog(INTERFACES, file);
  const steps = vendor['fake']!.steps!;
  const one = steps.find(({ step }) => step === 'count_step')!;
  expect(one.resumable).toBe(false);
  expect(await one.run(task, { token: 'first' })).toEqual({ kind: 'done' });
  await power['fake']!.reset!(task);
  const events = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as FakeEvent);
  expect(events.map(({ phase, what, token, at }) => [phase, what, token, at])).toEqual([
    ['begin', 'vendor.count_step', 'first', 1001],
    ['end', 'vendor.count_step', 'first', 1002],
    ['begin', 'power rebooting', undefined, 1003],
    ['end', 'power rebooting', undefined, 1004],
  ]);
  expect(events[0]).toMatchObject({ node: 'a-node', fence: 7, host: 'here', pid: process.pid });
  expect(new Set(events.map(({ run }) => run)).size).toBe(2);
});

it('writes no end entry for a power action that failed', async () => {
  const file = join(folder, 'cut');
  const { power } = withStepLog(INTERFACES, file);
  const broken = { ...task, save: async () => Promise.reject(new Error('the lock was lost')) } as unknown as Task;
  await expect(power['fake']!.on!(broken)).rejects.toThrow('the lock was lost');
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1);
});
