/** Orders to a power interface, composed as the conductor composes them, without the wait for the state at the end. */
import { ORDERS, sendOrder } from '../../conductor/core/power';
import type { Power, PowerInterface, Task } from '../../drivers/interfaces';

export async function setPower(power: PowerInterface, task: Task, target: Power, seconds?: number): Promise<void> {
  const options = task.options;
  const limit = options[ORDERS[target].soft ? 'conductor.soft_power_off_timeout' : 'conductor.power_state_change_timeout'];
  const given = Object.create(task, { driver: { value: { ...task.driver, power } } }) as Task;
  await sendOrder(given, target, seconds ?? limit);
}
