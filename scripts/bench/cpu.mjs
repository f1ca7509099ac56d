// The CPU time of a process and its descendants, from Linux's /proc.
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

/** Milliseconds of a tick, the unit of `stat` (proc(5)). */
const TICK_MS = 10;
/**
 * @param {string | number} process a PID, or `self`
 * @returns {{ parent: string, own: number, ofChildren: number }} milliseconds of the process itself, and of its terminated children
 */
export function statOf(process) {
  const stat = read(`/proc/${process}/stat`);
  // The name of the command, in parentheses, may contain blanks.
  const [, parent = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime; cutime, cstime
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(9, 13).map(Number);
  return { parent, own: (user + system) * TICK_MS, ofChildren: (childrenUser + childrenSystem) * TICK_MS };
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
    const { parent } = statOf(child);
    children.set(parent, [...(children.get(parent) ?? []), child]);
  }
  const found = [String(pid)];
  for (const item of found) found.push(...(children.get(item) ?? []));
  return found;
}
/**
 * The CPU time since the start, in ticks: for work of many seconds, in which processes may end.
 * @param {number} pid
 * @returns {number} milliseconds, with those of terminated children; not a number without /proc
 */
function cpuSinceStart(pid) {
  if (list('/proc').length === 0) return NaN;
  return treeOf(pid)
    .map(statOf)
    .reduce((sum, { own, ofChildren }) => sum + own + ofChildren, 0);
}
/**
 * @template {readonly number[]} Pids
 * @param {Pids} pids of processes, which count with their descendants
 * @returns {() => { [At in keyof Pids]: number }} milliseconds of each since this call
 */
export function cpuMeter(...pids) {
  const before = pids.map(cpuSinceStart);
  return () => /** @type {{ [At in keyof Pids]: number }} */ (pids.map((pid, at) => cpuSinceStart(pid) - (before[at] ?? NaN)));
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
