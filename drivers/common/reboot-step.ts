/** Steps that the machine carries out while it starts: the reboot, and the agent's return. */
import type { InternalKey } from '../../model/internal-info';
import type { Task } from '../interfaces';

/** driver_internal_info: this flow runs without the agent. A deployment always has it. */
const RAMDISK_DISABLED: Partial<Record<string, InternalKey>> = {
  cleaning: 'cleaning_disable_ramdisk',
  'clean wait': 'cleaning_disable_ramdisk',
  servicing: 'service_disable_ramdisk',
  'service wait': 'service_disable_ramdisk',
};

/** Whether the node's current flow uses the agent. */
export function hasAgent({ driver, node }: Task): boolean {
  const key = RAMDISK_DISABLED[node.provision_state];
  return driver.deploy.agentSteps !== undefined && !(key !== undefined && node.driver_internal_info[key] === true);
}
/** Whether the flow may continue: a reboot removes `agent_url`, and the agent's first heartbeat sets it again. */
export const isAgentBack = (task: Task): boolean => !hasAgent(task) || typeof task.node.driver_internal_info['agent_url'] === 'string';

/** Reboots, into the ramdisk where the flow uses it. */
export async function rebootForStep(task: Task): Promise<void> {
  if (hasAgent(task)) await task.driver.boot.prepareRamdisk(task, {});
  await task.power('rebooting');
}
