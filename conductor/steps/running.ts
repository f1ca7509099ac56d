/** Runs a node's saved steps: one step, and the loop over them. */
import { done, failed, type PlannedStep } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { outageOf, outageText } from '../../model/rules/out-of-service';
import { recordSteps } from './step-history';
import { measuredStep } from './measured-step';
import { reservedStep, type StepOutcome } from './reserved-steps';
import { afterFailure, beginning, conditionsOf, limitedWait, skipStep, withinTimeout, type StepProgress } from './step-controls';
import { KEYS, positionOf } from './step-position';
import { findStep, stepId, type SavedKind } from './steps';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

/** Undefined: neither the driver nor the conductor has the step; the agent may have it. */
function ownStep(task: NodeTask, kind: SavedKind, step: PlannedStep): Promise<StepOutcome> | undefined {
  const own = findStep(task.driver, kind, step) ?? reservedStep(step);
  return own?.run(task, step.args ?? {});
}

/** Runs the step on each child, or on the children that it names, one after the other. Unless an option permits it, no child may wait. */
async function runOnChildren(task: NodeTask, kind: SavedKind, step: PlannedStep): Promise<StepOutcome> {
  const { limit_child_node_execution: only = [] } = step;
  const children = await task.context.store.nodes.listColumns(['uuid', 'out_of_service'], {
    children: task.node.uuid,
    where: only.length > 0 ? { uuid: only } : undefined,
  });
  const [held] = children.filter(outageOf);
  // Before any child is touched.
  if (held) return failed(`While executing step ${stepId(step)} on child node ${held.uuid}: ${outageText(outageOf(held)!)}`);
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

/** What flows do in the middle of their list. */
export interface StepHooks {
  /** Called when a step reports that the agent runs already: adds the agent's steps to the list, after the running step. */
  readonly addAgentSteps?: (task: NodeTask) => Promise<StepOutcome>;
  /** Called before each step while the ramdisk is not booted yet. Boots it if the step needs it; undefined: it does not. */
  readonly boot?: (task: NodeTask, step: PlannedStep, at: number) => Promise<StepOutcome | undefined>;
  /** Called right before a step runs. */
  readonly before?: (task: NodeTask, step: PlannedStep) => Promise<void>;
}

/**
 * The loop of cleaning, deployment and servicing. Each step is saved before it runs, and cleared in the write of the next. A saved step
 * runs or ran; an index without a saved step is that of the next step. Ends with `wait`, `hold`, a failure, or `done` after the last step.
 * @param begun of the first step, if it has begun before
 */
export async function runSteps(
  task: NodeTask,
  kind: SavedKind,
  from: number,
  hooks: StepHooks,
  begun?: StepProgress,
): Promise<StepOutcome> {
  const { column, index } = KEYS[kind];
  let progress = begun;
  for (let at = from; ; at++) {
    task.signal.throwIfAborted();
    // Read again each time: the agent's steps may have been added to the list.
    const { steps } = positionOf(task, kind);
    const step = steps[at];
    if (!step) break;
    const condition = progress ? undefined : await conditionsOf(task, step);
    if (condition?.skip !== undefined) {
      await skipStep(task, kind, at, condition.skip);
      task.note({}, { [index]: at + 1 });
      continue;
    }
    const booted = condition ? undefined : await hooks.boot?.(task, step, at);
    if (booted) {
      if (booted.kind !== 'done') return booted;
      at--;
      continue;
    }
    if (step.confirm !== undefined && !progress?.confirmed && !condition) {
      await task.write({ [column]: { ...step, waits_for: 'operator' } }, { [index]: at });
      return { kind: 'hold' };
    }
    const running = { ...step, ...beginning(task, step, progress ?? {}) };
    progress = undefined;
    await task.write({ [column]: running }, { [index]: at });
    task.log.info(`${kind} step ${stepId(step)} (${at + 1} of ${steps.length})`);
    await hooks.before?.(task, step);
    // Another attempt would not evaluate the conditions.
    const isRetried = condition === undefined;
    const ran = condition
      ? failed(condition.failure!)
      : await measuredStep(task, kind, step, () => withinTimeout(task, step, (limited) => runStep(limited, kind, step)));
    const outcome =
      ran.kind === 'failed' ? await afterFailure(task, kind, at, running, ran.reason, isRetried) : limitedWait(task, running, ran);
    if (outcome.kind === 'failed') await recordSteps(task, kind, steps, 'end', step.step);
    if (outcome.kind !== 'done') return outcome;
    if ('agentRunning' in outcome && hooks.addAgentSteps) {
      const added = await hooks.addAgentSteps(task);
      if (added.kind !== 'done') return added;
      at = positionOf(task, kind).index ?? at;
    }
    task.note({ [column]: {} }, { [index]: at + 1 });
  }
  // The machine may be powered off next: before that, the row must show that all steps are done. Without steps, the flow may begin again.
  if (positionOf(task, kind).steps.length > 0) await task.write({}, {});
  return done;
}
