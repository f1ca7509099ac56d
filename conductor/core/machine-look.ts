/** What a BMC says beside the power state, and the node's row keeps: health, boot mode, vendor. */
import type { MachineStatus, Task } from '../../drivers/interfaces';
import { reasonOf } from '../../model/errors';
import type { NodeChanges, NodeRecord } from '../../model/records';
import type { Context } from './context';
import type { NodeTask } from './node-task';

export type MachineReading = Pick<MachineStatus, 'power'> & Partial<MachineStatus>;

/** One request, whatever comes with it. Power and management must be of one kind: else nobody asked for the rest. */
export async function readMachine(task: Task): Promise<MachineReading> {
  const { power } = task.driver;
  const { power_interface: ofPower, management_interface: ofManagement } = task.node;
  return power.getStatus && ofPower === ofManagement ? power.getStatus(task) : { power: await power.get(task) };
}

/** What of it is not on the row yet. */
function news({ options }: Context, node: NodeRecord, { health, bootMode }: MachineReading): NodeChanges {
  return {
    ...(health === undefined || health === node.health || !options['conductor.enable_health_monitoring'] ? {} : { health }),
    ...(bootMode === undefined || bootMode === node.boot_mode ? {} : { boot_mode: bootMode }),
  };
}
const lacksVendor = (node: NodeRecord, { namesVendor }: MachineReading): boolean => namesVendor === true && !node.properties['vendor'];
export const isNews = (context: Context, node: NodeRecord, seen: MachineReading): boolean =>
  lacksVendor(node, seen) || Object.keys(news(context, node, seen)).length > 0;

/** Writes down what is new; a change of health goes into the history too. */
export async function saveReading(task: NodeTask, seen: MachineReading): Promise<void> {
  const changes = news(task.context, task.node, seen);
  const { health: before } = task.node;
  const { health } = changes;
  if (lacksVendor(task.node, seen)) await detectVendor(task);
  if (health === undefined) {
    if (Object.keys(changes).length > 0) await task.save(changes);
    return;
  }
  const event = `Node health status changed: health='${health ?? 'None'}' (previously '${before ?? 'None'}')`;
  await task.record({ type: 'monitoring', event, error: false }, changes);
  if (health === 'Warning' || health === 'Critical') task.log.warn('the BMC reports a problem of its machine', { health });
}

/** properties.vendor, once: it is what drivers know the vendor's ways by. Never fails. */
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
