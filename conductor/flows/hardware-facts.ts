/** Reads the BIOS settings and the firmware versions of the machine, and saves them. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { validateInterface } from '../core/validate';

/** Runs `work` if the interface is valid. A failure is only logged. */
async function logFailure(task: NodeTask, kind: 'bios' | 'firmware', work: () => Promise<void>): Promise<void> {
  try {
    await validateInterface(task, kind);
    await work();
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    task.log.warn(`the ${kind} of the machine cannot be read`, { reason: reasonOf(error), ...(error instanceof Fault ? {} : { error }) });
  }
}

export async function cacheFirmware(task: NodeTask): Promise<void> {
  const { firmware } = task.driver;
  if (!firmware.components) return;
  await logFailure(task, 'firmware', async () => task.saveFirmwareComponents(await firmware.components!(task)));
}
async function cacheBiosSettings(task: NodeTask): Promise<void> {
  const { bios } = task.driver;
  if (!bios.settings) return;
  await logFailure(task, 'bios', async () => task.saveBiosSettings(await bios.settings!(task)));
}

/** Called after verifying, and before and after cleaning and servicing. */
export async function cacheFacts(task: NodeTask): Promise<void> {
  await cacheBiosSettings(task);
  await cacheFirmware(task);
}
