/** VIFs that are Neutron ports: their physical networks, attaching and detaching, and changes of the ports that carry them. */
import { Fault } from '../../model/errors';
import type { PortRecord, Vif } from '../../model/records';
import type { NetworkInterface, PortChange, PortgroupChange, Task } from '../interfaces';
import { allPortsAndPortgroupsOf, changeAddress, CLIENT_ID_OPTION, portProblem, unbind, type PortOrPortgroup } from './binding';
import { completeConfigdrive, ramdiskNetworkData } from './network-data';
import { findNetwork, findPort, findSegment, findSubnet, isNotFound, orNetworkError, updatePort, type NeutronPort } from './neutron-api';
import { plug } from './tenant-networks';
import { planAttachment } from './trait-plan';
import {
  attachedVifs,
  portOrPortgroupOf,
  checkPortChange,
  checkPortgroupChange,
  currentVif,
  choosePortOrPortgroup,
  tenantVif,
  TENANT_VIF,
} from './vifs';

/** Throws InvalidParameterValue for an object that Neutron does not have, NetworkError. */
async function found<T>(task: Task, kind: string, id: string, read: () => Promise<T>): Promise<T> {
  return orNetworkError(
    task,
    (reason) => `Could not retrieve neutron ${kind}: ${reason}`,
    async () => {
      try {
        return await read();
      } catch (error) {
        if (!isNotFound(error)) throw error;
        throw new Fault('InvalidParameterValue', { message: `Neutron ${kind} ${id} was not found` }, { cause: error });
      }
    },
  );
}

/** The physical networks that a VIF can be on; empty: any. The segment of the VIF's subnet takes precedence over those of the network. */
async function physicalNetworksOf(task: Task, { networkId, fixedIps }: NeutronPort): Promise<readonly string[]> {
  const { segmentNetworks, physicalNetwork } = await findNetwork(task, networkId, 'network');
  if (!segmentNetworks) return physicalNetwork === '' ? [] : [physicalNetwork];
  for (const { subnet_id: subnetId } of fixedIps) {
    const { segment_id: segmentId } = await found(task, 'subnet', subnetId, () => findSubnet(task, subnetId));
    if (typeof segmentId !== 'string') continue;
    const { physical_network: name } = await found(task, 'segment', segmentId, () => findSegment(task, segmentId));
    if (typeof name === 'string' && name !== '') return [name];
  }
  return [...new Set(segmentNetworks)];
}

async function withMembers(task: Task, kind: PortOrPortgroup['kind'], uuid: string): Promise<PortOrPortgroup> {
  return (await allPortsAndPortgroupsOf(task)).find((carrier) => carrier.kind === kind && carrier.record.uuid === uuid)!;
}

/** Tells Neutron the host, so that it allocates deferred addresses. The binding itself follows at the deployment. */
async function seedHost(task: Task, vif: string): Promise<void> {
  await orNetworkError(
    task,
    (reason) =>
      `Could not seed network configuration for VIF ${vif}to node ${task.node.uuid}, possible network, state, or access permission issue. ${reason}`,
    () => updatePort(task, vif, { 'binding:vnic_type': 'baremetal', 'binding:host_id': task.node.uuid, 'binding:profile': {} }),
  );
}

async function connect(task: Task, carrier: PortOrPortgroup, vif: NeutronPort): Promise<void> {
  const { address } = carrier.record;
  // If the Neutron port is bound already, neither its address nor its host can change.
  if (vif.hostId !== '') await unbind(task, vif.id, true);
  if (address)
    await changeAddress(task, vif.id, address, { ...vif, hostId: '' }).catch((error: unknown) => {
      if (!(error instanceof Fault && error.name === 'FailedToUpdateMacOnPort')) throw error;
      const message = `Unable to attach VIF ${vif.id} because Ironic can not update Neutron port ${vif.id} MAC address to match physical MAC address ${address}`;
      throw new Fault('NetworkError', { message }, { cause: error });
    });
  if (task.node.provision_state === 'active') await plug(task, carrier, vif.id);
  else await seedHost(task, vif.id);
}

/** Throws NetworkError; the carrier then has no VIF. */
async function attachTo(
  task: Task,
  { kind, uuid }: { readonly kind: PortOrPortgroup['kind']; readonly uuid: string },
  port: NeutronPort,
): Promise<void> {
  const carrier = await withMembers(task, kind, uuid);
  // Saved first: the end of the instance then unbinds the VIF even if this conductor dies now.
  await task.saveAttachment(kind, uuid, { [TENANT_VIF]: port.id });
  try {
    await connect(task, carrier, port);
  } catch (error) {
    task.signal.throwIfAborted();
    await task.saveAttachment(kind, uuid, { [TENANT_VIF]: undefined });
    throw error;
  }
}

