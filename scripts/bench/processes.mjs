// The programs that the benches start, and what they undo at their end.
import { spawn, spawnSync } from 'node:child_process';

/**
 * @typedef {(step: () => unknown) => void} AtEnd registers what ends a process, or removes a file
 * @typedef {object} Program
 * @property {number} pid
 * @property {RegExpExecArray} line what told that it is ready
 * @property {() => Promise<void>} stop
 */

/** How long the start of a program may take. */
const MAX_MS = 300_000;

/** Runs steps at the end, the last one first: also after a signal, which skips `finally`. */
export function createEnd() {
  /** @type {Array<() => unknown>} */
  const steps = [];
  /** @type {Promise<void> | undefined} */
  let ended;
  let signalled = false;
  const endAll = () =>
    (ended ??= (async () => {
      for (const step of steps.toReversed()) await step();
    })());
  for (const [signal, code] of /** @type {const} */ ([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]))
    process.once(signal, () => {
      signalled = true;
      void endAll().finally(() => process.exit(code));
    });
  /** @type {AtEnd} */
  const atEnd = (step) => void steps.push(step);
  return { atEnd, endAll, isSignalled: () => signalled };
}

/**
 * Starts a program of Node's and waits for a line of its output.
 * @param {readonly string[]} words
 * @param {RegExp} ready
 * @param {AtEnd} atEnd
 * @param {{ environment?: NodeJS.ProcessEnv, areErrorsShown?: boolean }} [options]
 * @returns {Promise<Program>}
 */
export function startProgram(words, ready, atEnd, { environment = {}, areErrorsShown = false } = {}) {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  /** @type {Promise<void>} */
  const ended = new Promise((done) => child.once('exit', () => done()));
  const stop = () => {
    child.kill('SIGTERM');
    return ended;
  };
  atEnd(stop);
  let text = '';
  return new Promise((done, fail) => {
    const stopped = (/** @type {string} */ why) => fail(new Error(`${words.slice(0, 2).join(' ')} ${why}: ${text.slice(-2000)}`));
    const timer = setTimeout(() => stopped('does not start'), MAX_MS);
    void ended.then(() => {
      clearTimeout(timer);
      stopped('ends');
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (part) => {
        text = (text + part).slice(-100_000);
        const line = ready.exec(text);
        if (line === null) return;
        clearTimeout(timer);
        done({ pid: child.pid ?? 0, line, stop });
      });
    if (areErrorsShown) child.stderr.pipe(process.stderr, { end: false });
  });
}

/** Binds a process to a CPU, with all its threads. @param {number} pid @param {number} cpu */
export const bind = (pid, cpu) => void spawnSync('taskset', ['-acp', String(cpu), String(pid)], { stdio: 'ignore' });
