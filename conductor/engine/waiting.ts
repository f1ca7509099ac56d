/** Continues a node that waits: its agent sent a heartbeat, its running step is polled, or its hold has ended. */
import type { Outcome } from '../../drivers/interfaces';
import { bareTimestamp, timestamp } from '../../model/clock';
import { isWaiting, stateRow } from '../../model/states';
import type { NodeTask } from '../core/node-task';
import { FLOWS } from '../flows';
import type { WakeReason } from '../flows/flow';

/** @param outcome of the running step, when the caller knows it already */
export async function wake(task: NodeTask, why: WakeReason, outcome?: Outcome): Promise<void> {
  const { provision_state: state, maintenance } = task.node;
  const flow = isWaiting(state) ? FLOWS[stateRow(state).flow!] : undefined;
  if (!flow?.waiting) return;
  if (maintenance) {
    if (task.context.options['conductor.allow_provisioning_in_maintenance'])
      task.log.warn('heartbeat of a node in maintenance mode; not taking any action');
    else await flow.fail(task, flow.waiting.inMaintenance);
    return;
  }
  // Most heartbeats find the step still running, so they write only this. A poll must not prolong the wait, unless its outcome says so.
  const now = task.clock.now();
  if (why === 'heartbeat' || why === 'unhold')
    task.note({ provision_updated_at: timestamp(now) }, why === 'heartbeat' ? { agent_last_heartbeat: bareTimestamp(now) } : {});
  await flow.waiting.wake(task, why, outcome);
}
