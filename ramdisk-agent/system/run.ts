/** Runs a program of the ramdisk and returns its output. */
import { spawn } from 'node:child_process';

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
/** Rejects with the program's error output when it fails, is missing, or takes too long. Then the programs that it started end too. */
export type Run = (program: string, args: readonly string[], options?: RunOptions) => Promise<string>;

/** The cause of the error of a program that failed. */
interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** By this agent. */
  readonly killed: boolean;
}

export const run: Run = (
  program,
  args,
  { timeoutMs = 60_000, signal, withErrors, anyStatus, input, folder, maxBytes = 16 * 2 ** 20 } = {},
) =>
  new Promise((resolve, reject) => {
    const words = [program, ...args].join(' ');
    if (signal?.aborted) {
      reject(new Error(`${words}: The operation was aborted`, { cause: signal.reason }));
      return;
    }
    // A process group of its own: what the program has started is killed with it.
    const child = spawn(program, args, { cwd: folder, detached: true });
    let stopped: Error | undefined;
    const stop = (error: Error): void => {
      stopped ??= error;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
      // Programs outside of the group may have the outputs, too.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const collect = (stream: NodeJS.ReadableStream): (() => string) => {
      const parts: Buffer[] = [];
      let size = 0;
      stream.on('data', (part: Buffer) => {
        size += part.length;
        if (size > maxBytes) stop(new Error(`${words}: it wrote more than ${maxBytes} bytes`));
        else parts.push(part);
      });
      return () => Buffer.concat(parts).toString('utf8');
    };
    const [output, errors] = [collect(child.stdout), collect(child.stderr)];
    const timer = setTimeout(() => stop(new Error(`${program} did not end within ${timeoutMs / 1000} s`)), timeoutMs);
    const aborted = (): void => stop(new Error(`${words}: The operation was aborted`, { cause: signal?.reason }));
    signal?.addEventListener('abort', aborted);
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
    };
    child.on('error', (error) => {
      over();
      reject(new Error(`${words}: ${error.message}`, { cause: error }));
    });
    child.on('close', (code, endedBy) => {
      over();
      const [stdout, stderr] = [output(), errors()];
      const ended: Ended = { code, signal: endedBy, killed: stopped !== undefined };
      if (stopped) reject(new Error(stopped.message, { cause: stopped.cause ?? ended }));
      else if (code === 0 || (anyStatus && code !== null)) resolve(withErrors ? `${stdout}\n${stderr}` : stdout);
      else {
        const said = stderr.trim() || stdout.trim() || `Command failed: ${endedBy === null ? `status ${code}` : endedBy}`;
        reject(new Error(`${words}: ${said}`, { cause: ended }));
      }
    });
    // A program that ends without reading it closes the pipe, and its status says the rest.
    child.stdin.on('error', () => {});
    if (input !== undefined) child.stdin.end(input);
  });