const NAME_BYTES = 6;
/** Attaches a VIF to a new portgroup of these ports. The portgroup is removed when the VIF is detached. */
async function attachToGroup(task: Task, members: readonly PortRecord[], port: NeutronPort): Promise<void> {
  const { uuid } = await task.groupPorts(
    {
      name: `tbn_dyn_portgroup_${task.random(NAME_BYTES).toString('base64url')}`,
      mode: task.options['DEFAULT.default_portgroup_mode'],
      physical_network: members[0]!.physical_network,
      dynamic_portgroup: true,
      internal_info: { [TENANT_VIF]: port.id },
    },
    members.map((member) => member.uuid),
  );
  try {
    await connect(task, await withMembers(task, 'portgroup', uuid), port);
  } catch (error) {
    task.signal.throwIfAborted();
    await task.ungroupPorts(uuid);
    throw error;
  }
}

/** [conductor]enable_trait_based_networking: the instance's traits select the ports. */
async function attachByTraits(task: Task, vif: Vif, port: NeutronPort): Promise<void> {
  const traits = task.connections.networkTraits?.current(task.log) ?? [];
  for (const [index, planned] of (await planAttachment(task, vif, traits)).entries()) {
    // The previous attachment may have changed the Neutron port.
    const current = index === 0 ? port : await found(task, 'port', vif.id, () => findPort(task, vif.id));
    await (planned.kind === 'group' ? attachToGroup(task, planned.ports, current) : attachTo(task, planned, current));
  }
}

async function vifAttach(task: Task, vif: Vif): Promise<void> {
  const port = await found(task, 'port', vif.id, () => findPort(task, vif.id));
  const { caller } = task;
  const isBound = caller !== undefined && !caller.admin && caller.service !== true && caller.project !== null;
  // With the client's token, Neutron would hide the port; this program reads it with its own credentials.
  if (isBound && port.projectId !== caller.project)
    throw new Fault('InvalidParameterValue', { message: `Neutron port ${vif.id} was not found` });
  if (task.options['conductor.enable_trait_based_networking']) return attachByTraits(task, vif, port);
  const networks = await physicalNetworksOf(task, port);
  const ports = task.ports.filter((candidate) => portProblem(candidate, task.node.network_interface) === undefined);
  const { kind, record } = choosePortOrPortgroup(vif, networks, { ports, portgroups: await task.portgroups() });
  await attachTo(task, { kind, uuid: record.uuid }, port);
}

/** The states in which a VIF is bound, or may still be. */
const BOUND_STATES: readonly string[] = ['active', 'deleting', 'available'];
/**
 * Whether the Neutron port is unbound and no longer has the address of its port or portgroup, so that no change is needed. Neutron takes
 * ten times as long for a change as for a read.
 */
async function isFree(task: Task, vif: string, address: string | null): Promise<boolean> {
  try {
    const { hostId, profile, macAddress } = await findPort(task, vif);
    return hostId === '' && Object.keys(profile).length === 0 && address !== null && macAddress !== address;
  } catch {
    // The change that follows reports the error.
    task.signal.throwIfAborted();
    return false;
  }
}
async function vifDetach(task: Task, id: string): Promise<void> {
  const { kind, record } = portOrPortgroupOf(id, task.node.uuid, { ports: task.ports, portgroups: await task.portgroups() });
  const { provision_state: state } = task.node;
  // The end of an instance unbinds its VIFs before it detaches them.
  const isDone = state === 'deleting' && (await isFree(task, id, record.address));
  if (!isDone && BOUND_STATES.includes(state)) await unbind(task, id, true);
  if (kind === 'portgroup' && record.dynamic_portgroup) await task.ungroupPorts(record.uuid);
  else await task.saveAttachment(kind, record.uuid, { [TENANT_VIF]: undefined });
}

async function portChanged(task: Task, change: PortChange): Promise<void> {
  checkPortChange(change);
  const { before, after } = change;
  const vif = tenantVif(after);
  if (vif !== undefined && before.address !== after.address) await changeAddress(task, vif, after.address);
  const clientId = after.extra['client-id'];
  if (before.extra['client-id'] === clientId) return;
  if (vif === undefined) {
    if (task.node.instance_uuid !== null) task.log.warn('the client-id of a port without a VIF changed', { port: after.uuid });
    return;
  }
  await updatePort(task, vif, { extra_dhcp_opts: [{ opt_name: CLIENT_ID_OPTION, opt_value: clientId ?? null }] }).catch(
    (error: unknown) => {
      task.signal.throwIfAborted();
      throw new Fault('FailedToUpdateDHCPOptOnPort', { message: `Update DHCP options on port: ${vif} failed.` }, { cause: error });
    },
  );
}
async function portgroupChanged(task: Task, change: PortgroupChange): Promise<void> {
  checkPortgroupChange(change);
  const { before, after } = change;
  const vif = tenantVif(after);
  if (vif !== undefined && after.address && before.address !== after.address) await changeAddress(task, vif, after.address);
}

/** The members of a network interface that concern VIFs. */
export const neutronVifs = {
  vifList: async (task) => attachedVifs({ ports: task.ports, portgroups: await task.portgroups() }),
  vifAttach,
  vifDetach,
  currentVif,
  portChanged,
  portgroupChanged,
  networkData: ramdiskNetworkData,
  completeConfigdrive,
} satisfies Partial<NetworkInterface>;
