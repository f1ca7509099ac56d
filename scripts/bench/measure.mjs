// What the scenarios measure. Their rows make the table at the end.
import { cpuMeter } from './cpu.mjs';
import { lanes } from './work.mjs';

/**
 * @typedef {Record<string, string | number | undefined>} Row
 * @typedef {{ server: { pid: number }, database: { pid: number } }} Processes
 */

/** @type {Row[]} */
export const rows = [];
/**
 * Measures `work`, which returns the count and further columns.
 * @param {string} what
 * @param {Processes} processes
 * @param {() => Promise<Row & { count: number }>} work
 * @returns seconds
 */
export async function measure(what, { server, database }, work) {
  const cpu = cpuMeter(server.pid, database.pid);
  const began = performance.now();
  const { count, ...more } = await work();
  const took = (performance.now() - began) / 1000;
  const [ours, its] = cpu();
  const row = {
    what,
    count,
    seconds: took.toFixed(2),
    'a second': (count / took).toFixed(1),
    'server CPU ms each': (ours / count).toFixed(3),
    'database CPU ms each': (its / count).toFixed(3),
    ...more,
  };
  rows.push(row);
  console.error(JSON.stringify(row));
  return took;
}

/** @param {readonly number[]} times @param {number} part @returns {string | undefined} undefined: there is none */
const quantile = (times, part) => times.toSorted((a, b) => a - b)[Math.floor(part * (times.length - 1))]?.toFixed(2);
/** The milliseconds and the statuses of requests, for a row. */
export function createTally() {
  /** @type {number[]} */
  const times = [];
  /** @type {Record<number, number>} */
  const statuses = {};
  return {
    /** @param {number} status @param {number} took */
    add: (status, took) => {
      times.push(took);
      statuses[status] = (statuses[status] ?? 0) + 1;
    },
    row: () => ({
      count: times.length,
      'p50 ms': quantile(times, 0.5),
      'p99 ms': quantile(times, 0.99),
      answers: JSON.stringify(statuses),
    }),
  };
}
function* forEver() {
  for (let index = 0; ; index++) yield index;
}
/**
 * `width` clients send one request after the other until the time is over.
 * @param {number} width
 * @param {number} seconds
 * @param {(index: number) => Promise<{ status: number }>} call
 */
export const load = (width, seconds, call) => async () => {
  const until = performance.now() + seconds * 1000;
  const { add, row } = createTally();
  await lanes(width, forEver(), async (index) => {
    const began = performance.now();
    const { status } = await call(index);
    add(status, performance.now() - began);
    return performance.now() < until;
  });
  return row();
};

/** The sum of a metric's samples with these labels. @param {string} text @param {string} name @param {string} [labels] */
const metric = (text, name, labels = '') =>
  [...text.matchAll(new RegExp(`^${name}\\{?([^}\\n]*)\\}? ([0-9.e+-]+)$`, 'gm'))]
    .filter(([, given = '']) => given.includes(labels))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
/** How often a periodic task has run, and for how many seconds. @param {string} text of the metrics @param {string} task */
export function roundsOf(text, task) {
  const of = (/** @type {string} */ part) => metric(text, `bloomery_periodic_duration_seconds_${part}`, `task="${task}"`);
  return { count: of('count'), sum: of('sum') };
}
