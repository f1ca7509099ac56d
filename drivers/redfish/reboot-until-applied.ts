/** Waits until a firmware setting, already written, has taken effect by a restart. */
import { waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import { RedfishError, isStatus } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { redfishFault } from './target';

/**
 * Reboots the machine unless the setting holds already. Waits at most [redfish]boot_mode_config_timeout (0: not at all) until it holds.
 * Leaves the machine's power as it was.
 * @param seconds between reads
 */
export async function rebootUntilApplied<T>(
  task: Task,
  seconds: number,
  setting: { read(): Promise<T>; readonly target: T; timeoutMessage(current: T | undefined): string },
): Promise<void> {
  // A service that is busy with the firmware returns errors: undefined then.
  const read = async (): Promise<T | undefined> => {
    try {
      return await setting.read();
    } catch (error) {
      const passes = isStatus(error) ? (error.status ?? 0) >= 500 : error instanceof RedfishError && error.kind !== 'closed';
      if (passes) return undefined;
      throw redfishFault(task, error);
    }
  };
  if ((await read()) === setting.target) return;
  const before = await task.driver.power.get(task);
  await task.power('rebooting');
  const wait = task.options['redfish.boot_mode_config_timeout'];
  const until = task.clock.now() + wait * 1000;
  let current: T | undefined;
  const isApplied = async (): Promise<boolean> => (current = await read()) === setting.target;
  const pauseAfter = (): number | undefined => (task.clock.now() < until ? seconds * 1000 : undefined);
  if (wait !== 0 && !(await waitUntil(task, isApplied, pauseAfter)))
    throw new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${setting.timeoutMessage(current)}` });
  if (before === 'power off') await task.power('power off');
}
