/** What the machine says of itself (settings of its BIOS, firmware): when it is asked for that. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeTask } from './node-task';
import { isInterrupted } from './interruption';
import { validateInterface } from './validate';

/** Nothing fails because of it. */
async function unlessRefused(task: NodeTask, kind: 'bios' | 'firmware', work: () => Promise<void>): Promise<void> {
  try {
    await validateInterface(task, kind);
    await work();
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    task.log.warn(`the ${kind} of the machine is not known`, { reason: reasonOf(error), ...(error instanceof Fault ? {} : { error }) });
  }
}

export async function cacheFirmware(task: NodeTask): Promise<void> {
  const { firmware } = task.driver;
  if (!firmware.components) return;
  await unlessRefused(task, 'firmware', async () => task.saveFirmwareComponents(await firmware.components!(task)));
}
async function cacheBiosSettings(task: NodeTask): Promise<void> {
  const { bios } = task.driver;
  if (!bios.settings) return;
  await unlessRefused(task, 'bios', async () => task.saveBiosSettings(await bios.settings!(task)));
}

/** After verifying, and before and after cleaning and servicing. */
export async function cacheFacts(task: NodeTask): Promise<void> {
  await cacheBiosSettings(task);
  await cacheFirmware(task);
}
