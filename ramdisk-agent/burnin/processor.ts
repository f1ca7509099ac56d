/** Burn-in of processors and memory by programs of this agent (load.ts), and of GPUs by gpu-burn, which a ramdisk of the site may have. */
import { availableParallelism } from 'node:os';
import { AgentError } from '../../model/agent/errors';
import { readCpuBurnIn, readGpuBurnIn, readMemoryBurnIn, type CpuBurnIn, type MemoryBurnIn } from '../../model/agent/burnin';
import { reasonOf } from '../../model/errors';
import { objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import type { ReportProgress } from '../system/progress';
import type { LoadReport } from './load';
import { memoryErrors, monotonic, newMemoryErrors, timed, writeResult } from './measures';

const infoOf = ({ state }: Machine): JsonObject => objectOf(state.node['driver_info']);
const MiB = 2 ** 20;
/** Seconds in which a load must notice that its time is over, and end. */
const GRACE = 600;
/** Bytes of a program besides the memory that it tests, and bytes that the agent itself needs. */
const [PER_WORKER, OWN] = [56 * MiB, 48 * MiB];
const LEAST = 16 * MiB;
/** How often a program that the kernel ended, because the memory was used up, begins again, with less each time. */
const RESTARTS = 5;
const LESS = 0.85;

const failed = (what: string, error: unknown): AgentError =>
  new AgentError('CommandExecutionError', `Burn-in (${what}) failed with error ${reasonOf(error)}`, { cause: error });

function reportOf(output: string): LoadReport {
  const { rounds, bytes } = objectOf(JSON.parse(output.trim()));
  if (typeof rounds !== 'number' || typeof bytes !== 'number') throw new Error(`a load reported ${output.slice(0, 100)}`);
  return { rounds, bytes };
}
const load = async ({ run, fetching }: Machine, seconds: number, words: readonly string[]): Promise<LoadReport> =>
  reportOf(await run('agent', ['burn-in', ...words], { timeoutMs: (seconds + GRACE) * 1000, signal: fetching.signal }));

/** Runs the loads, and fails for errors that the memory could not correct. The first load that fails ends the others. */
async function loaded(
  machine: Machine,
  { seconds, outputFile }: CpuBurnIn,
  { what, progress }: { readonly what: string; readonly progress: ReportProgress },
  loads: readonly ((machine: Machine) => Promise<LoadReport & JsonObject>)[],
): Promise<JsonObject> {
  const [began, before] = [monotonic(machine), memoryErrors(machine.tree)];
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, machine.fetching.signal]);
  const ending = { ...machine, fetching: { ...machine.fetching, signal } };
  machine.log.info(`Burn-in (${what}): ${loads.length} workers for ${seconds} s`);
  try {
    const reports = await timed(machine, seconds, progress, () =>
      Promise.all(
        loads.map((each) =>
          each(ending).catch((error: unknown) => {
            over.abort();
            throw error;
          }),
        ),
      ),
    );
    const errors = newMemoryErrors(before, memoryErrors(machine.tree));
    const sum = (name: 'rounds' | 'bytes'): number => reports.reduce((all, report) => all + report[name], 0);
    const more = Object.assign({}, ...reports) as JsonObject;
    const result = {
      ...more,
      workers: loads.length,
      seconds: Math.round((monotonic(machine) - began) / 1000),
      rounds: sum('rounds'),
      bytes: sum('bytes'),
      memory_errors: errors,
    };
    await writeResult(machine, outputFile, result);
    if (errors && errors.uncorrected > 0) throw new Error(`the memory had ${errors.uncorrected} errors that it could not correct`);
    machine.log.info(`Burn-in (${what}): ${JSON.stringify(result)}`);
    return result;
  } catch (error) {
    throw error instanceof AgentError ? error : failed(what, error);
  }
}
const workersOf = ({ workers }: CpuBurnIn): number => workers || availableParallelism();

export async function burnInCpu(machine: Machine, progress: ReportProgress): Promise<JsonObject> {
  const wanted = readCpuBurnIn(infoOf(machine));
  const one = async (ending: Machine) => ({ ...(await load(ending, wanted.seconds, ['cpu', String(wanted.seconds)])) });
  return loaded(
    machine,
    wanted,
    { what: 'cpu', progress },
    Array.from({ length: workersOf(wanted) }, () => one),
  );
}

/** Bytes for each worker. */
function shareOf(machine: Machine, wanted: MemoryBurnIn, workers: number): number {
  const [, kib] = /^MemAvailable: +(\d+) kB$/m.exec(machine.tree.text('/proc/meminfo') ?? '') ?? [];
  const available = Math.max(0, Number(kib ?? 0) * 1024 - OWN - PER_WORKER * workers);
  const bytes = 'part' in wanted.memory ? available * wanted.memory.part : Math.min(wanted.memory.bytes, available);
  return Math.max(LEAST, Math.floor(bytes / workers / MiB) * MiB);
}
const isKilled = (error: unknown): boolean => {
  const cause = (error as { readonly cause?: { readonly signal?: unknown; readonly killed?: unknown } }).cause;
  return cause?.signal === 'SIGKILL' && cause.killed !== true;
};
export async function burnInMemory(machine: Machine, progress: ReportProgress): Promise<JsonObject> {
  const wanted = readMemoryBurnIn(infoOf(machine));
  const workers = workersOf(wanted);
  const share = shareOf(machine, wanted, workers);
  const end = monotonic(machine) + wanted.seconds * 1000;
  const one = async (ending: Machine): Promise<LoadReport & JsonObject> => {
    for (let [size, restarts] = [share, 0]; ; restarts++) {
      const left = Math.max(1, Math.ceil((end - monotonic(machine)) / 1000));
      try {
        return { ...(await load(ending, left, ['memory', String(left), String(size)])), bytes_of_worker: size };
      } catch (error) {
        if (!isKilled(error) || restarts === RESTARTS || size === LEAST) throw error;
        machine.log.warn(`Burn-in (memory): the kernel ended a worker of ${size} bytes; again with less`);
        size = Math.max(LEAST, Math.floor((size * LESS) / MiB) * MiB);
      }
    }
  };
  return loaded(
    machine,
    wanted,
    { what: 'memory', progress },
    Array.from({ length: workers }, () => one),
  );
}

/** Throws CleaningError for another number of GPUs than driver_info says. */
export async function burnInGpu(machine: Machine, progress: ReportProgress): Promise<JsonObject> {
  const { folder, seconds, memory, count } = readGpuBurnIn(infoOf(machine));
  const burn = (words: readonly string[], limit: number): Promise<string> =>
    machine
      .run('./gpu_burn', words, { folder, timeoutMs: (limit + GRACE) * 1000, signal: machine.fetching.signal })
      .catch((error: unknown) => {
        throw new AgentError('CommandExecutionError', `gpu-burn failed with error ${reasonOf(error)}`, { cause: error });
      });
  if (count > 0) {
    const found = (await burn(['-l'], 0)).split('\n').filter((line) => line.startsWith('ID')).length;
    if (found !== count)
      throw new AgentError('CleaningError', `gpu-burn failed to find the correct number of gpus. ${found} found but ${count} expected.`);
  }
  await timed(machine, seconds, progress, () => burn(['-m', memory, String(seconds)], seconds));
  return { seconds, gpus: count };
}
