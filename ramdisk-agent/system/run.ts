/** Runs a program of the ramdisk and returns its output. */
import { execFile } from 'node:child_process';

interface RunOptions {
  /** Milliseconds; default one minute. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Whether the output contains what the program writes to its error output: some end well and only say there what failed. */
  readonly withErrors?: true;
  /** Whether the output counts whatever the exit status is: some say by it what they found. */
  readonly anyStatus?: true;
  /** What the program reads from its standard input. */
  readonly input?: string;
  /** The folder that the program runs in. */
  readonly folder?: string;
  /** Of each of its outputs; default 16 MiB. A program that writes more is killed. */
  readonly maxBytes?: number;
}
/** Rejects with the program's error output when it fails, is missing, or takes too long. */
export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<string>;

export const run: Run = (
  program,
  args,
  { timeoutMs = 60_000, signal, withErrors, anyStatus, input, folder, maxBytes = 16 * 2 ** 20 } = {},
) =>
  new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: maxBytes, encoding: 'utf8', signal, cwd: folder },
      (error, stdout, stderr) => {
        if (!error || (anyStatus && typeof error.code === 'number')) resolve(withErrors ? `${stdout}\n${stderr}` : stdout);
        else if (error.killed) reject(new Error(`${program} did not end within ${timeoutMs / 1000} s`, { cause: error }));
        else reject(new Error(`${program} ${args.join(' ')}: ${stderr.trim() || stdout.trim() || error.message}`, { cause: error }));
      },
    );
    // A program that ends without reading it closes the pipe, and its status says the rest.
    child.stdin?.on('error', () => {});
    if (input !== undefined) child.stdin?.end(input);
  });
