/** GET /v1/nodes/X/sensors: what the sensors of a machine show now. The client waits for the BMC. */
import type { Context } from '../core/context';
import { readingsOf, type Reading } from '../../drivers/common/sensor-readings';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

/** Returns an empty list if the management interface of the node reads no sensors. */
export async function readSensors(context: Context, uuid: string): Promise<readonly Reading[]> {
  return withTask(context, uuid, { purpose: 'read sensors', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'management');
    const { management } = task.driver;
    return management.sensors ? readingsOf(await management.sensors(task)).readings : [];
  });
}
