/** Time that is the machine's or the client's, not the server's. Measurements by the wall clock on a busy machine leave it out. */
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds that the threads of these processes waited for a processor; 0 where Linux does not tell. */
function waitedMs(pids: readonly number[]): number {
  let nanoseconds = 0;
  for (const pid of pids)
    try {
      // Nanoseconds on the processor, waiting, and slices.
      for (const thread of readdirSync(`/proc/${pid}/task`))
        nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[1]);
    } catch {
      // A thread that ended meanwhile.
    }
  return nanoseconds / 1e6;
}

/**
 * Starts a measurement by the wall clock.
 * @param pids the processes whose waits for a processor do not count
 * @returns a function for the milliseconds since then, without these waits and without this process's own work
 */
export function stopwatch(pids: readonly number[]): () => number {
  const all = [process.pid, ...pids];
  const began = performance.now();
  const [waited, used] = [waitedMs(all), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(used);
    return Math.max(0, performance.now() - began - (waitedMs(all) - waited) - (user + system) / 1000);
  };
}
