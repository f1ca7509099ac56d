// The CPU time of a process and its descendants, by thread, from Linux's /proc.
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** @param {string} path @returns {string} empty if the process has ended */
function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
/** @param {string} path @returns {string[]} */
function list(path) {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/**
 * The process and its descendants.
 * @param {number} pid
 * @returns {readonly string[]}
 */
function treeOf(pid) {
  /** @type {Map<string, string[]>} */
  const children = new Map();
  for (const child of list('/proc').filter((name) => /^\d+$/.test(name))) {
    const stat = read(`/proc/${child}/stat`);
    // The name of the command, in parentheses, may contain blanks.
    const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? '';
    children.set(parent, [...(children.get(parent) ?? []), child]);
  }
  const found = [String(pid)];
  for (const item of found) found.push(...(children.get(item) ?? []));
  return found;
}
/**
 * Nanoseconds of each thread. The values of threads that end are lost, so that a difference must be made thread by thread.
 * @typedef {ReadonlyMap<string, number>} CpuTimes
 * @param {readonly string[]} processes
 * @returns {CpuTimes}
 */
function cpuTimes(processes) {
  const times = new Map();
  for (const process of processes)
    for (const thread of list(`/proc/${process}/task`)) {
      const [ran] = read(`/proc/${process}/task/${thread}/schedstat`).split(' ');
      if (ran) times.set(thread, Number(ran));
    }
  return times;
}
/**
 * @param {CpuTimes} before
 * @param {CpuTimes} after
 * @returns {number} milliseconds
 */
function cpuBetween(before, after) {
  let sum = 0;
  for (const [thread, ran] of after) sum += ran - (before.get(thread) ?? 0);
  return sum / 1e6;
}

const [SAMPLE_MS, MAX_MS, QUIET_SHARE] = [25, 3000, 0.05];
/**
 * The CPU time of some work: until it is done, and until the processes have done what follows their answers.
 * @param {number} pid of a process, which counts with its descendants
 * @param {() => Promise<void>} work
 * @returns {Promise<number>} milliseconds
 */
export async function cpuOf(pid, work) {
  const start = cpuTimes(treeOf(pid));
  await work();
  // The database has started processes since, perhaps.
  const processes = treeOf(pid);
  let [before, then] = [cpuTimes(processes), performance.now()];
  for (const limit = then + MAX_MS; then < limit;) {
    await delay(SAMPLE_MS);
    const [after, now] = [cpuTimes(processes), performance.now()];
    const isQuiet = cpuBetween(before, after) < QUIET_SHARE * (now - then);
    [before, then] = [after, now];
    if (isQuiet) break;
  }
  return cpuBetween(start, before);
}
