/** Changes and removes portgroups for clients. */
import { Fault } from '../../model/errors';
import type { ChangesOf, PortgroupRecord } from '../../model/records';
import type { Context } from '../core/context';
import { CONNECTIVITY_STATES } from './ports';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';

/**
 * Changing the physical network changes it on the member ports too. Throws PortgroupNotFound, NodeLocked, InvalidState, Invalid,
 * Conflict.
 */
export async function updatePortgroup(context: Context, uuid: string, changes: ChangesOf<PortgroupRecord>): Promise<PortgroupRecord> {
  const { store } = context;
  const before = await store.portgroups.find(uuid);
  const nodeUuid = changes.node_uuid ?? before.node_uuid;
  return withTask(context, nodeUuid, { purpose: 'portgroup update', retry: true }, async (task) => {
    const { node } = task;
    const members = await store.ports.list({ where: { portgroup_uuid: before.uuid } });
    if (nodeUuid !== before.node_uuid) {
      if (!CONNECTIVITY_STATES.includes(node.provision_state) && !node.maintenance)
        throw new Fault('InvalidState', {
          message:
            `Portgroup ${before.uuid} can not be associated to node ${nodeUuid} unless the node is in a ${CONNECTIVITY_STATES.join(', ')} state ` +
            `or in maintenance mode. Current state is '${node.provision_state}'.`,
        });
      if (members.length > 0)
        throw new Fault('Invalid', {
          message: `Portgroup ${before.uuid} can not be associated with node ${nodeUuid} because there are ports associated with this portgroup.`,
        });
    }
    await validateInterface(task, 'network');
    await task.driver.network.portgroupChanged?.(task, { before, after: { ...before, ...changes }, members });
    const { physical_network: network } = changes;
    const moved = network === undefined ? [] : members.filter(({ physical_network: own }) => own !== network);
    return store.transaction(async (inner) => {
      for (const port of moved) await inner.ports.update(port.uuid, { physical_network: network! });
      return inner.portgroups.update(before.uuid, changes);
    });
  });
}

/** Throws PortgroupNotFound, NodeLocked, PortgroupNotEmpty. */
export async function deletePortgroup(context: Context, uuid: string): Promise<void> {
  const { portgroups } = context.store;
  const { id, uuid: own, node_uuid: node } = await portgroups.find(uuid);
  await withTask(context, node, { purpose: 'portgroup deletion', retry: true }, () => portgroups.remove(own)).catch((error: unknown) => {
    // In this message clients expect its numeric ID.
    throw error instanceof Fault && error.name === 'PortgroupNotEmpty' ? new Fault(error.name, { portgroup: `${id}` }) : error;
  });
}
