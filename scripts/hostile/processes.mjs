// The processes of `npm run hostile`, and the folder for what they write.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../install.mjs';

/** Added to the nice value. */
const LOWER_BY = 19;

/**
 * With autogroups, Linux compares nice values within a session only, and each session has a nice value too (sched(7)).
 * @param {number | undefined} pid
 */
function lowerSession(pid) {
  try {
    const own = Number(/nice (-?\d+)/.exec(readFileSync('/proc/self/autogroup', 'utf8'))?.[1]);
    writeFileSync(`/proc/${pid}/autogroup`, String(Math.min(19, own + LOWER_BY)));
  } catch {
    // The kernel has no autogroups.
  }
}

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {{ name: string, child: ChildProcess, output: () => string, ended: Promise<any[]> }} Program */

/** @param {ChildProcess} child */
export const isOver = (child) => child.exitCode !== null || child.signalCode !== null;
/** @param {ChildProcess} child */
export async function stop(child) {
  if (isOver(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** A signal ends all programs, and this process. */
export function createProcesses() {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-hostile-'));
  /** @type {ChildProcess[]} */
  const children = [];
  /** @type {Promise<void> | undefined} */
  let stopping;
  const stopAll = () =>
    (stopping ??= (async () => {
      for (const child of children.toReversed()) await stop(child);
      rmSync(folder, { recursive: true, force: true });
    })());
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stopAll().finally(() => process.exit(130)));

  /**
   * @param {string} name
   * @param {readonly (string | number)[]} words program and arguments for Node
   * @param {{ isBehind?: boolean, environment?: NodeJS.ProcessEnv, ipc?: boolean }} [options] `isBehind`: with a lower priority
   * @returns {Program}
   */
  function start(name, words, { isBehind = true, environment = {}, ipc = false } = {}) {
    // `nice` sets the priority before the program has threads.
    const before = isBehind && process.platform !== 'win32' ? ['nice', '-n', String(LOWER_BY)] : [];
    const [command = '', ...given] = [...before, process.execPath, ...words.map(String)];
    const child = spawn(command, given, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', ipc ? 'ipc' : 'ignore'],
      env: { ...process.env, ...environment },
      detached: isBehind,
    });
    if (isBehind) lowerSession(child.pid);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output = (output + data).slice(-20_000)));
    children.push(child);
    return { name, child, output: () => output, ended: once(child, 'exit') };
  }
  return { folder, start, stopAll, isStopping: () => stopping !== undefined };
}
