/**
 * The programs that the server starts. Each gets only the variables of its row: this process has secrets in its environment. None gets
 * capabilities.
 */
import { execFile, spawn, type ChildProcess, type ExecFileOptionsWithStringEncoding, type SpawnOptions } from 'node:child_process';
import { readFile } from 'node:fs/promises';

interface Program {
  /** Variables of this process that the program gets. */
  readonly inherits: readonly string[];
  readonly sets: Readonly<Record<string, string>>;
}
const PROGRAMS = {
  /** postgres and initdb. */
  postgres: { inherits: [], sets: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } },
  ps: { inherits: ['PATH'], sets: { LC_ALL: 'C' } },
  ipmitool: { inherits: ['PATH'], sets: { LC_ALL: 'C' } },
  /** Python with networking-generic-switch, whose libraries read SSH's files below HOME. */
  switches: {
    inherits: ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV'],
    sets: {},
  },
} as const satisfies Readonly<Record<string, Program>>;
type ProgramName = keyof typeof PROGRAMS;
type Variables = Readonly<Record<string, string>>;

/** @internal */
export function environmentOf(name: ProgramName, more: Variables = {}): NodeJS.ProcessEnv {
  const { inherits, sets }: Program = PROGRAMS[name];
  return { ...Object.fromEntries(inherits.map((variable) => [variable, process.env[variable]])), ...sets, ...more };
}

/** Starts a program that stays. @param file the path, or the name for PATH */
export const startProgram = (
  name: ProgramName,
  file: string,
  words: readonly string[],
  options: Omit<SpawnOptions, 'env' | 'shell'>,
): ChildProcess => spawn(file, words, { ...options, env: environmentOf(name) });

/** Runs a program to its end. */
export const runProgram = (
  name: ProgramName,
  file: string,
  words: readonly string[],
  { variables, ...options }: Omit<ExecFileOptionsWithStringEncoding, 'env' | 'shell'> & { readonly variables?: Variables },
  done: (error: Error | null, stdout: string, stderr: string) => void,
): ChildProcess => execFile(file, words, { ...options, env: environmentOf(name, variables) }, done);

/** Numbers of the Linux ABI (prctl.h). */
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;

/**
 * Keeps the capabilities of this process from the programs that it starts. systemd gives them as ambient capabilities, which every child
 * inherits. A process keeps its own when it clears that set (capabilities(7)). Programs are started by the thread that calls this.
 * @throws Error if they cannot be kept
 */
export async function keepCapabilities(): Promise<void> {
  if (process.platform !== 'linux') return;
  const status = await readFile('/proc/self/status', 'latin1').catch(() => '');
  if (!/^CapAmb:\t0*[1-9a-f]/m.test(status)) return;
  const { default: koffi } = await import('koffi');
  const prctl = koffi.load(null).func('int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)') as (
    ...values: readonly number[]
  ) => number;
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) !== 0)
    throw new Error(`the ambient capabilities cannot be cleared: error ${koffi.errno()}`);
}
