/** PUT …/states/power. */
import { ORDERS, canOrder, changePower } from '../core/power';
import type { Power } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import type { Context } from '../core/context';
import { startTask } from '../core/task';
import { isInterrupted } from '../core/interruption';
import { validateInterface } from '../core/validate';

/** Checks the request; the change continues after the response. Throws InvalidParameterValue, PowerStateFailure, NodeLocked. */
export async function setPower(context: Context, uuid: string, target: string, seconds?: number): Promise<void> {
  if (!Object.hasOwn(ORDERS, target)) {
    const { provision_state: state } = await context.store.nodes.find(uuid);
    throw new Fault('InvalidStateRequested', { action: target, node: uuid, state });
  }
  const power = target as Power;
  const { ends } = ORDERS[power];
  await startTask(context, uuid, { purpose: 'changing node power state', retry: true }, async (task) => {
    await validateInterface(task, 'power');
    if (!canOrder(task.driver.power, power))
      throw new Fault('InvalidParameterValue', {
        message: `The driver ${task.node.driver} does not support the power state, ${target}`,
      });
    if (ends === 'power off' && task.node.disable_power_off) throw new Fault('PowerStateFailure', { pstate: target });
    await task.save({ target_power_state: ends, last_error: null });
    return async () => {
      // `changePower` has stored the reason of a failure in `last_error` already.
      await changePower(task, power, seconds).catch((error: unknown) => {
        if (isInterrupted(context, error)) throw error;
        task.log.warn(`power: ${target} failed`, { reason: reasonOf(error) });
      });
    };
  });
}
