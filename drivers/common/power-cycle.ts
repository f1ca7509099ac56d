/** Reboots by power off and on, for BMCs whose own reset may leave the machine off or not reset. */
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';

/** Seconds between reads of the power state. */
const PAUSES = [0.1, 0.2, 0.5, 1, 1, 2] as const;

/** Whether powering off is allowed and possible. */
export const canPowerOff = ({ node, driver }: Task): boolean => !node.disable_power_off && driver.power.supported.includes('power off');

/** Powers the machine off during `work`, such as changes of boot device or network. A machine that must stay on reboots afterwards. */
export async function withPowerCycle(task: Task, work: () => Promise<void>): Promise<void> {
  const off = canPowerOff(task);
  if (off) await task.power('power off');
  await work();
  await task.power(off ? 'power on' : 'rebooting');
}

/** Waits until the machine is off. Throws PowerStateFailure. @param seconds at most */
export async function waitUntilOff(task: Task, seconds: number): Promise<void> {
  const until = task.clock.now() + seconds * 1000;
  for (let reads = 0; (await task.driver.power.get(task)) !== 'power off'; reads++) {
    const pause = (PAUSES[reads] ?? PAUSES.at(-1)!) * 1000;
    if (task.clock.now() + pause > until) throw new Fault('PowerStateFailure', { pstate: 'power off' });
    await task.clock.sleep(pause, task.signal);
  }
}
