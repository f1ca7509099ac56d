/** Creates, changes and removes ports for clients: what the state of their node allows. */
import { Fault } from '../../model/errors';
import { str } from '../../model/python';
import type { NewPort, PortChanges, PortRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Store } from '../../store/store';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

/** The connectivity of a port, which is fixed once the node is in use. */
const CONNECTIVITY = ['portgroup_uuid', 'pxe_enabled', 'local_link_connection', 'physical_network'] as const;
export const CONNECTIVITY_STATES: readonly ProvisionState[] = ['enroll', 'inspecting', 'inspect wait', 'manageable'];

/** All members of a portgroup share one physical network; the first member that has one sets it. Throws Conflict. */
async function joinNetwork(store: Store, { uuid, portgroup_uuid: group, physical_network: own = null }: NewPort): Promise<void> {
  if (!group) return;
  const { physical_network: named } = await store.portgroups.find(group);
  const [other] = (await store.ports.list({ where: { portgroup_uuid: group } })).filter((port) => port.uuid !== uuid);
  const network = other ? other.physical_network : named;
  if (network === own) return;
  if (!other && network === null) await store.portgroups.update(group, { physical_network: own });
  else
    throw new Fault('Conflict', {
      message:
        `Port with physical network ${str(own)} cannot become a member of port group ${group} ` +
        `which has ports in physical network ${str(network)}.`,
    });
}

/** Throws NodeNotFound, MACAlreadyExists, PortAlreadyExists, Conflict. Does not lock the node, as in Ironic. */
export async function createPort({ store }: Context, port: NewPort): Promise<PortRecord> {
  try {
    if (!port.portgroup_uuid) return await store.ports.create(port);
    return await store.transaction(async (inner) => {
      await joinNetwork(inner, port);
      return inner.ports.create(port);
    });
  } catch (error) {
    // That the node does not exist comes before other faults.
    await store.nodes.find(port.node_uuid);
    throw error;
  }
}

/** Throws PortNotFound, NodeLocked, InvalidState, MACAlreadyExists, Conflict. */
export async function updatePort(context: Context, uuid: string, changes: PortChanges): Promise<PortRecord> {
  const { store } = context;
  const before = await store.ports.find(uuid);
  return withTask(context, before.node_uuid, { purpose: 'port update', retry: true }, async (task) => {
    const { node } = task;
    const differs = (key: keyof PortChanges): boolean => key in changes && JSON.stringify(changes[key]) !== JSON.stringify(before[key]);
    if ((node.provision_state === 'active' || node.instance_uuid !== null) && !node.maintenance && differs('address'))
      throw new Fault('InvalidState', {
        message: `Cannot update hardware address for port ${before.uuid} as node ${node.uuid} is active or has instance UUID assigned`,
      });
    if (CONNECTIVITY.some(differs) && !CONNECTIVITY_STATES.includes(node.provision_state) && !node.maintenance)
      throw new Fault('InvalidState', {
        message:
          `Port ${before.uuid} can not have any connectivity attributes (${CONNECTIVITY.join(', ').replace('_uuid', '_id')}) updated ` +
          `unless node ${node.uuid} is in a ${CONNECTIVITY_STATES.join(', ')} state or in maintenance mode. ` +
          `The current state is ${node.provision_state}.`,
      });
    await validateInterface(task, 'network');
    const after = { ...before, ...changes };
    const portgroup = after.portgroup_uuid === null ? undefined : await store.portgroups.find(after.portgroup_uuid);
    await task.driver.network.portChanged?.(task, { before, after, portgroup });
    return store.transaction(async (inner) => {
      if (differs('portgroup_uuid') || differs('physical_network')) await joinNetwork(inner, after);
      return inner.ports.update(before.uuid, changes);
    });
  });
}

/** Throws PortNotFound, NodeLocked, InvalidState. */
export async function deletePort(context: Context, uuid: string): Promise<void> {
  const port = await context.store.ports.find(uuid);
  await withTask(context, port.node_uuid, { purpose: 'port deletion', retry: true }, async ({ node, driver }) => {
    const vif = driver.network.currentVif(port);
    if (vif && !node.maintenance)
      throw new Fault('InvalidState', { message: `Cannot delete the port ${port.uuid} as it is bound to VIF ${vif} for use.` });
    await context.store.ports.remove(port.uuid);
  });
}
