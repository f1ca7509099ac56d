/** `bloomery why NODE`: prints the server's readiness check of a node. */
import type { Command } from 'commander';
import type { CheckResult, Readiness } from '../model/readiness';
import { defaultLines } from './default-config';
import { get } from './endpoint';
import { printJson, printPainted, type Paint, reported } from './output';
import { printable } from '../model/log';
import type { DefaultRow } from '../model/rules/default-config';
import type { ListedStep } from '../model/rules/step-list';
import { stepLines } from './steps';

interface WhyArguments {
  readonly url?: string;
  readonly json?: boolean;
}
/** `steps` is absent in the answers of older servers. */
type Answer = Readiness & { readonly steps?: readonly ListedStep[] };
type Defaults = { readonly arguments: readonly DefaultRow[] };
/** None if the server is older, or the user may not read them. */
const askDefaults = (node: string, given: WhyArguments): Promise<Defaults> =>
  get(given.url, `nodes/${encodeURIComponent(node)}/default_config`, (answer) =>
    Array.isArray((answer as Partial<Defaults> | undefined)?.arguments) ? (answer as Defaults) : undefined,
  ).catch(() => ({ arguments: [] }));
const ask = (node: string, given: WhyArguments): Promise<Answer> =>
  get(given.url, `nodes/${encodeURIComponent(node)}/readiness`, (answer) =>
    Array.isArray((answer as Partial<Readiness> | undefined)?.checks) ? (answer as Answer) : undefined,
  );
const MARKS: Readonly<Record<CheckResult['result'], readonly [string, number]>> = {
  blocks: ['✗', 31],
  warns: ['!', 33],
  unknown: ['?', 33],
  ok: ['✓', 32],
};

/** Blocking checks first; passed checks last, in one line. */
function whyPage(node: string, answer: Answer, defaults: readonly DefaultRow[], paint: Paint): string {
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
    ...((answer.steps ?? []).length > 0 ? ['  steps:', ...stepLines(answer.steps!).map((line) => `    ${line}`)] : []),
    ...(defaults.length > 0 ? ['  default config:', ...defaultLines(defaults).map((line) => `    ${line}`)] : []),
    ...problems,
    ...rest('unknown', 'could not be checked'),
    ...rest('ok', 'passed'),
    '',
  ].join('\n');
}

async function why(node: string, given: WhyArguments): Promise<void> {
  await reported(async () => {
    const [answer, { arguments: defaults }] = await Promise.all([ask(node, given), askDefaults(node, given)]);
    if (given.json) printJson(defaults.length > 0 ? { ...answer, default_config: defaults } : answer);
    else printPainted((paint) => whyPage(node, answer, defaults, paint));
    process.exitCode = answer.ready ? 0 : 1;
  });
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
      'the server (default: OS_ENDPOINT_OVERRIDE or OS_ENDPOINT, else http://127.0.0.1:6385); credentials: OS_TOKEN, or OS_USERNAME and OS_PASSWORD; authorities of https: OS_CACERT',
    )
    .option('--json', 'print the response as JSON')
    .action(why);
}
