/**
 * Loaded into the attacked server before its program: appends the CPU milliseconds of each long turn of the event loop to the file
 * TURNS_FILE. Meanwhile the server answers nobody. CPU time, unlike the wall clock, does not depend on what else the machine does.
 */
import { appendFileSync, readFileSync } from 'node:fs';

const EVERY_MS = 10;
const LONG_MS = 40;
const file = process.env['TURNS_FILE'];

/** Milliseconds of the main thread; of the whole process where the system does not show those of a thread. */
function cpuMs(): number {
  try {
    // Three numbers: nanoseconds on the processor, nanoseconds of waiting, and the number of time slices.
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

let before = cpuMs();
if (file !== undefined)
  setInterval(() => {
    const now = cpuMs();
    if (now - before > LONG_MS) appendFileSync(file, `${Math.round(now - before)}\n`);
    before = now;
  }, EVERY_MS).unref();
