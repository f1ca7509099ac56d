/** What commands print. Texts of servers, machines and files must not control the terminal, so nothing else in this folder prints. */
import { printable, printableText } from '../model/log';

const ended = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);
/** Goes on when the reader of a pipe has ended, as the console does: its error comes after the callback. */
function write(stream: NodeJS.WritableStream, text: string): void {
  stream.write(ended(text), (error) => {
    if (error) stream.once('error', () => {});
  });
}

/** To standard output, with a line break at the end. */
export const print = (text: string): void => write(process.stdout, printableText(text));
export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));
/** One line of JSON, for programs. */
export const printJsonLine = (value: unknown): void => print(JSON.stringify(value));
/** To standard error, because standard output is for results. */
export const printError = (text: string): void => write(process.stderr, printableText(text));

/** Shows what is being done, in one line that the next one replaces, if standard error is a terminal. An empty text removes the line. */
export const printProgress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${printable(text)}`);
};

/** Runs the work of a command. An error becomes one line, and the exit status 2. */
export async function reported(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    printError(`bloomery: ${printable((error as Error).message)}`);
    process.exitCode = 2;
  }
}

/** Colours a text if standard output is a terminal. The text becomes one safe line. */
export type Paint = (code: number, text: string) => string;
/** @param page makes lines of safe texts only, which `paint` and `printable` return */
export function printPainted(page: (paint: Paint) => string): void {
  const coloured = process.stdout.isTTY && !process.env['NO_COLOR'];
  const paint: Paint = (code, text) => (coloured ? `\u001b[${code}m${printable(text)}\u001b[0m` : printable(text));
  write(process.stdout, page(paint));
}
