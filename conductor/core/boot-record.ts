/** How a machine was booted where a kexec was asked for: said in the node's history, and to listeners of events. */
import type { RecordedBoot } from '../../drivers/interfaces';
import { stateRow } from '../../model/states';
import { entryOf } from './history';
import type { NodeTask } from './node-task';
import { forgetAgent } from './power';

interface Words {
  /** The type of the entry in the node's history. */
  readonly type: string;
  /** In the event of progress. */
  readonly step: string;
  readonly kexec: (kernel: string) => string;
  readonly reboot: (reason: string) => string;
}
const WORDS: Readonly<Record<RecordedBoot['of'], Words>> = {
  instance: {
    type: 'deployment_boot',
    step: 'deploy.boot_instance',
    kexec: (kernel) => `The agent started the kernel of the instance by kexec: ${kernel}`,
    reboot: (reason) => `The machine reboots into the instance, without kexec: ${reason}`,
  },
  ramdisk: {
    type: 'ramdisk_boot',
    step: 'ramdisk',
    kexec: (kernel) => `The agent in the instance started the ramdisk by kexec: ${kernel}`,
    reboot: (reason) => `The machine reboots into the ramdisk, without kexec: ${reason}`,
  },
};

export async function recordBoot(task: NodeTask, boot: RecordedBoot): Promise<void> {
  const { context, node } = task;
  const { type, step, kexec, reboot } = WORDS[boot.of];
  const event = boot.by === 'kexec' ? kexec(boot.kernel) : reboot(boot.reason);
  const entry = entryOf(context, node, { type, event, error: false });
  if (entry) task.note({}, {}, [entry]);
  const { deploy_step_index: done = 0, deploy_steps: steps } = boot.of === 'instance' ? node.driver_internal_info : {};
  const result = boot.by === 'kexec' ? { result: 'booted by kexec' } : { result: 'rebooted', reason: boot.reason };
  // After a kexec the agent is gone, as after a reboot.
  await task.write({}, boot.by === 'kexec' ? forgetAgent(task) : {}, ({ events }) =>
    events.add(node, 'progress', {
      flow: stateRow(node.provision_state).flow ?? 'deploy',
      done,
      of: Array.isArray(steps) ? steps.length : 0,
      step,
      ...result,
    }),
  );
}
