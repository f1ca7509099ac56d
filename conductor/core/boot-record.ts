/** How the instance of a deployment was booted: said in the node's history, and to listeners of events. */
import type { InstanceBoot } from '../../drivers/interfaces';
import { entryOf } from './history';
import type { NodeTask } from './node-task';
import { forgetAgent } from './power';

export async function recordBoot(task: NodeTask, boot: InstanceBoot): Promise<void> {
  const { context, node } = task;
  const event =
    boot.by === 'kexec'
      ? `The agent started the kernel of the instance by kexec: ${boot.kernel}`
      : `The machine reboots into the instance, without kexec: ${boot.reason}`;
  const entry = entryOf(context, node, { type: 'deployment_boot', event, error: false });
  if (entry) task.note({}, {}, [entry]);
  const { deploy_step_index: done = 0, deploy_steps: steps } = node.driver_internal_info;
  const result = boot.by === 'kexec' ? { result: 'booted by kexec' } : { result: 'rebooted', reason: boot.reason };
  // After a kexec the agent is gone, as after a reboot.
  await task.write({}, boot.by === 'kexec' ? forgetAgent(task) : {}, ({ events }) =>
    events.add(node, 'progress', {
      flow: 'deploy',
      done,
      of: Array.isArray(steps) ? steps.length : 0,
      step: 'deploy.boot_instance',
      ...result,
    }),
  );
}
