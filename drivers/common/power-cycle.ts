/** A reboot by switching off and on, for BMCs whose own reset cannot be trusted to leave the machine on and reset. */
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';

/** Seconds between looks at the power state. */
const LOOKS = [0.1, 0.2, 0.5, 1, 1, 2] as const;

/** Whether it is allowed, and possible, to switch the machine off. */
export const canBeOff = ({ node, driver }: Task): boolean => !node.disable_power_off && driver.power.supported.includes('power off');

/** The machine is off while `work` changes what it boots or where it is plugged in, and then on; where it cannot be off it is rebooted at the end. */
export async function restarted(task: Task, work: () => Promise<void>): Promise<void> {
  const off = canBeOff(task);
  if (off) await task.power('power off');
  await work();
  await task.power(off ? 'power on' : 'rebooting');
}

/** Waits until the machine is off. Throws PowerStateFailure. @param seconds at most */
export async function untilOff(task: Task, seconds: number): Promise<void> {
  const until = task.clock.now() + seconds * 1000;
  for (let look = 0; (await task.driver.power.get(task)) !== 'power off'; look++) {
    const pause = (LOOKS[look] ?? LOOKS.at(-1)!) * 1000;
    if (task.clock.now() + pause > until) throw new Fault('PowerStateFailure', { pstate: 'power off' });
    await task.clock.sleep(pause, task.signal);
  }
}
