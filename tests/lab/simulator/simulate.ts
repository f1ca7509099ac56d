/** `bloomery simulate` as users run it, in its own process. */
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { until } from '../../../demo/lab/machines';
import { root } from '../support/venv';

export const bloomery = join(root, 'bin/bloomery');
const PATIENCE = 240;

/** Starts it, and waits until it reports that it is ready. */
export async function startSimulate(...words: readonly string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, [bloomery, 'simulate', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.resume();
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said += data.toString()));
  await until(
    PATIENCE,
    () => `bloomery simulate to be ready: ${said}`,
    () => {
      if (child.exitCode !== null) throw new Error(`bloomery simulate ended: ${said}`);
      return said.includes('ready');
    },
  );
  return child;
}
