/** Settings of the firmware that take effect with a restart: written already, looked at until they are so. */
import { Fault } from '../../model/errors';
import { RedfishError, isStatus } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { redfishFault } from './target';

/**
 * Reboots the machine unless it is so already, waits at most [redfish]boot_mode_config_timeout until it is (0: not at all), and leaves the
 * machine's power as it was.
 * @param seconds between looks
 */
export async function untilSo<T>(
  task: Task,
  seconds: number,
  how: { look(): Promise<T>; readonly wanted: T; late(found: T | undefined): string },
): Promise<void> {
  // A service that is busy with the firmware answers with errors of its own.
  const look = async (): Promise<T | undefined> => {
    try {
      return await how.look();
    } catch (error) {
      const passes = isStatus(error) ? (error.status ?? 0) >= 500 : error instanceof RedfishError && error.kind !== 'closed';
      if (passes) return undefined;
      throw redfishFault(task, error);
    }
  };
  if ((await look()) === how.wanted) return;
  const before = await task.driver.power.get(task);
  await task.power('rebooting');
  const wait = task.options['redfish.boot_mode_config_timeout'];
  const until = task.clock.now() + wait * 1000;
  for (let found = wait === 0 ? how.wanted : await look(); found !== how.wanted; found = await look()) {
    if (task.clock.now() >= until)
      throw new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${how.late(found)}` });
    await task.clock.sleep(seconds * 1000, task.signal);
  }
  if (before === 'power off') await task.power('power off');
}
