/** The history entries of a flow with steps: it starts, it ends, or it stops at a step. */
import { entryOf } from '../core/history';
import { showStep, type SavedKind } from './steps';
import type { HistoryEntry, NodeTask } from '../core/node-task';

/** What the events of a flow of steps are called. */
const STEP_FLOWS = { clean: 'automated_cleaning', deploy: 'deployment', service: 'servicing' } as const satisfies Record<SavedKind, string>;
const flowName = (task: NodeTask, kind: SavedKind): string =>
  kind === 'clean' && task.node.target_provision_state === 'manageable' ? 'manual_cleaning' : STEP_FLOWS[kind];
const title = (name: string): string => name.replace(/(^|_)(\w)/g, (_, gap: string, letter: string) => (gap && ' ') + letter.toUpperCase());
const listed = (steps: readonly object[]): string => `[${steps.map(showStep).join(', ')}]`;

/** Records what became of one step while the list goes on. Written with the next write. */
export function recordStep(task: NodeTask, kind: SavedKind, event: string): void {
  if (!task.context.options['conductor.record_step_flows_in_history']) return;
  const row = entryOf(task.context, task.node, { type: `${flowName(task, kind)}_step`, event, error: false });
  if (row) task.note({}, {}, [row]);
}
/** Records that a flow of steps starts, ends, or stops at a step. Entries without an error are written with the next write. */
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
  const happened = what === 'start' ? `Starting ${name.replace('_', ' ')}` : `${title(name)} ${how}`;
  const entry: HistoryEntry = { type: `${name}_${what}`, event: `${happened} with steps=${listed(steps)}`, error: brokeAt !== undefined };
  if (entry.error) return task.record(entry);
  const row = entryOf(task.context, task.node, entry);
  if (row) task.note({}, {}, [row]);
}
