/** Continues a node that waits: its agent sent a heartbeat, its running step is polled, or its hold has ended. */
import type { Outcome } from '../../drivers/interfaces';
import { bareTimestamp, timestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { outageOf } from '../../model/rules/out-of-service';
import { isWaiting, stateRow } from '../../model/states';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { FLOWS } from '../flows';
import type { WakeReason } from '../flows/flow';
import { failFlow } from '../flows/outcome';

/** @param outcome of the running step, when the caller knows it already */
export async function wake(task: NodeTask, why: WakeReason, outcome?: Outcome): Promise<void> {
  const { provision_state: state, maintenance } = task.node;
  const flow = isWaiting(state) ? FLOWS[stateRow(state).flow!] : undefined;
  if (!flow?.waiting) return;
  if (outageOf(task.node)) {
    task.log.debug('the node is out of service: its flow goes on later');
    return;
  }
  if (maintenance) {
    if (task.context.options['conductor.allow_provisioning_in_maintenance'])
      task.log.warn('heartbeat of a node in maintenance mode; not taking any action');
    else await failFlow(task, flow, flow.waiting.inMaintenance);
    return;
  }
  // Most heartbeats find the step still running, so they write only this. A poll must not prolong the wait, unless its outcome says so.
  const now = task.clock.now();
  if (why === 'heartbeat' || why === 'unhold')
    task.note({ provision_updated_at: timestamp(now) }, why === 'heartbeat' ? { agent_last_heartbeat: bareTimestamp(now) } : {});
  try {
    await flow.waiting.wake(task, why, outcome);
  } catch (error) {
    // Without an end here, the node would wait until its time is over, and fail without the reason.
    if (isInterrupted(task.context, error)) throw error;
    task.log.error(`node ${task.node.name ?? task.node.uuid} cannot continue`, { reason: reasonOf(error), error });
    await failFlow(task, flow, reasonOf(error));
  }
}
