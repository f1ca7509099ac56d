/** The password of a BMC, from where no other user of the machine sees it: not from the arguments, which the list of processes shows. */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { readRegularFile } from '../../wire/authorities';
import { printError } from '../output';

/** Bytes of a file with a password. */
const MAX_FILE = 4096;
const VARIABLE = 'BLOOMERY_BMC_PASSWORD';

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0]!;
/** Asks on the terminal, which does not show what is typed. */
async function asked(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  printError(question);
  const ended = new Promise<never>((_done, fail) => terminal.once('SIGINT', () => fail(new Error('stopped'))));
  try {
    return await Promise.race([terminal.question(''), ended]);
  } finally {
    terminal.close();
  }
}
/**
 * @param file a file whose first line is the password; `-`: standard input
 * @throws Error for the operator
 */
export async function passwordOf(username: string, file: string | undefined, environment: NodeJS.ProcessEnv): Promise<string> {
  if (file === '-') return firstLine(readFileSync(0, 'utf8'));
  if (file !== undefined) return firstLine(await readRegularFile(file, MAX_FILE));
  const set = environment[VARIABLE];
  if (set !== undefined) return set;
  if (!process.stdin.isTTY) throw new Error(`the password is missing: set ${VARIABLE}, or name a file by --password-file`);
  return asked(`Password of ${username} (it is not shown):`);
}
