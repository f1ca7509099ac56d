/** `bloomery console log NODE`: what a machine said on its serial console, as far as the server has saved it. */
import { setTimeout as delay } from 'node:timers/promises';
import { InvalidArgumentError, type Command } from 'commander';
import { plainConsoleText } from '../../model/rules/console-text';
import { get } from '../endpoint';
import { print, printError, printJson, reported } from '../output';

interface Part {
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  readonly next_offset: number;
  readonly text: string;
}
interface Given {
  readonly bytes: number;
  readonly follow?: boolean;
  readonly json?: boolean;
  readonly url?: string;
}
const USUAL_BYTES = 65_536;
const MAX_BYTES = 262_144;
const PAUSE_MS = 1000;

const partOf = (body: unknown): Part | undefined => {
  const part = body as Partial<Part> | undefined;
  return typeof part?.text === 'string' && Number.isSafeInteger(part.next_offset) ? (part as Part) : undefined;
};
function bytesOf(text: string): number {
  const bytes = Number(text);
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > MAX_BYTES) throw new InvalidArgumentError(`It must be from 1 to ${MAX_BYTES}.`);
  return bytes;
}
/** Text of a terminal is printed in whole lines; the rest waits for the next part. */
function createPrinter(): (text: string) => void {
  let rest = '';
  return (text) => {
    const all = rest + text;
    const end = all.lastIndexOf('\n') + 1;
    rest = all.slice(end);
    if (end > 0) print(plainConsoleText(all.slice(0, end)));
  };
}

async function follow(path: string, from: number, given: Given, show: (text: string) => void): Promise<never> {
  for (let offset = from; ;) {
    const part = await get(given.url, `${path}?offset=${offset}&limit=${MAX_BYTES}`, partOf);
    show(part.text);
    if (part.next_offset === offset) await delay(PAUSE_MS);
    offset = part.next_offset;
  }
}
const consoleLog = (node: string, given: Given): Promise<void> =>
  reported(async () => {
    const path = `nodes/${encodeURIComponent(node)}/console_log`;
    const part = await get(given.url, `${path}?limit=${given.bytes}`, partOf);
    if (given.follow) {
      const show = createPrinter();
      show(part.text);
      await follow(path, part.next_offset, given, show);
    }
    if (given.json) printJson(part);
    else if (part.text === '') printError('nothing is saved: see [console]saved_log_size, and whether the console is on');
    else print(plainConsoleText(part.text));
  });

export function addConsoleCommands(program: Command): void {
  program
    .command('console')
    .description('Read what machines say on their serial consoles.')
    .command('log')
    .description('Print what a machine said on its serial console, as far as the server has saved it.')
    .argument('<node>', 'UUID or name of the node')
    .option('--bytes <number>', 'the last bytes of the log', bytesOf, USUAL_BYTES)
    .option('--follow', 'print also what the machine says from now on')
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--json', 'print the response as JSON')
    .action(consoleLog);
}
