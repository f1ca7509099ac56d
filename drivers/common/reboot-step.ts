/** Steps whose work the machine does while it starts: rebooting it, and whether the agent that was there before is back. */
import type { Task } from '../interfaces';

/** driver_internal_info: the flow does without the agent's system. A deployment never does. */
const WITHOUT: Partial<Record<string, string>> = {
  cleaning: 'cleaning_disable_ramdisk',
  'clean wait': 'cleaning_disable_ramdisk',
  servicing: 'service_disable_ramdisk',
  'service wait': 'service_disable_ramdisk',
};

/** Whether an agent serves the flow that the node is in. */
export function hasAgent({ driver, node }: Task): boolean {
  const key = WITHOUT[node.provision_state];
  return driver.deploy.agentSteps !== undefined && !(key !== undefined && node.driver_internal_info[key] === true);
}
/** Whether the flow can go on as far as the agent is concerned: a reboot forgets its URL, and its first heartbeat brings it back. */
export const isAgentBack = (task: Task): boolean => !hasAgent(task) || typeof task.node.driver_internal_info['agent_url'] === 'string';

/** Back into the agent's system, where the flow has one. */
export async function rebootForStep(task: Task): Promise<void> {
  if (hasAgent(task)) await task.driver.boot.prepareRamdisk(task, {});
  await task.power('rebooting');
}
