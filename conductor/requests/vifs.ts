/** VIFs of a node, which its network interface manages. */
import type { Vif } from '../../model/records';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

export async function listVifs(context: Context, uuid: string): Promise<readonly Vif[]> {
  return withTask(context, uuid, { purpose: 'list vifs', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'network');
    return task.driver.network.vifList(task);
  });
}

/** Throws NodeLocked, VifAlreadyAttached, NoFreePhysicalPorts. */
export async function attachVif(context: Context, uuid: string, vif: Vif): Promise<void> {
  await withTask(context, uuid, { purpose: 'attach vif', retry: true }, async (task) => {
    await validateInterface(task, 'network');
    await task.driver.network.vifAttach(task, vif);
  });
}

/** Throws NodeLocked, VifNotAttached. */
export async function detachVif(context: Context, uuid: string, id: string): Promise<void> {
  await withTask(context, uuid, { purpose: 'detach vif', retry: true }, async (task) => {
    await validateInterface(task, 'network');
    await task.driver.network.vifDetach(task, id);
  });
}
