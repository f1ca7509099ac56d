/** The process that drives switches by networking-generic-switch (worker.py): JSON lines, one answer for each change. */
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startProgram } from '../child-processes';
import { timeoutSignal } from '../timeout-signal';
import { shortened } from '../../model/text';

export interface DeviceChange {
  /** The switch's name in the settings. */
  readonly switch: string;
  readonly operation: 'update' | 'reset';
  readonly port: string;
  readonly native_vlan: number;
  readonly trunk_vlans: readonly number[];
  readonly default_vlan: number | null;
}
export interface SwitchWorker {
  /** Rejects with the switch's reason, when the worker ends, and when it takes too long. */
  change(change: DeviceChange, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** A switch that does not answer takes a minute, and changes that wait for it may take several such turns. */
const LIMIT_MS = 300_000;
const MAX_WAITING = 10_000;
const MAX_TEXT = 2000;
const script = (): string => {
  const places = ['.', '../../../wire/switches', '../../../../wire/switches'].map((folder) => join(__dirname, folder, 'worker.py'));
  const found = places.find((path) => existsSync(path));
  if (found === undefined) throw new Error('wire/switches/worker.py is missing');
  return found;
};

interface WorkerAnswer {
  readonly id?: number;
  readonly error?: string;
}
/** A line that is not JSON is not an answer. */
function answerIn(line: string): WorkerAnswer {
  try {
    return JSON.parse(line) as WorkerAnswer;
  } catch {
    return {};
  }
}

interface Running {
  readonly child: ChildProcess;
  readonly waiting: Map<number, { readonly done: () => void; readonly fail: (error: Error) => void }>;
  readonly ended: Promise<void>;
}

/**
 * Starts nothing until the first change; a worker that ended is started again by the next one.
 * @param python the interpreter that has networking-generic-switch
 * @param switches name → configuration of the device
 */
export function createSwitchWorker(python: string, switches: Readonly<Record<string, Readonly<Record<string, string>>>>): SwitchWorker {
  let running: Running | undefined;
  let next = 0;
  const start = (): Running => {
    const child = startProgram('switches', python, ['-u', script()], { stdio: ['pipe', 'pipe', 'pipe'] }) as ChildProcessWithoutNullStreams;
    const waiting: Running['waiting'] = new Map();
    let errors = '';
    child.stderr.on('data', (data: Buffer) => (errors = (errors + data.toString()).slice(-MAX_TEXT)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { id, error } = answerIn(line);
      const one = waiting.get(id ?? -1);
      waiting.delete(id ?? -1);
      if (error === undefined) one?.done();
      else one?.fail(new Error(shortened(error, MAX_TEXT)));
    });
    const ended = new Promise<void>((resolve) => {
      const finish = (why: string): void => {
        if (running?.child === child) running = undefined;
        for (const { fail } of waiting.values()) fail(new Error(`the worker for switches ${why}`));
        waiting.clear();
        resolve();
      };
      child.once('error', (error) => finish(`does not start: ${error.message}`));
      child.once('close', () => finish(`ended: ${errors.trim().split('\n').at(-1) ?? ''}`));
    });
    // A write fails if the process has ended, which the event `close` reports.
    child.stdin.on('error', () => {});
    child.stdin.write(`${JSON.stringify({ switches })}\n`);
    return { child, waiting, ended };
  };
  return {
    change: (change, signal) =>
      new Promise((resolve, reject) => {
        running ??= start();
        const { waiting, child } = running;
        if (waiting.size >= MAX_WAITING) throw new Error(`more than ${MAX_WAITING} changes wait for switches`);
        const id = next++;
        const limit = timeoutSignal(LIMIT_MS, signal);
        const leave = (): void => {
          waiting.delete(id);
          reject(signal.aborted ? (signal.reason as Error) : new Error(`no answer within ${LIMIT_MS / 1000} s`));
        };
        limit.addEventListener('abort', leave, { once: true });
        const end = (finish: () => void) => (): void => {
          limit.removeEventListener('abort', leave);
          finish();
        };
        waiting.set(id, { done: end(resolve), fail: (error) => end(() => reject(error))() });
        if (limit.aborted) leave();
        else child.stdin!.write(`${JSON.stringify({ id, ...change })}\n`);
      }),
    close: async () => {
      const last = running;
      last?.child.kill();
      await last?.ended;
    },
  };
}
