/** `bloomery why NODE`: prints the server's readiness check of a node. */
import type { Command } from 'commander';
import type { CheckResult, Readiness } from '../model/readiness';
import { get } from './endpoint';
import { printError, printJson, printPainted, type Paint } from './output';
import { printable } from '../model/log';

interface WhyArguments {
  readonly url?: string;
  readonly json?: boolean;
}
const ask = (node: string, given: WhyArguments): Promise<Readiness> =>
  get(given.url, `nodes/${encodeURIComponent(node)}/readiness`, (answer) =>
    Array.isArray((answer as Partial<Readiness> | undefined)?.checks) ? (answer as Readiness) : undefined,
  );
const MARKS: Readonly<Record<CheckResult['result'], readonly [string, number]>> = {
  blocks: ['✗', 31],
  warns: ['!', 33],
  unknown: ['?', 33],
  ok: ['✓', 32],
};

/** Blocking checks first; passed checks last, in one line. */
function whyPage(node: string, answer: Readiness, paint: Paint): string {
  const blocked = answer.blockers.length;
  const head = answer.ready
    ? paint(32, `${node} can be deployed now.`)
    : paint(31, `${node} cannot be deployed now: ${blocked === 1 ? 'one thing is' : `${blocked} things are`} in the way.`);
  const of = (result: CheckResult['result']): readonly CheckResult[] => answer.checks.filter((check) => check.result === result);
  const problems = [...of('blocks'), ...of('warns')].flatMap(({ code, result, message, todo }) => {
    const [mark, colour] = MARKS[result];
    return [
      `${paint(colour, mark)} ${paint(1, code)}: ${printable(message ?? '')}`,
      ...(todo === null ? [] : [`    → ${printable(todo)}`]),
    ];
  });
  const rest = (result: 'unknown' | 'ok', words: string): string[] => {
    const codes = of(result).map(({ code }) => code);
    return codes.length === 0 ? [] : [`${paint(MARKS[result][1], MARKS[result][0])} ${words}: ${printable(codes.join(', '))}`];
  };
  return [
    head,
    `  state: ${printable(answer.provision_state)}`,
    ...problems,
    ...rest('unknown', 'could not be checked'),
    ...rest('ok', 'passed'),
    '',
  ].join('\n');
}

async function why(node: string, given: WhyArguments): Promise<void> {
  try {
    const answer = await ask(node, given);
    if (given.json) printJson(answer);
    else printPainted((paint) => whyPage(node, answer, paint));
    process.exitCode = answer.ready ? 0 : 1;
  } catch (error) {
    printError(`bloomery: ${printable((error as Error).message)}`);
    process.exitCode = 2;
  }
}

export function addWhyCommand(program: Command): void {
  program
    .command('why')
    .description(
      'Show what prevents the deployment of a node, and how to fix it (exit status 0: nothing, 1: something, 2: the check failed).',
    )
    .argument('<node>', 'UUID or name of the node')
    .option(
      '--url <url>',
      'the server (default: OS_ENDPOINT_OVERRIDE or OS_ENDPOINT, else http://127.0.0.1:6385); credentials: OS_TOKEN, or OS_USERNAME and OS_PASSWORD',
    )
    .option('--json', 'print the response as JSON')
    .action(why);
}
