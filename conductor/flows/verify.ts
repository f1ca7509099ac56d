/** enroll → manageable: checks that the BMC accepts the node's credentials, and runs the verify steps. */
import { done, failed, type Outcome } from '../../drivers/interfaces';
import { cacheFacts } from './hardware-facts';
import { detectVendor } from '../core/machine-reading';
import { notifyCorrected } from '../core/notify';
import { automatedSteps, findStep, offeredSteps, overrides } from '../steps/steps';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import type { Flow } from './flow';
import { withFailureText, attempt } from '../core/attempt';

async function begin(task: NodeTask): Promise<Outcome> {
  const { uuid } = task.node;
  await withFailureText(
    task,
    (reason) => `Failed to validate power driver interface for node ${uuid}. Error: ${reason}`,
    () => validateInterface(task, 'power'),
  );
  const state = await withFailureText(
    task,
    (reason) => `Failed to get power state for node ${uuid}. Error: ${reason}`,
    () => task.driver.power.get(task),
  );
  const { power_state: known } = task.node;
  if (state !== known) task.note({ power_state: state });
  notifyCorrected(task, known);
  const priorities = overrides(task.context.options['conductor.verify_step_priority_override']);
  const steps = automatedSteps('verify', offeredSteps(task.driver, 'verify'), priorities);
  for (const step of steps) {
    const explain = (reason: string): string => `Node ${uuid} failed verify step ${step.step} with unexpected error: ${reason}`;
    const outcome = await withFailureText(task, explain, () => findStep(task.driver, 'verify', step)!.run(task, {}));
    if (outcome.kind !== 'done') return failed(explain(outcome.kind === 'failed' ? outcome.reason : 'a verify step cannot wait'));
  }
  await detectVendor(task);
  const { bootMode, secureBoot } = task.driver.management;
  if (bootMode) await attempt(task, 'reading the boot mode', async () => task.note({ boot_mode: await bootMode.get(task) }));
  if (secureBoot) await attempt(task, 'reading the secure boot state', async () => task.note({ secure_boot: await secureBoot.get(task) }));
  await cacheFacts(task);
  return done;
}

export const verify: Flow = {
  errorType: 'verify',
  admit: { manage: { check: async () => ({ changes: { last_error: null } }) } },
  begin,
  finish: (task) => task.end('done'),
  fail: (task, reason) => task.end('fail', { last_error: reason }),
};
