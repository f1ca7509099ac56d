/**
 * The networks in which a node boots a ramdisk: cleaning, provisioning, rescuing, inspection and servicing. The node's ports get Neutron
 * ports there, which are deleted afterwards.
 *
 * A conductor may die between any two requests. Each addition and each removal therefore deletes the Neutron ports in the network that have
 * MAC addresses of the node, and those that the node's ports refer to.
 */
import { Fault, reasonOf } from '../../model/errors';
import type { JsonObject, PortRecord } from '../../model/records';
import { ServiceError } from '../../wire/keystone/services';
import type { Task } from '../interfaces';
import {
  bindingOf,
  failsOnBinding,
  isSmartNic,
  hostNameOf,
  portProblem,
  waitForAgent,
  waitUntilActive,
  type PortOrPortgroup,
} from './binding';
import {
  createPorts,
  deletePort,
  existingSecurityGroups,
  findNetwork,
  findSubnet,
  listPorts,
  orNetworkError,
  updatePort,
  type NeutronPort,
} from './neutron-api';

export type TemporaryNetwork = 'cleaning' | 'provisioning' | 'rescuing' | 'inspection' | 'servicing';
const vifKey = (network: TemporaryNetwork): string => `${network}_vif_port_id`;

const described = (network: TemporaryNetwork): string => (network === 'servicing' ? 'servicing network' : `${network}_network`);
/** UUID or name of the network: from the node, otherwise from the configuration. Throws MissingParameterValue. */
function nameOfNetwork(task: Task, network: TemporaryNetwork): string {
  const own = task.node.driver_info[`${network}_network`];
  const name = typeof own === 'string' && own !== '' ? own : task.options[`neutron.${network}_network`];
  if (!name)
    throw new Fault('MissingParameterValue', {
      message: `UUID or name of ${described(network)} is not set in configuration or in node driver_info.`,
    });
  return name;
}
/** The network's UUID; undefined: it is not configured any more, or Neutron has no such network. Throws NetworkError. */
async function formerNetwork(task: Task, network: TemporaryNetwork): Promise<string | undefined> {
  try {
    return await findTemporaryNetwork(task, network);
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    return undefined;
  }
}
/** The network's UUID. Throws MissingParameterValue, InvalidParameterValue, NetworkError. */
export const findTemporaryNetwork = async (task: Task, network: TemporaryNetwork): Promise<string> =>
  (await findNetwork(task, nameOfNetwork(task, network), described(network))).id;

/** Whether all ports need a Neutron port: a network boot needs only the ports that boot; other boots use the addresses of all ports. */
const usesAllPorts = (task: Task): boolean => task.options['neutron.add_all_ports'] || task.driver.boot.bootsFromNetwork !== true;
const bootPorts = (task: Task): readonly PortRecord[] => (usesAllPorts(task) ? task.ports : task.ports.filter((port) => port.pxe_enabled));

async function checkSecurityGroups(task: Task, groups: readonly string[]): Promise<void> {
  if (groups.length === 0) return;
  const found = await orNetworkError(
    task,
    (reason) => `Could not retrieve security groups from neutron: ${reason}`,
    () => existingSecurityGroups(task, groups),
  );
  const missing = groups.filter((group) => !found.includes(group));
  if (missing.length > 0)
    throw new Fault('NetworkError', {
      message: `Could not find these security groups (specified via ironic config) in neutron: ${JSON.stringify(missing)}`,
    });
}

/** The stages of a boot send different identifiers to a stateful DHCPv6 server, so that each stage needs an address of its own. */
async function addStatefulAddresses(task: Task, { id, fixedIps }: NeutronPort): Promise<void> {
  const count = task.options['neutron.dhcpv6_stateful_address_count'];
  const [first] = fixedIps;
  if (count <= 1 || !first?.ip_address?.includes(':')) return;
  const { ipv6_address_mode: mode } = await findSubnet(task, first.subnet_id);
  if (mode !== 'dhcpv6-stateful') return;
  const more = Array.from({ length: count - 1 }, () => ({ subnet_id: first.subnet_id }));
  await updatePort(task, id, { fixed_ips: [...fixedIps, ...more] });
}

const requestFor = (task: Task, network: string, groups: readonly string[], port: PortRecord): JsonObject => ({
  network_id: network,
  admin_state_up: true,
  device_id: task.node.instance_uuid ?? task.node.uuid,
  device_owner: 'baremetal:none',
  ...(groups.length > 0 ? { security_groups: groups } : {}),
  ...(port.pxe_enabled ? {} : { fixed_ips: [] }),
  ...bindingOf(task, { kind: 'port', record: port }),
});

