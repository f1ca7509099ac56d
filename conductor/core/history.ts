/** What happened to a node, and why: entries that outlive `last_error`. */
import { timestamp } from '../../model/clock';
import { newUuid } from '../../model/idents';
import { maskSecrets } from '../../model/masks';
import type { HistoryRecord, NewOf, NodeRecord } from '../../model/records';
import { stateRow, type FlowName } from '../../model/states';
import type { Context } from './context';
import { showStep, type SavedKind } from '../steps/steps';
import type { NodeTask } from './task';

export interface Said {
  /** What was going on, in Ironic's words. */
  readonly type: string;
  readonly event: string;
  /** It is the node's `last_error` too. */
  readonly error: boolean;
}
/** Flow → the type of its errors. */
const ERRORS: Readonly<Record<FlowName, string>> = {
  verify: 'verify',
  inspect: 'introspection',
  deploy: 'deploying',
  undeploy: 'unprovision',
  clean: 'cleaning',
  service: 'servicing',
  rescue: 'rescue',
  unrescue: 'rescue',
  adopt: 'adoption',
};
/** What failed is told in the words of the flow that owns the node's state. */
export const failureOf = ({ provision_state: state }: NodeRecord, event: string): Said => ({
  type: ERRORS[stateRow(state).flow ?? 'deploy'],
  event,
  error: true,
});

const MAX_EVENT = 65_535;
/** The entry, with the state in which it happened; undefined: no history is kept. */
export function entryOf(context: Context, node: NodeRecord, { type, event, error }: Said): NewOf<HistoryRecord, 'node_uuid'> | undefined {
  if (!context.options['conductor.node_history']) return undefined;
  const since = node.provision_updated_at;
  return {
    uuid: newUuid(context.random),
    node_uuid: node.uuid,
    conductor: context.host,
    user: context.origin?.user ?? null,
    event_type: type,
    severity: error ? 'ERROR' : 'INFO',
    event: event.slice(0, MAX_EVENT),
    state: node.provision_state,
    target_provision_state: node.target_provision_state,
    duration_seconds: since === null ? null : Math.floor((context.clock.now() - Date.parse(since)) / 1000),
  };
}

/** What the events of a flow of steps are called. */
const STEP_FLOWS = { clean: 'automated_cleaning', deploy: 'deployment', service: 'servicing' } as const satisfies Record<SavedKind, string>;
const flowName = (task: NodeTask, kind: SavedKind): string =>
  kind === 'clean' && task.node.target_provision_state === 'manageable' ? 'manual_cleaning' : STEP_FLOWS[kind];
const title = (name: string): string => name.replace(/(^|_)(\w)/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase());
const listed = (steps: readonly object[]): string =>
  `[${steps.map((step) => showStep('args' in step ? { ...step, args: maskSecrets(step.args as Record<string, unknown>) } : step)).join(', ')}]`;

/** A flow of steps begins, ends, or breaks off at a step. What went well is told with the next write. */
export async function recordSteps(
  task: NodeTask,
  kind: SavedKind,
  steps: readonly object[],
  what: 'start' | 'end',
  brokeAt?: string,
): Promise<void> {
  if (!task.context.options['conductor.record_step_flows_in_history']) return;
  const name = flowName(task, kind);
  const how = brokeAt === undefined ? 'completed successfully' : `aborted at step '${brokeAt}'`;
  const event = what === 'start' ? `Starting ${name.replace('_', ' ')}` : `${title(name)} ${how}`;
  const said: Said = { type: `${name}_${what}`, event: `${event} with steps=${listed(steps)}`, error: brokeAt !== undefined };
  if (said.error) return task.record(said);
  const entry = entryOf(task.context, task.node, said);
  if (entry) task.note({}, {}, [entry]);
}

/** Keeps so many entries a node (those younger than the option's days are not counted), as many deletions as one batch has. */
export async function trimHistory({ options, clock, store, log }: Context): Promise<void> {
  const days = options['conductor.node_history_minimum_days'];
  const gone = await store.history.trim({
    keep: options['conductor.node_history_max_entries'],
    before: timestamp(clock.now() - days * 86_400_000),
    atMost: options['conductor.node_history_cleanup_batch_count'],
  });
  if (gone > 0) log.info(`${gone} entries of node history were removed`);
}
