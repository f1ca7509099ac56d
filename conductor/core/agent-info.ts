/** When the keys of driver_internal_info about an agent are forgotten. */
import { mayFastTrack } from '../../drivers/agent/fast-track';
import type { Task } from '../../drivers/interfaces';
import { forgottenAt, type InternalChanges } from '../../model/internal-info';
import type { NodeRecord } from '../../model/records';

/** An agent must look the node up again before its heartbeats count. */
export const FORGET_TOKEN_AND_URL = forgottenAt('agent end');
/**
 * `forgotten`, but the token and the URL of an agent that is still needed stay: for the node's power, or for the next flow (fast track).
 * @param node as it is when the flow begins or ends
 */
export function keepAgentIfNeeded(task: Task, forgotten: InternalChanges, node: NodeRecord = task.node): InternalChanges {
  if (!task.driver.power.throughAgent && !mayFastTrack(node, task.options)) return forgotten;
  return Object.fromEntries(Object.entries(forgotten).filter(([key]) => !Object.hasOwn(FORGET_TOKEN_AND_URL, key)));
}
