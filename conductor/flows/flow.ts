/** What the flows have in common: how the outcome of their work becomes an event. Drivers never move a node; this file does. */
import { Fault, reasonOf } from '../../model/errors';
import { positionOf } from '../steps/running';
import type { StepOutcome } from '../steps/reserved-steps';
import { showStep, stepId, type SavedKind } from '../steps/steps';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { Explained, attempt } from '../core/attempt';

export interface Flow {
  /** All work was done: puts the node to rest and fires the event that ends the flow. What it throws fails the flow. */
  finish(task: NodeTask): Promise<void>;
  /** Cleans up as far as it goes, and fires `fail` with the reason as `last_error`. */
  fail(task: NodeTask, reason: string, how?: { readonly late: true }): Promise<void>;
}

/** A flow whose work is a list of steps. */
export interface SteppedFlow extends Flow {
  readonly kind: SavedKind;
  /** What stands before the reason when the agent's steps cannot be had. */
  readonly cannotLoad: string;
  /** Runs the saved list from this position on. */
  proceed(task: NodeTask, from: number): Promise<StepOutcome>;
  /** The reason of a failure, with the step that failed. */
  stepFailure(task: NodeTask, reason: string): string;
  /** After an abort, which the state shows already. */
  afterAbort(task: NodeTask): Promise<void>;
}

/** `last_error` of an operation that was aborted. */
export function aborted(task: NodeTask, kind: SavedKind): string {
  const { running } = positionOf(task, kind);
  const during = running ? ` during or after the completion of step "${stepId(running)}"` : '';
  return `By request, the ${kind} operation was aborted${during}`;
}

/** The sentence of a step of manual cleaning or servicing that failed; a driver's own may name the step already. */
export function manualStepFailure(task: NodeTask, kind: SavedKind, reason: string): string {
  const { running } = positionOf(task, kind);
  return running && !reason.includes(stepId(running)) ? `Node ${task.node.uuid} failed step ${showStep(running)}: ${reason}` : reason;
}

/** What the operator wants of machines whose flow failed; what cannot be off stays as it is. */
export async function powerOffAfter(
  task: NodeTask,
  option: `conductor.poweroff_in_${'clean' | 'service'}fail` | 'deploy.power_off_after_deploy_failure',
): Promise<void> {
  if (task.context.options[option] && !task.node.disable_power_off)
    await attempt(task, 'powering off after a failure', () => task.power('power off'));
}

/** The only place where an outcome becomes an event. */
export async function applyOutcome(task: NodeTask, flow: Flow, work: () => Promise<StepOutcome>): Promise<void> {
  let reason: string;
  try {
    const outcome = await work();
    if (outcome.kind === 'failed') ({ reason } = outcome);
    else {
      await {
        done: () => flow.finish(task),
        hold: () => task.fire('hold'),
        wait: () => startWaiting(task, 'pollEvery' in outcome ? outcome.pollEvery : undefined),
      }[outcome.kind]();
      return;
    }
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault || error instanceof Explained)) task.log.error('a flow ended unexpectedly', { error });
    reason = reasonOf(error);
  }
  await flow.fail(task, reason);
}

async function startWaiting(task: NodeTask, pollEvery: number | undefined): Promise<void> {
  await task.fire('wait', {}, { step_poll_every: pollEvery });
  if (pollEvery !== undefined) task.context.askLater(task.node.uuid, pollEvery);
}
