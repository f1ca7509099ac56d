// Programs that start others which outlive them when they are killed, such as mmdebstrap.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
/** For programs that clean up when a signal ends them. */
const GRACE_MS = 10_000;
const INTERVAL_MS = 50;

/** @returns whether the process group has processes. They get the signal. */
function signalGroup(leader, signal) {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: what is left belongs to other users, and ends by itself.
    if (error.code === 'ESRCH' || error.code === 'EPERM') return false;
    throw error;
  }
}

/**
 * Runs a program in a process group of its own. A signal to this process goes to the whole group, and SIGKILL to what is left of it later.
 * @param command program and arguments
 * @param options of `spawn`
 * @returns `status`, and whether a signal ended it, after the whole group has ended then
 */
export async function runInGroup(command, options = {}, graceMs = GRACE_MS) {
  const end = async (signal) => {
    if (child?.pid === undefined) return;
    const began = performance.now();
    for (let sent = signal; signalGroup(child.pid, sent);) {
      await delay(INTERVAL_MS);
      const waited = performance.now() - began;
      if (waited > 2 * graceMs) return;
      sent = waited < graceMs ? 0 : 'SIGKILL';
    }
  };
  let ofSignal;
  /** @type {Promise<void> | undefined} */
  let ending;
  const onSignal = (signal) => {
    ofSignal ??= SIGNALS[signal];
    ending ??= end(signal);
  };
  for (const signal of Object.keys(SIGNALS)) process.on(signal, onSignal);
  // After the handlers: a signal that comes while it starts is for the whole group too.
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'inherit', 'inherit'], ...options, detached: true });
  try {
    const [code] = await once(child, 'exit');
    await ending;
    return { status: ofSignal ?? code ?? 1, interrupted: ofSignal !== undefined };
  } finally {
    for (const signal of Object.keys(SIGNALS)) process.off(signal, onSignal);
  }
}
