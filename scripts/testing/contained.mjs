/**
 * Runs a program so that it leaves nothing behind, however it ends: in PID, mount and IPC namespaces of its own. When the first process of
 * a PID namespace ends, the kernel ends all others. Network namespaces and shared memory that the program makes are mounts of its own mount
 * namespace, so they end with it. Needs Linux and root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SIGNALS } from './process-group.mjs';

/** The first process of the namespace. It collects orphaned processes, and writes the processor times of all. */
const FIRST = `mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit
times=$1; shift
"$@" & wait $!
code=$?
times > "$times"
exit $code`;

/** @type {Set<{ kill: () => Promise<void> }>} */
const running = new Set();
/** Whether a signal ends this process. Nothing starts then, and no result comes. */
let isEnding = false;
/** @type {Promise<never>} */
const NEVER = new Promise(() => {});

/** `rm` tries again while programs that end still write. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 };

/**
 * From now on, a signal ends all contained programs and then this process.
 * @param {string} name
 * @returns a folder for the folders of the programs, which is removed when this process ends
 */
export function prepareContained(name) {
  const folder = mkdtempSync(join(tmpdir(), `bloomery-${name}-`));
  // PostgreSQL's own user needs search permission.
  chmodSync(folder, 0o755);
  process.on('exit', () => rmSync(folder, REMOVAL));
  for (const [signal, code] of Object.entries(SIGNALS))
    process.on(signal, () => {
      if (isEnding) return;
      isEnding = true;
      console.error(`${signal}: ending the running programs`);
      void Promise.all([...running].map((item) => item.kill())).then(() => process.exit(code));
    });
  return folder;
}

/** `1m2.5s` of the shell's `times` in seconds. @param {string} text */
const secondsOf = (text) => {
  const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
  return Number(minutes) * 60 + Number(seconds);
};

/**
 * @param {readonly string[]} command program and arguments
 * @param {object} options
 * @param {string} options.folder created for the program's temporary files (TMPDIR), and removed at its end
 * @param {string} [options.log] file for the program's output; without it, only errors are shown
 * @param {string} options.cwd
 * @param {NodeJS.ProcessEnv} [options.env]
 * @returns {{ ended: Promise<{ code: number | null, cpuSeconds: number | undefined }>, kill: () => Promise<void> }} `ended` resolves to the
 *   exit status, and to the CPU time of all its processes unless it was killed. `kill` ends the program with all that it started, and
 *   resolves when they have ended.
 */
export function startContained(command, { folder, log, cwd, env = process.env }) {
  if (isEnding) return { ended: NEVER, kill: async () => {} };
  mkdirSync(folder, { recursive: true });
  const times = join(folder, 'processor-times');
  const output = log === undefined ? undefined : openSync(log, 'w');
  // `setpriv` ends the program if this process is killed. The program has a process group of its own, so Ctrl-C reaches this process only.
  const child = spawn(
    'setpriv',
    [
      '--pdeathsig',
      'KILL',
      'unshare',
      '--fork',
      '--kill-child',
      '--pid',
      '--mount',
      '--ipc',
      '--mount-proc',
      'sh',
      '-c',
      FIRST,
      'sh',
      times,
      ...command,
    ],
    { cwd, env: { ...env, TMPDIR: folder }, stdio: ['ignore', output ?? 'ignore', output ?? 'inherit'], detached: true },
  );
  if (output !== undefined) closeSync(output);
  const exit = once(child, 'exit');
  const finish = async () => {
    const [code] = await exit;
    let cpuSeconds;
    try {
      const words = readFileSync(times, 'utf8').trim().split(/\s+/);
      cpuSeconds = words.map(secondsOf).reduce((sum, seconds) => sum + seconds, 0);
    } catch {
      // A killed program has written no times.
    }
    await rm(folder, REMOVAL);
    return { code, cpuSeconds };
  };
  const finished = finish().finally(() => running.delete(contained));
  const contained = {
    ended: finished.then((result) => (isEnding ? NEVER : result)),
    kill: async () => {
      try {
        // The first process of the namespace ends after all others have, and `unshare` ends after that.
        const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
        process.kill(Number(children.split(' ')[0]) || (child.pid ?? 0), 'SIGKILL');
      } catch {
        // The program has ended meanwhile.
      }
      await finished;
    },
  };
  running.add(contained);
  return contained;
}
