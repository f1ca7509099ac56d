/** Power of machines without a BMC. The agent can restart the machine, and its heartbeats show that it is on. Nothing else is possible. */
import { Fault } from '../../model/errors';
import { withAgent } from './client';
import { agentIsAlive, fastTracked } from './fast-track';
import type { PowerInterface, Task } from '../interfaces';

const alive = ({ node, options, clock }: Task): boolean => agentIsAlive(node, options, clock.now());

async function restart(task: Task): Promise<void> {
  await withAgent(task, (agent) => agent.command('standby.run_image', {}));
}

export const agentPower: PowerInterface = {
  throughAgent: true,
  rebootsByReset: true,
  validate: async (task) => {
    const refuse = (message: string) => new Fault('InvalidParameterValue', { message });
    if (!fastTracked(task.node, task.options)) throw refuse('Fast track mode must be enabled to use the agent power interface');
    if (!alive(task)) throw refuse(`Agent seems offline for node ${task.node.uuid}, the agent power interface cannot be used`);
  },
  get: async (task) => (alive(task) ? 'power on' : null),
  reset: restart,
  softReset: async (task) => {
    await restart(task);
    return true;
  },
};
