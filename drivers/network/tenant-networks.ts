/** The networks of the instance: its VIFs, which users attach, are bound to the machine's ports while it runs. */
import { Fault } from '../../model/errors';
import type { Task } from '../interfaces';
import {
  allPortsAndPortgroupsOf,
  bindingOf,
  portsAndPortgroupsOf,
  failsOnBinding,
  hostNameOf,
  isSmartNic,
  unbind,
  waitForAgent,
  waitUntilActive,
  type PortOrPortgroup,
} from './binding';
import { orNetworkError, updatePort } from './neutron-api';
import { tenantVif } from './vifs';

/** Binds the VIF of a port or portgroup to the machine. Throws NetworkError. */
export async function plug(task: Task, carrier: PortOrPortgroup, vif: string): Promise<void> {
  if (carrier.kind === 'port' && isSmartNic(carrier)) await waitForAgent(task, hostNameOf(carrier.record));
  await orNetworkError(
    task,
    (reason) => `Could not add public network VIF ${vif} to node ${task.node.uuid}, possible network issue. ${reason}`,
    async () => {
      const port = await updatePort(task, vif, bindingOf(task, carrier));
      if (failsOnBinding(task, [carrier])) await waitUntilActive(task, port);
    },
  );
}

export async function configureTenantNetworks(task: Task): Promise<void> {
  if (task.ports.length === 0) throw new Fault('NetworkError', { message: `No ports are associated with node ${task.node.uuid}` });
  let plugged = 0;
  for (const carrier of await portsAndPortgroupsOf(task)) {
    const vif = tenantVif(carrier.record);
    if (vif === undefined) continue;
    await plug(task, carrier, vif);
    plugged++;
  }
  if (plugged === 0)
    throw new Fault('NetworkError', { message: `No neutron ports or portgroups are associated with node ${task.node.uuid}` });
}

/** Unbinds the VIFs, which stay attached. */
export async function unconfigureTenantNetworks(task: Task): Promise<void> {
  for (const carrier of await portsAndPortgroupsOf(task)) {
    const vif = tenantVif(carrier.record);
    if (vif === undefined) continue;
    if (carrier.kind === 'port' && isSmartNic(carrier)) await waitForAgent(task, hostNameOf(carrier.record));
    // A portgroup without an address takes that of the VIF.
    await unbind(task, vif, Boolean(carrier.record.address));
  }
}

/** For a flat network, which all machines share: binds the VIFs to the node, and no switch is configured. Throws NetworkError. */
export async function bindFlat(task: Task): Promise<void> {
  const { uuid } = task.node;
  let bound = 0;
  for (const { record } of await allPortsAndPortgroupsOf(task)) {
    const vif = tenantVif(record);
    if (vif === undefined) continue;
    await orNetworkError(
      task,
      (reason) => `Unable to set binding:host_id for neutron port ${vif}. Error: ${reason}`,
      () =>
        updatePort(task, vif, {
          'binding:host_id': uuid,
          'binding:vnic_type': 'baremetal',
          ...(record.address ? { mac_address: record.address } : {}),
        }),
    );
    bound++;
  }
  if (bound === 0) throw new Fault('NetworkError', { message: `Failed to bind any flat network ports for node ${uuid}` });
}

export async function unbindFlat(task: Task): Promise<void> {
  for (const { record } of await portsAndPortgroupsOf(task)) {
    const vif = tenantVif(record);
    if (vif !== undefined) await unbind(task, vif, true);
  }
}
