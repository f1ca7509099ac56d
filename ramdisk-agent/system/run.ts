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
}
/** Rejects with the program's error output when it fails, is missing, or takes too long. */
export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<string>;

export const run: Run = (program, args, { timeoutMs = 60_000, signal, withErrors, anyStatus } = {}) =>
  new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 16 * 2 ** 20, encoding: 'utf8', signal },
      (error, stdout, stderr) => {
        if (!error || (anyStatus && typeof error.code === 'number')) resolve(withErrors ? `${stdout}\n${stderr}` : stdout);
        else if (error.killed) reject(new Error(`${program} did not end within ${timeoutMs / 1000} s`, { cause: error }));
        else reject(new Error(`${program} ${args.join(' ')}: ${stderr.trim() || stdout.trim() || error.message}`, { cause: error }));
      },
    );
  });
