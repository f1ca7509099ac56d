/** Measures how long a step takes. The metric's labels have few values. */
import type { PlannedStep } from '../../drivers/interfaces';
import { reservedStep, type StepOutcome } from './reserved-steps';
import { findStep, type SavedKind } from './steps';
import type { NodeTask } from '../core/node-task';

/** Replaces the names of an agent's steps, whose number is unlimited. */
const OTHER = 'other';

/** Runs a step, and measures the call: its outcome, or `aborted` when it ended without one (the conductor stops, the lock was lost). */
export async function measuredStep(
  task: NodeTask,
  kind: SavedKind,
  step: PlannedStep,
  work: () => Promise<StepOutcome>,
): Promise<StepOutcome> {
  const { metrics } = task.context;
  const isOurs = findStep(task.driver, kind, step) ?? reservedStep(step);
  const name = isOurs ? { interface: step.interface, step: step.step } : { interface: OTHER, step: OTHER };
  const took = metrics.timer();
  let outcome = 'aborted';
  try {
    const result = await work();
    outcome = result.kind;
    return result;
  } finally {
    metrics.observe('bloomery_step_duration_seconds', { kind, ...name, outcome }, took());
  }
}
