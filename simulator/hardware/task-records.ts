/**
 * Tasks of a machine's BMC. A task ends after a time, or begins at the machine's next start. No timer runs for it. Instead, each reader
 * first calls `settleTasks`, which ends the tasks that are due.
 */
import { FIRMWARE, type Component } from './firmware-versions';
import { hardwarePart, type Hardware } from './hardware';
import { VOLUMES, volumesIn, type Volume } from './volumes';

/** What a task does at its end. */
export type TaskWork =
  | { readonly kind: 'fetch'; readonly url: string }
  | { readonly kind: 'firmware'; readonly component: Component; readonly version: string }
  | { readonly kind: 'make volume'; readonly volume: Volume }
  | { readonly kind: 'delete volume'; readonly storage: string; readonly id: string }
  /** The request, or the start of the machine, has done it already. */
  | { readonly kind: 'done'; readonly what: string };
export interface TaskRecord {
  /** MACHINE-NUMBER. */
  readonly id: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly started: number;
  /** `new`: the BMC fetches a file; `staged`: the task waits for the machine's next start. */
  readonly phase: 'new' | 'staged' | 'running' | 'completed' | 'failed';
  readonly work: TaskWork;
  /** The task's duration in milliseconds. */
  readonly takes: number;
  /** Milliseconds since the epoch: when a running task is due to end. */
  readonly ends?: number;
  readonly ended?: number;
  /** The message at its end, and the message's arguments. */
  readonly message?: readonly string[];
}
interface TaskList {
  /** Number of the newest task. */
  readonly last: number;
  readonly records: readonly TaskRecord[];
}
const TASKS = hardwarePart<TaskList>('tasks', { last: 0, records: [] });

/** In a full list a new task displaces the oldest one that is over. */
const MAX_TASKS = 32;
export const isTaskOver = ({ phase }: TaskRecord): boolean => phase === 'completed' || phase === 'failed';

type WorkOf<Kind extends TaskWork['kind']> = TaskWork & { readonly kind: Kind };
const FINISH: { readonly [Kind in TaskWork['kind']]: (hardware: Hardware, work: WorkOf<Kind>) => void } = {
  fetch: () => {},
  done: () => {},
  firmware: (hardware, { component, version }) => hardware.set(FIRMWARE, { ...hardware.get(FIRMWARE), [component]: version }),
  'make volume': (hardware, { volume }) => hardware.set(VOLUMES, [...hardware.get(VOLUMES), volume]),
  'delete volume': (hardware, { storage, id }) =>
    hardware.set(
      VOLUMES,
      hardware.get(VOLUMES).filter((volume) => volume.storage !== storage || volume.id !== id),
    ),
};
const finish = (hardware: Hardware, work: TaskWork): void =>
  (FINISH[work.kind] as (hardware: Hardware, work: TaskWork) => void)(hardware, work);

/** Undefined: the list is full of tasks that are not over. */
export function addTask(hardware: Hardware, machine: string, task: Omit<TaskRecord, 'id'>): TaskRecord | undefined {
  const { last, records } = hardware.get(TASKS);
  const full = records.length >= MAX_TASKS;
  const oldest = records.find(isTaskOver);
  if (full && !oldest) return undefined;
  const added: TaskRecord = { ...task, id: `${machine}-${last + 1}` };
  const others = full ? records.filter((record) => record !== oldest) : records;
  hardware.set(TASKS, { last: last + 1, records: [...others, added] });
  return added;
}
export const tasksOf = (hardware: Hardware): readonly TaskRecord[] => hardware.get(TASKS).records;
export const findTask = (hardware: Hardware, id: string): TaskRecord | undefined =>
  tasksOf(hardware).find((candidate) => candidate.id === id);
export function changeTask(hardware: Hardware, id: string, changes: Partial<TaskRecord>): void {
  const { last, records } = hardware.get(TASKS);
  hardware.set(TASKS, { last, records: records.map((record) => (record.id === id ? { ...record, ...changes } : record)) });
}
export function removeTask(hardware: Hardware, id: string): void {
  const { last, records } = hardware.get(TASKS);
  hardware.set(TASKS, { last, records: records.filter((record) => record.id !== id) });
}
export const runTask = (hardware: Hardware, { id, takes }: TaskRecord, now: number): void =>
  changeTask(hardware, id, { phase: 'running', ends: now + takes });

/** Called when the simulator starts: fails the downloads of the previous run, whose credentials are not stored. */
export function failDownloads(hardware: Hardware, now: number): void {
  for (const { id, name, phase, work } of tasksOf(hardware)) {
    const message = ['Update.TransferFailed', work.kind === 'fetch' ? work.url : name, 'a BMC that was restarted'];
    if (phase === 'new') changeTask(hardware, id, { phase: 'failed', ended: now, message });
  }
}
/** Ends the tasks that are due. */
export function settleTasks(hardware: Hardware, now: number): void {
  for (const { id, phase, ends, work } of tasksOf(hardware))
    if (phase === 'running' && ends! <= now) {
      finish(hardware, work);
      changeTask(hardware, id, { phase: 'completed', ended: ends! });
    }
}
/** Called at a start of the machine: runs the tasks that waited for it. */
export function startStagedTasks(hardware: Hardware, now: number): void {
  for (const task of tasksOf(hardware)) if (task.phase === 'staged') runTask(hardware, task, now);
}

/** An identifier that neither a volume nor a task to make a volume uses. */
export function freeVolumeId(hardware: Hardware, storage: string): string {
  const planned = tasksOf(hardware).flatMap(({ work }) => (work.kind === 'make volume' ? [work.volume] : []));
  const used = new Set([...volumesIn(hardware, storage), ...planned.filter((volume) => volume.storage === storage)].map(({ id }) => id));
  for (let id = 1; ; id++) if (!used.has(String(id))) return String(id);
}
