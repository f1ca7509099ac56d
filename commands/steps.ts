/** `bloomery steps NODE`: prints the steps of a node's running flow, and gives the word for which a step waits. */
import type { Command } from 'commander';
import { printable } from '../model/log';
import type { ListedStep } from '../model/rules/step-list';
import { get, put } from './endpoint';
import { print, printJson, reported } from './output';

interface StepsArguments {
  readonly url?: string;
  readonly json?: boolean;
  readonly continue?: boolean;
  readonly abort?: boolean;
}
const MARKS: Readonly<Record<ListedStep['state'], string>> = {
  done: '✓',
  skipped: '-',
  failed: '✗',
  running: '▶',
  waiting: '?',
  next: ' ',
};

/** A line for each step. */
export const stepLines = (steps: readonly ListedStep[]): readonly string[] =>
  steps.map(({ step, state, note }, at) => {
    const text = note === null ? state : `${state}: ${note}`;
    return `${MARKS[state]} ${at + 1} ${printable(step)} (${printable(text)})`;
  });

async function steps(node: string, given: StepsArguments): Promise<void> {
  const path = `nodes/${encodeURIComponent(node)}`;
  await reported(async () => {
    if (given.continue && given.abort) throw new Error('--continue and --abort exclude each other');
    if (given.continue || given.abort) {
      await put(given.url, `${path}/states/provision`, { target: given.continue ? 'unhold' : 'abort' });
      print(`${node}: ${given.continue ? 'the steps go on' : 'the steps are aborted'}`);
      return;
    }
    const list = await get(
      given.url,
      `${path}/readiness`,
      (answer) => (answer as { readonly steps?: readonly ListedStep[] } | undefined)?.steps,
    );
    if (given.json) printJson(list);
    else print(list.length === 0 ? `${node}: no steps run` : stepLines(list).join('\n'));
  });
}

export function addStepsCommand(program: Command): void {
  program
    .command('steps')
    .description('Show the steps that run on a node, or give the word for which a step waits.')
    .argument('<node>', 'UUID or name of the node')
    .option('--continue', 'let the steps after the hold run')
    .option('--abort', 'abort the steps')
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--json', 'print the steps as JSON')
    .action(steps);
}
