/** Power of machines without a BMC: the agent in them can start them anew, and that it speaks shows that they are on. No more can be done. */
import { Fault } from '../../model/errors';
import { withAgent } from './client';
import { agentIsAlive, fastTracked } from './fast-track';
import type { PowerInterface, Task } from '../interfaces';

const alive = ({ node, options, clock }: Task): boolean => agentIsAlive(node, options, clock.now());

export const agentPower: PowerInterface = {
  throughAgent: true,
  supported: ['rebooting', 'soft rebooting'],
  validate: async (task) => {
    const refuse = (message: string) => new Fault('InvalidParameterValue', { message });
    if (!fastTracked(task.node, task.options)) throw refuse('Fast track mode must be enabled to use the agent power interface');
    if (!alive(task)) throw refuse(`Agent seems offline for node ${task.node.uuid}, the agent power interface cannot be used`);
  },
  get: async (task) => (alive(task) ? 'power on' : null),
  set: async (task, state) => {
    if (!agentPower.supported.includes(state)) throw new Fault('PowerStateFailure', { pstate: state });
    await withAgent(task, (agent) => agent.command('standby.run_image', {}));
  },
};
