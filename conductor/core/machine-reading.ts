/** Health, boot mode and vendor: a BMC reports them together with the power state, and the node's row stores them. */
import type { MachineStatus, Task } from '../../drivers/interfaces';
import { reasonOf } from '../../model/errors';
import type { NodeChanges, NodeRecord } from '../../model/records';
import type { Context } from './context';
import type { NodeTask } from './node-task';

export type MachineReading = Pick<MachineStatus, 'power'> & Partial<MachineStatus>;

/** Sends one request to the BMC. Only if power and management are the same interface, the result has more than the power state. */
export async function readMachine(task: Task): Promise<MachineReading> {
  const { power } = task.driver;
  const { power_interface: ofPower, management_interface: ofManagement } = task.node;
  return power.getStatus && ofPower === ofManagement ? power.getStatus(task) : { power: await power.get(task) };
}

/** The values that differ from the row. */
function changed({ options }: Context, node: NodeRecord, { health, bootMode }: MachineReading): NodeChanges {
  return {
    ...(health === undefined || health === node.health || !options['conductor.enable_health_monitoring'] ? {} : { health }),
    ...(bootMode === undefined || bootMode === node.boot_mode ? {} : { boot_mode: bootMode }),
  };
}
const lacksVendor = (node: NodeRecord, { namesVendor }: MachineReading): boolean => namesVendor === true && !node.properties['vendor'];
export const differsFromRow = (context: Context, node: NodeRecord, reading: MachineReading): boolean =>
  lacksVendor(node, reading) || Object.keys(changed(context, node, reading)).length > 0;

/** Saves what changed. A change of health goes into the history too. */
export async function saveReading(task: NodeTask, reading: MachineReading): Promise<void> {
  const changes = changed(task.context, task.node, reading);
  const { health: before } = task.node;
  const { health } = changes;
  if (lacksVendor(task.node, reading)) await detectVendor(task);
  if (health === undefined) {
    if (Object.keys(changes).length > 0) await task.save(changes);
    return;
  }
  const event = `Node health status changed: health='${health ?? 'None'}' (previously '${before ?? 'None'}')`;
  await task.record({ type: 'monitoring', event, error: false }, changes);
  if (health === 'Warning' || health === 'Critical') task.log.warn('the BMC reports a problem of its machine', { health });
}

/** Sets properties.vendor, once: drivers choose the vendor's quirks by it. A failure is only logged. */
export async function detectVendor(task: NodeTask): Promise<void> {
  const { management } = task.driver;
  if (!management.detectVendor || task.node.properties['vendor']) return;
  try {
    const vendor = await management.detectVendor(task);
    if (vendor !== undefined) await task.save({ properties: { ...task.node.properties, vendor } });
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('the vendor cannot be detected', { reason: reasonOf(error) });
  }
}
