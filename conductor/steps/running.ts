/** Runs a node's saved steps: the position in the list, one step, and the loop over them. */
import { done, failed, type PlannedStep } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import type { NodeChanges } from '../../model/records';
import { recordSteps } from './step-history';
import { measuredStep } from './measured-step';
import { reservedStep, type StepOutcome } from './reserved-steps';
import { findStep, shaped, stepId, type SavedKind } from './steps';
import { setting, type InternalChanges, type InternalKey } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

/** The column of the running step, and the keys of the saved list and position. */
const KEYS = {
  clean: { column: 'clean_step', list: 'clean_steps', index: 'clean_step_index' },
  deploy: { column: 'deploy_step', list: 'deploy_steps', index: 'deploy_step_index' },
  service: { column: 'service_step', list: 'service_steps', index: 'service_step_index' },
} as const satisfies Record<SavedKind, { column: keyof NodeChanges; list: InternalKey; index: InternalKey }>;

interface Position {
  readonly steps: readonly PlannedStep[];
  /** The step that runs, or the next one to run; undefined before the list is made. */
  readonly index: number | undefined;
  readonly running: PlannedStep | undefined;
}
export function positionOf(task: NodeTask, kind: SavedKind): Position {
  const { column, list, index } = KEYS[kind];
  const internal = task.node.driver_internal_info;
  const steps = Array.isArray(internal[list]) ? (internal[list] as PlannedStep[]).map(shaped) : [];
  const running = task.node[column] as unknown as Partial<PlannedStep>;
  return {
    steps,
    index: typeof internal[index] === 'number' ? internal[index] : undefined,
    running: running.step === undefined ? undefined : (running as PlannedStep),
  };
}
/** The list as keys of driver_internal_info; `index` absent: no step has begun. */
export const savedList = (kind: SavedKind, steps: readonly PlannedStep[], index?: number): InternalChanges => ({
  ...setting(KEYS[kind].list, steps),
  ...setting(KEYS[kind].index, index),
});

/** Undefined: neither the driver nor the conductor has the step; the agent may have it. */
function ownStep(task: NodeTask, kind: SavedKind, step: PlannedStep): Promise<StepOutcome> | undefined {
  const own = findStep(task.driver, kind, step) ?? reservedStep(step);
  return own?.run(task, step.args ?? {});
}

/** Runs the step on each child, or on the children that it names, one after the other. Unless an option permits it, no child may wait. */
async function runOnChildren(task: NodeTask, kind: SavedKind, step: PlannedStep): Promise<StepOutcome> {
  const { limit_child_node_execution: only = [] } = step;
  const children = await task.context.store.nodes.listColumns(['uuid'], {
    children: task.node.uuid,
    where: only.length > 0 ? { uuid: only } : undefined,
  });
  for (const { uuid } of children) {
    task.signal.throwIfAborted();
    task.log.info(`${kind} step ${stepId(step)} on child node ${uuid}`);
    const result = await task.withNode(uuid, { purpose: 'execute step', retry: true }, async (child) => {
      const outcome = (await ownStep(child, kind, step)) ?? failed(`node does not support this ${kind} step`);
      return outcome.kind === 'failed' ? outcome.reason : outcome.kind;
    });
    const isAccepted = result === 'wait' && task.context.options['conductor.permit_child_node_step_async_result'];
    if (result !== 'done' && !isAccepted)
      return failed(`While executing step ${stepId(step)} on child node ${uuid}, step returned invalid value: ${result}`);
  }
  return done;
}

/** Runs one step. An error that it throws is its failure. */
async function runStep(task: NodeTask, kind: SavedKind, step: PlannedStep): Promise<StepOutcome> {
  try {
    if (step.execute_on_child_nodes) return await runOnChildren(task, kind, step);
    const own = ownStep(task, kind, step);
    if (own) return await own;
    if (task.driver.deploy.runAgentStep) return await task.driver.deploy.runAgentStep(task, kind, step);
    return failed('neither the driver nor an agent has such a step');
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn(`step ${stepId(step)} threw`, { error });
    return failed(reasonOf(error));
  }
}

/**
 * The loop of cleaning, deployment and servicing. Each step is saved before it runs, and cleared in the write of the next. A saved step
 * runs or ran; an index without a saved step is that of the next step. Ends with `wait`, `hold`, a failure, or `done` after the last step.
 * @param addAgentSteps called when a step reports that the agent runs already: adds the agent's steps to the list, after the running step
 */
export async function runSteps(
  task: NodeTask,
  kind: SavedKind,
  from: number,
  addAgentSteps: (task: NodeTask) => Promise<StepOutcome> = async () => done,
): Promise<StepOutcome> {
  const { column, index } = KEYS[kind];
  for (let at = from; ; at++) {
    task.signal.throwIfAborted();
    // Read again each time: the agent's steps may have been added to the list.
    const { steps } = positionOf(task, kind);
    const step = steps[at];
    if (!step) break;
    await task.write({ [column]: step }, { [index]: at });
    task.log.info(`${kind} step ${stepId(step)} (${at + 1} of ${steps.length})`);
    const outcome = await measuredStep(task, kind, step, () => runStep(task, kind, step));
    if (outcome.kind === 'failed') await recordSteps(task, kind, steps, 'end', step.step);
    if (outcome.kind !== 'done') return outcome;
    if ('agentRunning' in outcome) {
      const added = await addAgentSteps(task);
      if (added.kind !== 'done') return added;
      at = positionOf(task, kind).index ?? at;
    }
    task.note({ [column]: {} }, { [index]: at + 1 });
  }
  // The machine may be powered off next: before that, the row must show that all steps are done. Without steps, the flow may begin again.
  if (positionOf(task, kind).steps.length > 0) await task.write({}, {});
  return done;
}
