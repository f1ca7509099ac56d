/** Metrics of flows. Their labels have few values. */
import { type Event, type ProvisionState, stateRow } from '../../model/states';
import type { Context } from './context';

const outcomeOf: Readonly<Partial<Record<Event, string>>> = { fail: 'failed', abort: 'aborted' };

/** A node changed its state: a flow may have ended, and another begun (cleaning after an undeployment). */
export function recordTransitionMetrics(
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