/** Creates the ports in one request; if Neutron refuses it, one by one, so that one bad port does not prevent the others. */
async function createEach(
  task: Task,
  ports: readonly PortRecord[],
  requestOf: (port: PortRecord) => JsonObject,
  failed: (port: PortRecord, error: unknown) => void,
): Promise<ReadonlyMap<PortRecord, NeutronPort>> {
  const create = async (some: readonly PortRecord[]): Promise<readonly (readonly [PortRecord, NeutronPort])[]> => {
    const made = await createPorts(task, some.map(requestOf));
    return some.flatMap((port) => {
      const neutronPort = made.find(({ macAddress }) => macAddress === port.address) ?? (some.length === 1 ? made[0] : undefined);
      return neutronPort ? [[port, neutronPort] as const] : [];
    });
  };
  try {
    return new Map(await create(ports));
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    if (ports.length === 1) {
      failed(ports[0]!, error);
      return new Map();
    }
  }
  const each = await Promise.all(ports.map(async (port) => [...(await createEach(task, [port], requestOf, failed))]));
  return new Map(each.flat());
}

/** @throws Fault NetworkError when no Neutron port could be created; none remains then */
async function addPorts(task: Task, network: string, groups: readonly string[]): Promise<ReadonlyMap<PortRecord, string>> {
  const { node } = task;
  const wanted = bootPorts(task);
  if (wanted.length === 0) {
    const kind = usesAllPorts(task) ? '' : 'PXE-enabled ';
    throw new Fault('NetworkError', { message: `No available ${kind}ports on node ${node.uuid}.` });
  }
  const problems = new Map<PortRecord, string>();
  const failed = (port: PortRecord, error: unknown): void => {
    problems.set(port, error instanceof ServiceError ? error.reason : reasonOf(error));
    task.log.warn('a port of the node gets no Neutron port', { port: port.uuid, network, reason: problems.get(port)! });
  };
  const usable = wanted.filter((port) => {
    const problem = portProblem(port, node.network_interface);
    if (problem !== undefined) failed(port, new Error(problem));
    return problem === undefined;
  });
  for (const port of usable) if (port.is_smartnic) await waitForAgent(task, hostNameOf(port));
  const made = usable.length > 0 ? await createEach(task, usable, (port) => requestFor(task, network, groups, port), failed) : new Map();
  const added = new Map<PortRecord, string>();
  for (const [port, neutronPort] of made as ReadonlyMap<PortRecord, NeutronPort>) {
    const carrier: PortOrPortgroup = { kind: 'port', record: port };
    try {
      await addStatefulAddresses(task, neutronPort);
      if (failsOnBinding(task, [carrier])) await waitUntilActive(task, neutronPort);
      added.set(port, neutronPort.id);
    } catch (error) {
      task.signal.throwIfAborted();
      failed(port, error);
      await deletePort(task, neutronPort.id).catch(() => {});
    }
  }
  if (added.size === 0) {
    const reasons = wanted.map((port) => `${port.uuid} (${problems.get(port) ?? 'Neutron returned no port'})`);
    throw new Fault('NetworkError', { message: `Failed to create neutron ports for node's ${node.uuid} ports ${reasons.join(', ')}.` });
  }
  return added;
}

/** Deletes the Neutron ports with the node's addresses in a network, and those that the node's ports refer to. Throws NetworkError. */
async function removePorts(task: Task, network: string | undefined, key: string): Promise<void> {
  const macs = bootPorts(task).map(({ address }) => address);
  const named = task.ports.flatMap(({ internal_info: info }) => (typeof info[key] === 'string' ? [info[key]] : []));
  const found = await orNetworkError(
    task,
    (reason) => `Could not get given network VIF for ${task.node.uuid} from neutron, possible network issue. ${reason}`,
    async () => (network !== undefined && macs.length > 0 ? listPorts(task, { network_id: network, mac_address: macs }) : []),
  );
  for (const port of task.ports) {
    const isBound = port.is_smartnic && found.some(({ macAddress }) => macAddress === port.address);
    if (isBound && isSmartNic({ kind: 'port', record: port })) await waitForAgent(task, hostNameOf(port));
  }
  for (const id of new Set([...found.map((port) => port.id), ...named]))
    await orNetworkError(
      task,
      (reason) => `Could not remove VIF ${id} of node ${task.node.uuid}, possibly a network issue: ${reason}`,
      () => deletePort(task, id),
    );
}

async function forget(task: Task, key: string): Promise<void> {
  for (const port of task.ports) if (key in port.internal_info) await task.saveAttachment('port', port.uuid, { [key]: undefined });
}

/** @param groups UUIDs of security groups */
export async function addTemporaryNetwork(task: Task, network: TemporaryNetwork, groups: readonly string[]): Promise<void> {
  const id = await findTemporaryNetwork(task, network);
  const key = vifKey(network);
  await checkSecurityGroups(task, groups);
  try {
    await removePorts(task, id, key);
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('leftovers of an earlier operation could not be removed from Neutron', { network: id, reason: reasonOf(error) });
  }
  const added = await addPorts(task, id, groups);
  for (const port of task.ports) {
    const vif = added.get(port);
    if (vif !== undefined || key in port.internal_info) await task.saveAttachment('port', port.uuid, { [key]: vif });
  }
}

export async function removeTemporaryNetwork(task: Task, network: TemporaryNetwork): Promise<void> {
  const key = vifKey(network);
  await removePorts(task, await formerNetwork(task, network), key);
  await forget(task, key);
}
