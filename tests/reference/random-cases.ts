/** Random cases for functions of the real Ironic and its agent, which run in one Python process. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { programs } from '../lab/support/venv';

/** Pseudo-random numbers that are the same each time (mulberry32). */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

export const inIronicsPython = async <Result>(script: string, cases: readonly unknown[], timeout: number): Promise<readonly Result[]> =>
  inPython(await programs('ironic', ['ironic==39.0.0']), script, cases, timeout);

/**
 * @param folder that of Python
 * @param script path of a program that reads one case (as JSON) from each line, and writes one result to each line
 * @param timeout milliseconds
 */
export async function inPython<Result>(
  folder: string,
  script: string,
  cases: readonly unknown[],
  timeout: number,
): Promise<readonly Result[]> {
  const python = join(folder, 'python');
  const running = promisify(execFile)(python, [script], { maxBuffer: 2 ** 28, timeout });
  running.child.stdin!.end(cases.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { stdout: output } = await running;
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
}
