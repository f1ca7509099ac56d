/** Inspects and stops a PostgreSQL server by its postmaster.pid and its process. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil, type Clock } from '../../model/clock';
import { runProgram } from '../../wire/child-processes';

export interface PidFile {
  readonly pid: number;
  /** The folder of its socket; empty: none. */
  readonly sockets: string;
  /** Whether the server accepts connections. */
  readonly ready: boolean;
}
interface Running {
  readonly parent: number;
  /** The command with its arguments, separated by spaces. */
  readonly command: string;
}

/** The lines are described in PostgreSQL's pidfile.h: 1 pid, 5 socket folder, 8 status. Undefined: no file, or an incomplete one. */
export async function readPidFile(data: string): Promise<PidFile | undefined> {
  const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, sockets: lines[4]?.trim() ?? '', ready: lines[7]?.trim() === 'ready' };
}

/** A name in the command line that identifies the server of this data, independent of the path. */
export async function clusterName(data: string): Promise<string> {
  const { dev, ino } = await stat(data);
  return `bloomery-${dev}-${ino}`;
}

/** The running process with this PID. Undefined: there is none, or it is a zombie. */
export async function describeProcess(pid: number): Promise<Running | undefined> {
  try {
    if (process.platform === 'linux') {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8');
      // proc(5): the name in parentheses may hold anything; state and parent follow the last one.
      const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      if (state === 'Z' || state === 'X') return undefined;
      return { parent: Number(parent), command: (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ') };
    }
    const words = ['-o', 'state=,ppid=,command=', '-p', String(pid)];
    const stdout = await new Promise<string>((done, fail) =>
      runProgram('ps', 'ps', words, { encoding: 'utf8' }, (error, text) => (error ? fail(error) : done(text))),
    );
    const [, state, parent, command] = /^\s*(\S+)\s+(\d+)\s+(.*)/.exec(stdout) ?? [];
    return state === undefined || state.startsWith('Z') ? undefined : { parent: Number(parent), command: command ?? '' };
  } catch {
    return undefined;
  }
}

/** PostgreSQL's shutdown modes, and the milliseconds to wait for each: fast, immediate (recovery at the next start), kill. */
const STOP_SIGNALS = [
  ['SIGINT', 20_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
] as const;
const POLL_MS = 5;

/** Stops a server and waits until `gone` returns true. False: the server did not end. */
export async function stopServer(pid: number, gone: () => boolean | Promise<boolean>, clock: Clock): Promise<boolean> {
  for (const [signal, patience] of STOP_SIGNALS) {
    try {
      process.kill(pid, signal);
    } catch {
      return true;
    }
    if (await waitUntil({ clock }, gone, (polls) => (polls * POLL_MS < patience ? POLL_MS : undefined))) return true;
  }
  return false;
}
