// Runs programs whose children would outlive them if they are killed, such as mmdebstrap.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** The signals that end a run, and the exit status of each. @type {Partial<Record<NodeJS.Signals, number>>} */
export const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
/** Time for programs to clean up after a signal. */
const GRACE_MS = 10_000;
const INTERVAL_MS = 50;

/**
 * Sends a signal to a process group.
 * @param {number} leader
 * @param {NodeJS.Signals | 0} signal
 * @returns whether the group had processes that got the signal
 */
function signalGroup(leader, signal) {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: the remaining processes belong to other users, and end by themselves.
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === 'ESRCH' || code === 'EPERM') return false;
    throw error;
  }
}

/**
 * Runs a program in a process group of its own. A signal to this process goes to the whole group. After `graceMs`, the rest of the group
 * gets SIGKILL.
 * @param {readonly string[]} command program and arguments
 * @param {import('node:child_process').SpawnOptions} options
 * @returns `status`, and `interrupted`: whether this process got a signal. If so, the result comes after the whole group has ended
 */
export async function runInGroup(command, options = {}, graceMs = GRACE_MS) {
  /** @param {NodeJS.Signals} signal */
  const end = async (signal) => {
    if (child?.pid === undefined) return;
    const began = performance.now();
    /** @type {NodeJS.Signals | 0} */
    let sent = signal;
    while (signalGroup(child.pid, sent)) {
      await delay(INTERVAL_MS);
      const waited = performance.now() - began;
      if (waited > 2 * graceMs) return;
      sent = waited < graceMs ? 0 : 'SIGKILL';
    }
  };
  /** @type {number | undefined} */
  let ofSignal;
  /** @type {Promise<void> | undefined} */
  let ending;
  /** @param {NodeJS.Signals} signal */
  const onSignal = (signal) => {
    ofSignal ??= SIGNALS[signal];
    ending ??= end(signal);
  };
  for (const signal of Object.keys(SIGNALS)) process.on(signal, onSignal);
  // Starts the program after the handlers are set, so that a signal during the start reaches the whole group too.
  const [program = '', ...words] = command;
  const child = spawn(program, words, { stdio: ['ignore', 'inherit', 'inherit'], ...options, detached: true });
  try {
    const [code] = await once(child, 'exit');
    await ending;
    return { status: ofSignal ?? code ?? 1, interrupted: ofSignal !== undefined };
  } finally {
    for (const signal of Object.keys(SIGNALS)) process.off(signal, onSignal);
  }
}
