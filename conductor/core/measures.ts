/** What the conductor measures of steps and flows, in labels that take few values. */
import type { PlannedStep } from '../../drivers/interfaces';
import type { Event, ProvisionState } from '../../model/states';
import { stateRow } from '../../model/states';
import type { Context } from './context';
import { reservedStep, type StepOutcome } from '../steps/reserved-steps';
import { findStep, type SavedKind } from '../steps/steps';
import type { NodeTask } from './task';

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

/** When the flow of each node began, as far as it began in this process. */
export type FlowStarts = Map<string, number>;
const outcomeOf: Readonly<Partial<Record<Event, string>>> = { fail: 'failed', abort: 'aborted' };

/** A node moved: a flow may have ended with that, and another begun (cleaning behind an undeployment). */
export function measureMove(
  { metrics, clock, flowStarts }: Context,
  uuid: string,
  from: ProvisionState,
  event: Event,
  to: ProvisionState,
): void {
  const [before, after] = [stateRow(from).flow, stateRow(to).flow];
  if (before === after) return;
  const began = flowStarts.get(uuid);
  flowStarts.delete(uuid);
  if (before !== undefined) {
    const labels = { flow: before, outcome: outcomeOf[event] ?? 'done' };
    metrics.count('bloomery_flows_total', labels);
    if (began !== undefined) metrics.observe('bloomery_flow_duration_seconds', labels, Math.max(0, clock.now() - began) / 1000);
  }
  if (after !== undefined) flowStarts.set(uuid, clock.now());
}
