/** A node that a flow works on, without conductor and database: events and writes go into a list, in order. */
import type { Context } from '../../conductor/core/context';
import type { NodeTask } from '../../conductor/core/node-task';
import type { Options } from '../../config/options';
import type { Driver } from '../../drivers/interfaces';
import { silentNotifier } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import { testTask } from './task';

export interface FlowTask {
  readonly task: NodeTask;
  readonly node: () => NodeRecord;
  /** `event fail`, `record …`, `power: …`, `poll in 5`, … */
  readonly events: string[];
  readonly complaints: readonly string[];
}

export function flowTask({
  contents = {},
  ...given
}: {
  readonly node?: Partial<NodeRecord>;
  readonly options?: Partial<Options>;
  readonly driver?: Partial<Driver>;
  /** Further parts of the context. */
  readonly contents?: Partial<Context>;
} = {}): FlowTask {
  const base = testTask(given);
  const { task: driverTask, events } = base;
  const context = {
    options: driverTask.options,
    random: driverTask.random,
    metrics: driverTask.metrics,
    clock: driverTask.clock,
    signal: new AbortController().signal,
    host: 'here',
    store: { defaultConfigs: { ofNode: async () => [] } },
    notifier: silentNotifier,
    stopPolling: () => void events.push('stop polling'),
    pollLater: (_: string, seconds: number) => void events.push(`poll in ${seconds}`),
    heartbeats: { stepChecked: () => void events.push('step checked') },
    ...contents,
  } as unknown as Context;
  const change = async (changes: Partial<NodeRecord>, internal: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    await driverTask.save(changes);
    await driverTask.saveInternal(internal);
  };
  const fire: NodeTask['fire'] = async (event, changes = {}, internal = {}) => {
    events.push(`event ${event}`);
    await change(changes, internal);
  };
  const own: Partial<NodeTask> = {
    context,
    note: (changes, internal) => void change(changes, internal),
    write: (changes, internal) => change(changes, internal),
    fire,
    end: fire,
    fireWithNext: (event, changes, internal) => void fire(event, changes, internal),
    record: async ({ type, event, error }, changes = {}, internal = {}) => {
      events.push(`record ${type}: ${event}`);
      await change({ ...(error ? { last_error: event } : {}), ...changes }, internal);
    },
    enableDatabaseRetries: () => {},
    discardNotes: async () => void events.push('notes discarded'),
  };
  const task = Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(driverTask), ...Object.getOwnPropertyDescriptors(own) });
  return { task: task as NodeTask, node: base.node, events, complaints: base.complaints };
}
