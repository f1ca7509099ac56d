/** What the lab's runner starts ends with the runner, however that ends: scripts/testing/contained.mjs. */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../demo/lab/machines';
import { root } from './venv';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'contained-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const RUNNER = `
import { join } from 'node:path';
import { prepareContained, startContained } from '${root}/scripts/testing/contained.mjs';
const [log, ...command] = process.argv.slice(1);
const folder = join(prepareContained('test'), 'run');
const { code, cpuSeconds } = await startContained(command, { folder, log }).ended;
console.log(JSON.stringify({ code, processor: cpuSeconds >= 0 }));`;
const start = (...command: readonly string[]) => {
  const words = ['--input-type=module', '-e', RUNNER, join(folder, 'log'), ...command];
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, TMPDIR: folder } });
};
/** The runner's folder for its programs. */
const ofRunner = (): string | undefined => readdirSync(folder).find((name) => name.startsWith('bloomery-test-'));
/** Processes that have the mark among their arguments. */
const marked = (mark: string): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(mark);
    } catch {
      return false;
    }
  });
const LOOP = 'trap "" TERM INT HUP; while :; do sleep 1; done';
/**
 * Starts processes in their own sessions that ignore signals (one of them in a network namespace, one an orphan), a file, and shared
 * memory.
 */
const PROGRAM = `
mark=$1 name=$2
ip netns add "$name"
setsid ip netns exec "$name" sh -c '${LOOP}' "$mark" "$mark" &
(setsid sh -c '${LOOP}' "$mark" "$mark" &)
echo > "$TMPDIR/file"; echo > "/dev/shm/$name"
echo ready
wait`;

it.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGKILL', null],
] as const)(
  '%s to the runner ends all processes of the program, removes its network namespaces and shared memory, and gives no result',
  async (signal, code) => {
    const [mark, name] = [randomUUID(), `contained-${process.pid}`];
    const runner = start('sh', '-c', PROGRAM, 'program', mark, name);
    let output = '';
    runner.stdout.on('data', (data: Buffer) => (output += data.toString()));
    const ended = once(runner, 'close');
    await until(
      240,
      () => 'the program to start',
      () => existsSync(join(folder, 'log')) && readFileSync(join(folder, 'log'), 'utf8').includes('ready') && marked(mark).length >= 2,
    );
    expect(existsSync(join(folder, ofRunner()!, 'run/file'))).toBe(true);
    runner.kill(signal);
    expect((await ended)[0]).toBe(code);
    expect(output).toBe('');
    // A runner that is killed cannot wait for what it started.
    if (signal === 'SIGKILL')
      await until(
        240,
        () => 'the end of what it started',
        () => marked(mark).length === 0,
      );
    expect(marked(mark)).toEqual([]);
    expect(execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })).not.toContain(name);
    expect(existsSync(`/dev/shm/${name}`)).toBe(false);
    expect(ofRunner() !== undefined).toBe(signal === 'SIGKILL');
  },
);

it.each([0, 3])('the runner returns exit status %i of the program, and ends the processes that it left', async (code) => {
  const mark = randomUUID();
  const runner = start('sh', '-c', `(setsid sh -c '${LOOP}' ${mark} ${mark} &); exit ${code}`);
  let output = '';
  runner.stdout.on('data', (data: Buffer) => (output += data.toString()));
  await once(runner, 'close');
  expect(JSON.parse(output)).toEqual({ code, processor: true });
  expect(marked(mark)).toEqual([]);
  expect(ofRunner()).toBeUndefined();
});
