/** network_data.json from Neutron's data of a node's VIFs: for a ramdisk without DHCP, and for an instance whose config drive has none. */
import type { JsonObject } from '../../model/records';
import type { Task } from '../interfaces';
import { allPortsAndPortgroupsOf } from './binding';
import { findNetwork, findPort, findSubnet, orNetworkError } from './neutron-api';
import { currentVif, tenantVif } from './vifs';

interface Link extends JsonObject {
  readonly id: string;
  readonly bond_links?: readonly string[];
}
interface NetworkData {
  readonly links: readonly Link[];
  readonly networks: readonly JsonObject[];
  readonly services: readonly JsonObject[];
}
const NOTHING: NetworkData = { links: [], networks: [], services: [] };
const joined = (parts: readonly NetworkData[]): NetworkData =>
  parts.reduce(
    (all, part) => ({
      links: [...all.links, ...part.links],
      networks: [...all.networks, ...part.networks],
      services: [...all.services, ...part.services],
    }),
    NOTHING,
  );

const bits = (length: number, group: number, width: number): number =>
  2 ** width - 2 ** (width - Math.min(Math.max(length - group * width, 0), width));
/** `10.0.0.0/8` as network and netmask. */
function rangeOf(cidr: unknown): { readonly network: string; readonly netmask: string } | undefined {
  const [, network, digits] = /^([\da-f:.]{2,45})\/(\d{1,3})$/i.exec(String(cidr)) ?? [];
  if (network === undefined) return undefined;
  const length = Number(digits);
  if (!network.includes(':')) return { network, netmask: [0, 1, 2, 3].map((group) => bits(length, group, 8)).join('.') };
  const groups = Array.from({ length: 8 }, (_, group) => bits(length, group, 16).toString(16));
  const ones = groups.filter((group) => group !== '0');
  return { network, netmask: ones.length < 7 ? `${ones.join(':')}::` : groups.join(':') };
}

const known = <T>(task: Task, what: string, id: string, read: () => Promise<T>): Promise<T> =>
  orNetworkError(task, (reason) => `Unable to get ${what} info for ${id}. Error: ${reason}`, read);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function networkIn(
  subnet: JsonObject,
  address: { readonly subnet_id: string; readonly ip_address?: string },
  network: string,
  link: string,
) {
  const version = subnet['ip_version'];
  const gateway = subnet['gateway_ip'];
  const everywhere = version === 6 ? '::0' : '0.0.0.0';
  const routes = listOf(subnet['host_routes']).flatMap((route) => {
    const { destination, nexthop } = route as JsonObject;
    const range = rangeOf(destination);
    return range ? [{ network: range.network, netmask: range.netmask, gateway: nexthop }] : [];
  });
  return {
    id: address.subnet_id,
    network_id: network,
    type: `ipv${String(version)}`,
    link,
    ip_address: address.ip_address,
    netmask: rangeOf(subnet['cidr'])?.netmask,
    routes: [...(gateway ? [{ network: everywhere, netmask: everywhere, gateway }] : []), ...routes],
  };
}

/** @param id of the link, unless the Neutron port has a name */
async function dataOf(task: Task, id: string, vif: string, type: string, address?: string | null): Promise<NetworkData> {
  const port = await known(task, 'port', vif, () => findPort(task, vif));
  const { mtu } = await known(task, 'network', port.networkId, () => findNetwork(task, port.networkId, 'network'));
  const link = port.name || id;
  const subnets = await Promise.all(
    port.fixedIps.map(async (fixed) => ({
      fixed,
      subnet: await known(task, 'subnet', fixed.subnet_id, () => findSubnet(task, fixed.subnet_id)),
    })),
  );
  return {
    links: [{ id: link, type, ethernet_mac_address: address || port.macAddress, vif_id: port.id, mtu }],
    networks: subnets.map(({ fixed, subnet }) => networkIn(subnet, fixed, port.networkId, link)),
    services: subnets.flatMap(({ subnet }) => listOf(subnet['dns_nameservers']).map((server) => ({ type: 'dns', address: server }))),
  };
}

/** For a ramdisk: the node's own data, or that of the VIFs which its ports use now. Throws NetworkError. */
export async function ramdiskNetworkData(task: Task): Promise<JsonObject> {
  const { network_data: own } = task.node;
  if (Object.keys(own).length > 0) return own;
  const parts = await Promise.all(
    task.ports.map(async (port) => {
      const vif = currentVif(port);
      return vif === undefined ? NOTHING : dataOf(task, port.uuid, vif, 'vif');
    }),
  );
  const lists: Readonly<Record<string, readonly JsonObject[]>> = { ...joined(parts) };
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}

/** Readers of config drives use the IDs of links as interface names, so that the IDs must be short. */
function renamed({ links, networks, services }: NetworkData): NetworkData {
  const names = new Map(links.map(({ id }, index) => [id, `iface${index}`]));
  return {
    links: links.map((link, index) => ({
      ...link,
      id: `iface${index}`,
      ...(link.bond_links ? { bond_links: link.bond_links.map((id) => names.get(id) ?? id) } : {}),
    })),
    networks: networks.map((network) => ({ ...network, link: names.get(String(network['link'])) ?? network['link'] })),
    services,
  };
}
/** For an instance: its VIFs on ports, and on portgroups as bonds of their members. Throws NetworkError. */
async function instanceNetworkData(task: Task): Promise<NetworkData> {
  const carriers = await allPortsAndPortgroupsOf(task);
  const parts = await Promise.all(
    carriers.map(async (carrier) => {
      const vif = tenantVif(carrier.record);
      if (vif === undefined) return NOTHING;
      const { uuid, address } = carrier.record;
      if (carrier.kind === 'port') return dataOf(task, uuid, vif, 'phy', address);
      const members = carrier.members.map((port) => ({ id: port.uuid, type: 'phy', ethernet_mac_address: port.address }));
      const { links, ...rest } = await dataOf(task, uuid, vif, 'bond', address);
      const [bond] = links;
      return { ...rest, links: [{ ...bond!, bond_links: members.map(({ id }) => id) }, ...members] };
    }),
  );
  return renamed(joined(parts));
}

/** Whether network data is empty, or has a link without an MTU, as Nova writes it for networks that it does not know. */
function isIncomplete(given: unknown, { options }: Task): boolean {
  if (typeof given !== 'object' || given === null) return true;
  const { links, networks, services } = given as JsonObject;
  if ([links, networks, services].every((list) => listOf(list).length === 0)) return true;
  if (options['conductor.disable_metadata_mtu_check']) return false;
  return listOf(links).some((link) => ((link as JsonObject | null)?.['mtu'] ?? null) === null);
}

/** The parts of an instance's config drive, with the network data of Neutron where they have none. */
export async function completeConfigdrive(task: Task, parts: JsonObject): Promise<JsonObject> {
  if (task.options['conductor.disable_configdrive_check'] || !isIncomplete(parts['network_data'], task)) return parts;
  const made = await instanceNetworkData(task);
  // Not checked by isIncomplete: members of a bond have no MTU of their own.
  if (made.networks.length + made.links.length > 0) return { ...parts, network_data: made };
  task.log.warn('the config drive has no network data, and the node has no VIFs');
  return parts;
}
