/** `bloomery demo`: the demonstration, which is a program of its own beside this one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';

async function demo(words: readonly string[]): Promise<void> {
  const path = ['../demo/demo.js', '../../demo/demo.js'].map((name) => join(__dirname, name)).find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error('the demonstration is not part of this installation');
  const child = spawn(process.execPath, [path, ...words], {
    stdio: 'inherit',
    env: { ...process.env, BLOOMERY_DEMO_COMMAND: 'bloomery demo' },
  });
  // The terminal sends SIGINT to both; the demonstration decides when it ends.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('Show a demonstration: a server with its own database takes three simulated machines from enroll to active.')
    .argument('[options...]', 'options of the demonstration; -- --help lists them')
    .allowUnknownOption()
    .action(demo);
}
