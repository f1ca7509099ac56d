/** Ports of the MAC addresses that a BMC knows, made before the machine boots for its inspection: by them it is known and let boot. */
import { Fault } from '../../model/errors';
import { isMac, newUuid } from '../../model/idents';
import type { NodeTask } from '../core/node-task';

/** Throws what the BMC's answer throws. A machine whose BMC cannot be asked, or knows of none, keeps the ports that it has. */
export async function preCreatePorts(task: NodeTask): Promise<void> {
  const { store, random, options } = task.context;
  const { management } = task.driver;
  if (!management.macAddresses || !options['inspector.pre_create_ports']) return;
  const found = [...new Set((await management.macAddresses(task)).filter(isMac))];
  if (found.length === 0) task.log.warn('no ports are made before inspection: the BMC knows of no network interface that is enabled');
  const taken = new Set((await store.ports.byMacs(found)).map(({ address }) => address));
  const fresh = found.filter((address) => !taken.has(address));
  if (fresh.length === 0) return;
  for (const address of fresh) {
    try {
      await store.ports.create({ uuid: newUuid(random), node_uuid: task.node.uuid, address });
    } catch (error) {
      // Somebody made it meanwhile.
      if (!(error instanceof Fault && error.name === 'MACAlreadyExists')) throw error;
    }
  }
  task.log.info('ports made of the MAC addresses that the BMC knows', { addresses: fresh });
  await task.refresh();
}
