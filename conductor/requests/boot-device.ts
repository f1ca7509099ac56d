/** GET and PUT …/management/boot_device. The client waits for the BMC. */
import { Fault } from '../../model/errors';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

export async function getBootDevice(
  context: Context,
  uuid: string,
): Promise<{ readonly boot_device: string | null; readonly persistent: boolean | null }> {
  return withTask(context, uuid, { purpose: 'get boot device', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'management');
    const { device, persistent } = await task.driver.management.getBootDevice(task);
    return { boot_device: device, persistent };
  });
}

/** Throws InvalidParameterValue for a device that the machine cannot boot from. */
export async function setBootDevice(context: Context, uuid: string, device: string, persistent: boolean): Promise<void> {
  await withTask(context, uuid, { purpose: 'setting boot device', retry: true }, async (task) => {
    await validateInterface(task, 'management');
    if (!task.driver.management.bootDevices.includes(device))
      throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
    await task.driver.management.setBootDevice(task, device, persistent);
  });
}

export async function supportedBootDevices(context: Context, uuid: string): Promise<readonly string[]> {
  return withTask(context, uuid, { purpose: 'supported boot devices', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'management');
    return task.driver.management.bootDevices;
  });
}
