/**
 * Tasks of a machine's BMC: records that time, or the machine's next start, brings forward. Nothing runs in between: whoever looks at
 * them lets happen what is due (`settle`).
 */
import { change, type Hardware, type HardwareState } from './hardware';
import type { Component } from './firmware-versions';
import { volumesIn, type VolumeState } from './volumes';

/** What is done at a task's end. */
export type Work =
  | { readonly kind: 'fetch'; readonly url: string }
  | { readonly kind: 'firmware'; readonly component: Component; readonly version: string }
  | { readonly kind: 'make volume'; readonly volume: VolumeState }
  | { readonly kind: 'delete volume'; readonly storage: string; readonly id: string };
export interface TaskRecord {
  /** MACHINE-NUMBER. */
  readonly id: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly started: number;
  /** `new`: the BMC fetches what it needs; `staged`: it waits for the machine's next start. */
  readonly phase: 'new' | 'staged' | 'running' | 'completed' | 'failed';
  readonly work: Work;
  /** Milliseconds that it runs, and when it is over. */
  readonly takes: number;
  readonly ends?: number;
  readonly ended?: number;
  /** Of the message at its end, and the message's arguments. */
  readonly message?: readonly string[];
}
export interface TaskList {
  readonly last: number;
  readonly records: readonly TaskRecord[];
}

/** Records kept; the oldest that are over go. */
const MOST = 32;
const isOver = ({ phase }: TaskRecord): boolean => phase === 'completed' || phase === 'failed';

const DONE: { readonly [kind in Work['kind']]: (state: HardwareState, work: Work & { readonly kind: kind }) => Partial<HardwareState> } = {
  fetch: () => ({}),
  firmware: ({ firmware }, { component, version }) => ({ firmware: { ...firmware, [component]: version } }),
  'make volume': ({ volumes = [] }, { volume }) => ({ volumes: [...volumes, volume] }),
  'delete volume': ({ volumes = [] }, { storage, id }) => ({
    volumes: volumes.filter((volume) => volume.storage !== storage || volume.id !== id),
  }),
};
const doneBy = (state: HardwareState, work: Work): Partial<HardwareState> =>
  (DONE[work.kind] as (state: HardwareState, work: Work) => Partial<HardwareState>)(state, work);

/** Undefined: there are too many. */
export function addTask(hardware: Hardware, machine: string, task: Omit<TaskRecord, 'id'>): TaskRecord | undefined {
  const { last, records } = hardware.state.tasks ?? { last: 0, records: [] };
  const over = records.find(isOver);
  if (records.length >= MOST && !over) return undefined;
  const added: TaskRecord = { ...task, id: `${machine}-${last + 1}` };
  const kept = records.length >= MOST ? records.filter((one) => one !== over) : records;
  change(hardware, { tasks: { last: last + 1, records: [...kept, added] } });
  return added;
}
export const findTask = (hardware: Hardware, id: string): TaskRecord | undefined =>
  hardware.state.tasks?.records.find((one) => one.id === id);
export function changeTask(hardware: Hardware, id: string, changes: Partial<TaskRecord>): void {
  const { last, records } = hardware.state.tasks ?? { last: 0, records: [] };
  change(hardware, { tasks: { last, records: records.map((one) => (one.id === id ? { ...one, ...changes } : one)) } });
}
export function removeTask(hardware: Hardware, id: string): void {
  const { last, records } = hardware.state.tasks ?? { last: 0, records: [] };
  change(hardware, { tasks: { last, records: records.filter((one) => one.id !== id) } });
}
/** From now on it runs. */
export const runTask = (hardware: Hardware, { id, takes }: TaskRecord, now: number): void =>
  changeTask(hardware, id, { phase: 'running', ends: now + takes });

/** At the start of the BMC: what fetched their files has ended with the one before, and its logins are not kept. */
export function abandonFetching(hardware: Hardware, now: number): void {
  for (const { id, name, phase, work } of hardware.state.tasks?.records ?? []) {
    const message = ['Update.TransferFailed', work.kind === 'fetch' ? work.url : name, 'a BMC that was restarted'];
    if (phase === 'new') changeTask(hardware, id, { phase: 'failed', ended: now, message });
  }
}
/** Ends the tasks whose time has come. */
export function settle(hardware: Hardware, now: number): void {
  for (const { id, phase, ends, work } of hardware.state.tasks?.records ?? [])
    if (phase === 'running' && ends! <= now) {
      change(hardware, doneBy(hardware.state, work));
      changeTask(hardware, id, { phase: 'completed', ended: ends! });
    }
}
/** What waited for a start of the machine runs. */
export function startStaged(hardware: Hardware, now: number): void {
  for (const task of hardware.state.tasks?.records ?? []) if (task.phase === 'staged') runTask(hardware, task, now);
}

/** For a volume that is to be made: neither of one that is there nor of one that is on its way. */
export function addedVolumeId(state: HardwareState, storage: string): string {
  const coming = (state.tasks?.records ?? []).flatMap(({ work }) => (work.kind === 'make volume' ? [work.volume] : []));
  const used = new Set([...volumesIn(state, storage), ...coming.filter((volume) => volume.storage === storage)].map(({ id }) => id));
  for (let id = 1; ; id++) if (!used.has(String(id))) return String(id);
}
