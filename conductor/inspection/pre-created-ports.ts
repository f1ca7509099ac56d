/**
 * Creates ports for the MAC addresses that a BMC reports, before the machine boots for inspection. They let the machine boot and identify
 * it.
 */
import { Fault } from '../../model/errors';
import { isMac, newUuid } from '../../model/idents';
import type { NodeTask } from '../core/node-task';

/** Does nothing if the driver cannot read MAC addresses, or if the BMC reports none. Throws what the driver throws. */
export async function preCreatePorts(task: NodeTask): Promise<void> {
  const { store, random, options } = task.context;
  const { management } = task.driver;
  if (!management.macAddresses || !options['inspector.pre_create_ports']) return;
  const found = [...new Set((await management.macAddresses(task)).filter(isMac))];
  if (found.length === 0) task.log.warn('no ports created before inspection: the BMC reports no enabled network interface');
  const taken = new Set((await store.ports.byMacs(found)).map(({ address }) => address));
  const fresh = found.filter((address) => !taken.has(address));
  if (fresh.length === 0) return;
  for (const address of fresh) {
    try {
      await store.ports.create({ uuid: newUuid(random), node_uuid: task.node.uuid, address });
    } catch (error) {
      // Another request created it meanwhile.
      if (!(error instanceof Fault && error.name === 'MACAlreadyExists')) throw error;
    }
  }
  task.log.info('created ports for the MAC addresses that the BMC reports', { addresses: fresh });
  await task.refresh();
}
