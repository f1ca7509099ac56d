/** Ports made, changed and removed by clients: what the state of their node allows. */
import { Fault } from '../model/errors';
import type { NewPort, PortChanges, PortRecord } from '../model/records';
import type { ProvisionState } from '../model/states';
import type { Context } from './context';
import { withTask } from './task';
import { validateInterface } from './validate';

/** Where a port is plugged in: fixed once the node is in use. */
const CONNECTIVITY = ['portgroup_uuid', 'pxe_enabled', 'local_link_connection', 'physical_network'] as const;
const OPEN: readonly ProvisionState[] = ['enroll', 'inspecting', 'inspect wait', 'manageable'];

/** Throws NodeNotFound, MACAlreadyExists, PortAlreadyExists. Needs no lock of the node, as in Ironic. */
export async function createPort({ store }: Context, port: NewPort): Promise<PortRecord> {
  await store.nodes.find(port.node_uuid);
  return store.ports.create(port);
}

/** Throws PortNotFound, NodeLocked, InvalidState, MACAlreadyExists. */
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
    if (CONNECTIVITY.some(differs) && !OPEN.includes(node.provision_state) && !node.maintenance)
      throw new Fault('InvalidState', {
        message:
          `Port ${before.uuid} can not have any connectivity attributes (${CONNECTIVITY.join(', ').replace('_uuid', '_id')}) updated ` +
          `unless node ${node.uuid} is in a ${OPEN.join(', ')} state or in maintenance mode. ` +
          `The current state is ${node.provision_state}.`,
      });
    await validateInterface(task, 'network');
    return store.ports.update(before.uuid, changes);
  });
}

/** Throws PortNotFound, NodeLocked. */
export async function deletePort(context: Context, uuid: string): Promise<void> {
  const port = await context.store.ports.find(uuid);
  await withTask(context, port.node_uuid, { purpose: 'port deletion', retry: true }, () => context.store.ports.remove(port.uuid));
}
