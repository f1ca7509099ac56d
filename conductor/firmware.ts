/** When the machine's firmware is asked for. */
import { Fault, reasonOf } from '../model/errors';
import { mustLeave, type Held } from './task';
import { validateInterface } from './validate';

/** Asks the machine, at the moments when it is known to be there. Nothing fails because of it. */
export async function cacheFirmware(task: Held): Promise<void> {
  const { firmware } = task.driver;
  if (!firmware.components) return;
  try {
    await validateInterface(task, 'firmware');
    await task.saveFirmwareComponents(await firmware.components(task));
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    task.log.warn('the firmware of the machine is not known', { reason: reasonOf(error), ...(error instanceof Fault ? {} : { error }) });
  }
}
