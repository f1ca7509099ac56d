// What `npm run hostile` measures: the times of a probe, and the server's CPU time, memory and event loop delay.
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

const [SAMPLE_EVERY_MS, PROBE_EVERY_MS] = [1000, 50];

/**
 * Milliseconds of CPU time, and of waits for a processor, of the process's main thread. NaN without /proc.
 * @param {number | undefined} pid
 */
function mainThread(pid) {
  try {
    const [used = NaN, waited = NaN] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number);
    return { used: used / 1e6, waited: waited / 1e6 };
  } catch {
    return { used: NaN, waited: NaN };
  }
}
/** @param {string} text @param {string} name with its labels */
const metric = (text, name) =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length) ?? NaN,
  );

/** @typedef {{ ms: number, used: number, waited: number }} Probe */
/** @typedef {Record<'delays' | 'queries' | 'memory' | 'load', number[]>} Samples */
/** @typedef {Samples & { probes: Probe[], unanswered: number, cpu: number, mainUsed: number, mainWaited: number }} Phase */

/**
 * Measures as long as `isTime`.
 * @param {() => boolean} isTime
 * @param {number | undefined} pid of the server
 * @param {(path: string) => Promise<{ status: number, text: string }>} get
 * @param {string} path of the probe
 * @returns {Promise<Phase>}
 */
export async function measure(isTime, pid, get, path) {
  /** @type {Probe[]} */
  const probes = [];
  /** @type {Samples} */
  const samples = { delays: [], queries: [], memory: [], load: [] };
  let unanswered = 0;
  const [began, before] = [performance.now(), mainThread(pid)];
  // A scrape shows the event loop delays since the previous scrape.
  const scrape = () =>
    get('/metrics').then(
      ({ text }) => text,
      () => '',
    );
  const cpuBefore = metric(await scrape(), 'process_cpu_seconds_total');
  let cpu = cpuBefore;
  const probe = async () => {
    while (isTime()) {
      const [sent, first] = [performance.now(), mainThread(pid)];
      const { status } = await get(path).catch(() => ({ status: 0 }));
      const last = mainThread(pid);
      if (status === 200) probes.push({ ms: performance.now() - sent, used: last.used - first.used, waited: last.waited - first.waited });
      else unanswered++;
      await delay(PROBE_EVERY_MS);
    }
  };
  const sample = async () => {
    while (isTime()) {
      await delay(SAMPLE_EVERY_MS);
      const text = await scrape();
      if (text === '') continue;
      cpu = metric(text, 'process_cpu_seconds_total');
      samples.delays.push(1000 * metric(text, 'nodejs_eventloop_lag_max_seconds'));
      samples.queries.push(metric(text, 'bloomery_database_connections{state="waiting"}'));
      samples.memory.push(metric(text, 'process_resident_memory_bytes') / 2 ** 20);
      samples.load.push(loadavg()[0] ?? NaN);
    }
  };
  await Promise.all([probe(), sample()]);
  const [took, after] = [performance.now() - began, mainThread(pid)];
  return {
    ...samples,
    probes,
    unanswered,
    cpu: (100_000 * (cpu - cpuBefore)) / took,
    mainUsed: (100 * (after.used - before.used)) / took,
    mainWaited: (100 * (after.waited - before.waited)) / took,
  };
}
/** @param {readonly number[]} values */
const sorted = (values) => values.toSorted((left, right) => left - right);
/** @param {readonly number[]} values @param {number} share */
const percentile = (values, share) => values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN;
/** @param {Phase} phase */
const timesOf = ({ probes }) => probes.map(({ ms }) => ms);
/** @param {Phase} phase */
export const p99 = (phase) => percentile(sorted(timesOf(phase)), 0.99);

/** Lines about one phase. @param {string} name @param {Phase} phase */
export function report(name, phase) {
  const { probes, unanswered, delays, queries, memory, load, cpu, mainUsed, mainWaited } = phase;
  const times = timesOf(phase);
  const whole = (value = NaN) => value.toFixed(0);
  /** @param {readonly number[]} values @param {readonly number[]} wanted */
  const shares = (values, ...wanted) =>
    wanted.map((share) => `${share === 1 ? 'max' : `p${100 * share}`} ${whole(percentile(sorted(values), share))}`).join(', ');
  /** @param {readonly number[]} values */
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const slowest = probes.toSorted((left, right) => right.ms - left.ms).slice(0, Math.ceil(probes.length / 100));
  /** @param {keyof Probe} name */
  const meanOf = (name) => whole(mean(slowest.map((probe) => probe[name])));
  return [
    `${name}:`,
    `  GET /v1/nodes/X: ${shares(times, 0.5, 0.9, 0.99, 1)} ms; ${times.length} answered, ${unanswered} not`,
    `  its slowest hundredth: ${meanOf('ms')} ms, of which the main thread worked ${meanOf('used')} and waited for a processor ${meanOf('waited')}`,
    `  longest delay of the event loop in a second: ${shares(delays, 0.5, 0.9, 1)} ms (50 ms of it are the metric's period)`,
    `  queries that wait for a connection to the database: ${shares(queries, 0.5, 0.9, 1)}`,
    `  CPU of the server: ${whole(cpu)} %; its main thread ${whole(mainUsed)} %, and ${whole(mainWaited)} % waiting for a processor`,
    `  memory of the server: ${whole(memory[0])} MiB at first, ${whole(Math.max(...memory))} at most, ${whole(memory.at(-1))} at last`,
    `  load average: mean ${mean(load).toFixed(1)}, highest ${Math.max(...load).toFixed(1)}`,
  ];
}
