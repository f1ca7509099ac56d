/** What a burn-in measures besides its load: time, the errors that memory corrects, the errors of network interfaces. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import type { ReportProgress } from '../system/progress';
import { numberIn, type Tree } from '../system/tree';

/** Milliseconds. */
const REPORT_EVERY = 5000;
export const monotonic = ({ clock }: Pick<Machine, 'clock'>): number => clock.monotonic?.() ?? clock.now();

/** Reports the share of the time that is over while the work runs. @param seconds of the whole work */
export async function timed<T>(machine: Machine, seconds: number, progress: ReportProgress, work: () => Promise<T>): Promise<T> {
  const began = monotonic(machine);
  const over = new AbortController();
  const tell = async (): Promise<void> => {
    while (!over.signal.aborted) {
      progress(Math.min(99, (100 * (monotonic(machine) - began)) / (seconds * 1000)));
      await machine.clock.sleep(REPORT_EVERY, over.signal).catch(() => undefined);
    }
  };
  const telling = tell();
  try {
    return await work();
  } finally {
    over.abort();
    await telling;
  }
}

/** Errors of the memory, which the kernel counts for each controller (EDAC). Null: this machine has no counters. */
interface MemoryErrors {
  readonly corrected: number;
  readonly uncorrected: number;
}
export function memoryErrors(tree: Tree): MemoryErrors | null {
  const base = '/sys/devices/system/edac/mc';
  const controllers = tree.list(base).filter((name) => /^mc\d+$/.test(name));
  const sum = (file: string): number => controllers.reduce((all, name) => all + (numberIn(tree.text(`${base}/${name}/${file}`)) ?? 0), 0);
  return controllers.length === 0 ? null : { corrected: sum('ce_count'), uncorrected: sum('ue_count') };
}
export const newMemoryErrors = (before: MemoryErrors | null, after: MemoryErrors | null): MemoryErrors | null =>
  before && after && { corrected: after.corrected - before.corrected, uncorrected: after.uncorrected - before.uncorrected };

const COUNTERS = ['rx_errors', 'tx_errors', 'rx_crc_errors', 'rx_dropped', 'tx_dropped'] as const;
type Counters = Readonly<Record<string, Readonly<Record<string, number>>>>;
/** Interface → counter → value. */
export function interfaceErrors(tree: Tree): Counters {
  const names = tree.list('/sys/class/net').filter((name) => tree.link(`/sys/class/net/${name}/device`) !== null);
  const value = (name: string, counter: string): number => numberIn(tree.text(`/sys/class/net/${name}/statistics/${counter}`)) ?? 0;
  return Object.fromEntries(names.map((name) => [name, Object.fromEntries(COUNTERS.map((counter) => [counter, value(name, counter)]))]));
}
export const newInterfaceErrors = (before: Counters, after: Counters): Counters =>
  Object.fromEntries(
    Object.entries(after).map(([name, counters]) => [
      name,
      Object.fromEntries(Object.entries(counters).map(([counter, value]) => [counter, value - (before[name]?.[counter] ?? 0)])),
    ]),
  );

/** Writes the result where driver_info wants it, for the logs of the ramdisk. */
export async function writeResult(machine: Machine, file: string | undefined, result: JsonObject): Promise<JsonObject> {
  if (file === undefined) return result;
  const path = join(machine.root, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(result, null, 1)}\n`);
  machine.state.outputFiles = [...new Set([...(machine.state.outputFiles ?? []), file])];
  return result;
}
