/** Changes to a machine that is off while they are made. */
import type { Task } from '../interfaces';

/** Whether powering off is allowed and possible. */
export const canPowerOff = ({ node, driver }: Task): boolean => !node.disable_power_off && driver.power.off !== undefined;

/** Powers the machine off during `work`, such as changes of boot device or network. A machine that must stay on reboots afterwards. */
export async function withPowerCycle(task: Task, work: () => Promise<void>): Promise<void> {
  const off = canPowerOff(task);
  if (off) await task.power('power off');
  await work();
  await task.power(off ? 'power on' : 'rebooting');
}
