/** Programs of the ramdisk: what ends them, and what an error says. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../ramdisk-agent/system/run';
import { until } from '../support/until';
import { folder } from './support';

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
/** Starts a program that ignores requests to end, and goes on to `then` when it runs. */
const script = (file: string, then: string): string =>
  `sh -c 'trap "" TERM; echo $$ > ${file}; sleep 1000; sleep 1000' & while [ ! -s ${file} ]; do sleep 0.01; done; ${then}`;

it.each(['timeout', 'abort', 'output'] as const)('the programs that a program has started end with it: %s', async (why) => {
  const file = join(folder(), 'pid');
  const stop = new AbortController();
  const running = run('sh', ['-c', script(file, why === 'output' ? 'yes' : 'wait')], {
    signal: stop.signal,
    ...(why === 'output' ? { maxBytes: 10_000 } : {}),
    ...(why === 'timeout' ? { timeoutMs: 3000 } : {}),
  });
  const ends = expect(running).rejects.toThrow(
    { timeout: 'sh did not end within 3 s', abort: 'The operation was aborted', output: 'it wrote more than 10000 bytes' }[why],
  );
  await until('the other program', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  if (why === 'abort') stop.abort();
  await ends;
  await until('its end', () => !isAlive(Number(readFileSync(file, 'utf8'))));
});

it('an error has what the program says, and how it ended', async () => {
  await expect(run('sh', ['-c', 'echo out; echo err >&2; exit 3'])).rejects.toMatchObject({
    message: 'sh -c echo out; echo err >&2; exit 3: err',
    cause: { code: 3, signal: null, killed: false },
  });
  await expect(run('sh', ['-c', 'kill -9 $$'])).rejects.toMatchObject({
    message: expect.stringContaining('SIGKILL') as string,
    cause: { signal: 'SIGKILL', killed: false },
  });
  await expect(run('sh', ['-c', 'sleep 100'], { timeoutMs: 10 })).rejects.toMatchObject({ cause: { signal: 'SIGKILL', killed: true } });
  await expect(run('/nothing/there', [])).rejects.toMatchObject({
    message: expect.stringContaining('ENOENT') as string,
    cause: { code: 'ENOENT' },
  });
  await expect(run('true', [], { signal: AbortSignal.abort() })).rejects.toThrow('The operation was aborted');
});

it('the output is what the options say', async () => {
  const words = ['-c', 'cat; echo err >&2; exit 1'];
  expect(await run('sh', words, { input: 'ä', anyStatus: true })).toBe('ä');
  expect(await run('sh', words, { input: 'in', anyStatus: true, withErrors: true })).toBe('in\nerr\n');
  expect(await run('pwd', [], { folder: '/' })).toBe('/\n');
  expect(await run('true', [], { input: 'x'.repeat(1_000_000) })).toBe('');
});
