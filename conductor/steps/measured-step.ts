/** Measures how long a step takes, in labels that take few values. */
import type { PlannedStep } from '../../drivers/interfaces';
import { reservedStep, type StepOutcome } from './reserved-steps';
import { findStep, type SavedKind } from './steps';
import type { NodeTask } from '../core/node-task';

/** Names that agents give are not ours to bound. */
const OTHER = 'other';

/** Runs a step, and measures the call: its outcome, or `left` when it ended without one (the conductor stops, the lock was lost). */
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
  let outcome = 'left';
  try {
    const said = await work();
    outcome = said.kind;
    return said;
  } finally {
    metrics.observe('bloomery_step_duration_seconds', { kind, ...name, outcome }, took());
  }
}
