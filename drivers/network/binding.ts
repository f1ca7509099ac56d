/** Binds Neutron ports to the machine's switch ports, and waits for the binding. */
import { waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { JsonObject, PortgroupRecord, PortRecord } from '../../model/records';
import { isTrue } from '../common/boot-settings';
import type { Task } from '../interfaces';
import { findPort, isAgentAlive, isNotFound, orNetworkError, updatePort, type NeutronPort } from './neutron-api';

/** A port or a portgroup with its member ports. */
export type PortOrPortgroup =
  | { readonly kind: 'port'; readonly record: PortRecord }
  | { readonly kind: 'portgroup'; readonly record: PortgroupRecord; readonly members: readonly PortRecord[] };

/** Ports that belong to no portgroup, and the portgroups. */
export async function portsAndPortgroupsOf(task: Task): Promise<readonly PortOrPortgroup[]> {
  const alone = task.ports.filter((port) => port.portgroup_uuid === null);
  return [...alone.map((record) => ({ kind: 'port', record }) as const), ...(await portgroupsOf(task))];
}
/** As `portsAndPortgroupsOf`, with all ports. */
export const allPortsAndPortgroupsOf = async (task: Task): Promise<readonly PortOrPortgroup[]> => [
  ...task.ports.map((record) => ({ kind: 'port', record }) as const),
  ...(await portgroupsOf(task)),
];
const portgroupsOf = async (task: Task): Promise<readonly PortOrPortgroup[]> =>
  (await task.portgroups()).map((record) => ({
    kind: 'portgroup',
    record,
    members: task.ports.filter((port) => port.portgroup_uuid === record.uuid),
  }));

const linkOf = ({ local_link_connection: link }: PortRecord): JsonObject => link ?? {};
export const hostNameOf = (port: PortRecord): string => {
  const name = linkOf(port)['hostname'];
  return typeof name === 'string' ? name : '';
};
export const isSmartNic = (carrier: PortOrPortgroup): boolean => carrier.kind === 'port' && carrier.record.is_smartnic === true;
const hasSmartNicLink = (port: PortRecord): boolean => ['port_id', 'hostname'].every((key) => key in linkOf(port));
const clientIdOf = ({ extra }: PortRecord): unknown => extra['client-id'] || undefined;

/** Why a port cannot be used for the boot in a temporary network; undefined: it can. */
export function portProblem(port: PortRecord, interfaceName: string | null): string | undefined {
  // A port with a client-id is an InfiniBand port, which needs no link information: the subnet manager knows the topology.
  if (clientIdOf(port)) return undefined;
  if (interfaceName === 'neutron' && Object.keys(linkOf(port)).length === 0)
    return "The local_link_connection is required for 'neutron' network interface and is not present";
  if ((port.is_smartnic === true) === hasSmartNicLink(port)) return undefined;
  return port.is_smartnic
    ? 'Smart NIC port must have port_id and hostname in local_link_connection'
    : 'Only Smart NIC ports can have port_id and hostname in local_link_connection';
}

/** Bonding options are named bond_…, as for the kernel and cloud-init. */
const groupInformation = ({ uuid, name, mode, properties }: PortgroupRecord): JsonObject => ({
  id: uuid,
  name,
  bond_mode: mode,
  bond_properties: Object.fromEntries(
    Object.entries(properties ?? {}).map(([key, value]) => [key.startsWith('bond') ? key : `bond_${key}`, value]),
  ),
});

/** RFC 2132, client identifier. */
export const CLIENT_ID_OPTION = '61';
/** The attributes that bind a Neutron port to a port or portgroup of the node. */
export function bindingOf(task: Task, carrier: PortOrPortgroup): JsonObject {
  const { record } = carrier;
  const links = carrier.kind === 'port' ? [linkOf(carrier.record)] : carrier.members.map(linkOf);
  const smart = isSmartNic(carrier);
  const clientId = carrier.kind === 'port' ? clientIdOf(carrier.record) : undefined;
  return {
    'binding:vnic_type': smart ? 'smart-nic' : 'baremetal',
    'binding:host_id': smart && carrier.kind === 'port' ? hostNameOf(carrier.record) : task.node.uuid,
    'binding:profile': {
      local_link_information: links,
      ...(carrier.kind === 'portgroup' ? { local_group_information: groupInformation(carrier.record) } : {}),
      ...(record.physical_network ? { physical_network: record.physical_network } : {}),
    },
    ...(record.address ? { mac_address: record.address } : {}),
    ...(clientId === undefined ? {} : { extra_dhcp_opts: [{ opt_name: CLIENT_ID_OPTION, opt_value: clientId }] }),
  };
}

/** Removes host and profile, so that no switch port belongs to the Neutron port any more. A deleted Neutron port counts as unbound. */
export async function unbind(task: Task, id: string, resetMac: boolean): Promise<void> {
  await orNetworkError(
    task,
    (reason) => `Unable to clear binding profile for neutron port ${id}. Error: ${reason}`,
    async () => {
      try {
        await updatePort(task, id, { 'binding:host_id': '', 'binding:profile': {} });
        // Neutron refuses another address while the port is bound.
        if (resetMac) await updatePort(task, id, { mac_address: null });
      } catch (error) {
        if (!isNotFound(error)) throw error;
        task.log.info('a Neutron port does not exist any more', { vif: id });
      }
    },
  );
}

/** Gives a Neutron port the address of a port or portgroup. A bound port is unbound for the change. Throws FailedToUpdateMacOnPort. */
export async function changeAddress(task: Task, vif: string, address: string, known?: NeutronPort): Promise<void> {
  try {
    const { hostId, profile } = known ?? (await findPort(task, vif));
    if (hostId !== '') await unbind(task, vif, true);
    await updatePort(task, vif, { mac_address: address });
    if (hostId !== '') await updatePort(task, vif, { 'binding:host_id': hostId, 'binding:profile': profile });
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.error('Neutron does not change the address of a port', { vif, address, reason: String(error) });
    throw new Fault('FailedToUpdateMacOnPort', { port_id: vif }, { cause: error });
  }
}

/** Whether a failed binding fails the operation. */
export function failsOnBinding(task: Task, carriers: readonly PortOrPortgroup[]): boolean {
  const own = task.node.driver_info['fail_on_binding_failure'];
  if (own !== undefined && own !== null) return isTrue(own);
  return carriers.some(isSmartNic) || (task.node.network_interface === 'neutron' && task.options['neutron.fail_on_port_binding_failure']);
}

const FIRST_PAUSE_MS = 250;
/** Repeats a check with growing pauses, for as long as Ironic's attempts at a fixed interval would take. @returns whether it succeeded */
async function eventually(task: Task, check: () => Promise<boolean>): Promise<boolean> {
  const interval = task.options['agent.neutron_agent_status_retry_interval'] * 1000;
  const until = task.clock.now() + interval * task.options['agent.neutron_agent_max_attempts'];
  return waitUntil(task, check, (checks) => {
    const pause = checks === 1 ? FIRST_PAUSE_MS : Math.min(FIRST_PAUSE_MS * 2 ** (checks - 1), interval);
    return task.clock.now() + pause > until ? undefined : pause;
  });
}

/** Waits until a Neutron port is active. Throws NetworkError: it cannot be bound, or stays down. @param known the port as last read */
export async function waitUntilActive(task: Task, known: NeutronPort): Promise<void> {
  const { id } = known;
  let port: NeutronPort | undefined = known;
  const isActive = async (): Promise<boolean> => {
    port ??= await findPort(task, id);
    const { status, vifType } = port;
    port = undefined;
    if (status === 'ACTIVE') return true;
    if (vifType === 'binding_failed') throw new Fault('NetworkError', { message: `Binding failed for neutron port ${id}` });
    return false;
  };
  if (!(await eventually(task, isActive))) throw new Fault('NetworkError', { message: `Port ${id} failed to reach status ACTIVE` });
}

/** Waits for the agent of a SmartNIC's host. Throws NetworkError. */
export async function waitForAgent(task: Task, host: string, state: 'up' | 'down' = 'up'): Promise<void> {
  const reached = await eventually(task, async () =>
    orNetworkError(
      task,
      () => 'Failed to contact Neutron server',
      async () => (await isAgentAlive(task, host)) === (state === 'up'),
    ),
  );
  if (!reached) throw new Fault('NetworkError', { message: `Agent on host ${host} failed to reach state ${state}` });
}
