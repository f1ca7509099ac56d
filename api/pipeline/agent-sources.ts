/** Where requests of agents may come from: [api]agent_source_check and agent_allowed_networks. */
import { isIPv6 } from 'node:net';
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { Fault } from '../../model/errors';
import { canonicalAddress, networksOf, parseNetwork, type Network } from '../../model/idents';
import { isObject } from '../../model/json';
import type { NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';

/** What is known of the interfaces of a node's machine. */
interface KnownInterfaces {
  readonly addresses: readonly string[];
  readonly macs: readonly string[];
}
interface AgentSourceParts {
  readonly store: Pick<Store, 'leases' | 'inventories' | 'nodes'>;
  readonly options: Options;
  readonly clock: Clock;
}
interface AgentSources {
  /** Whether our DHCP service leased the address to the node's machine, or the node's network_data has it. */
  isAssigned(nodeUuid: string, address: string): Promise<boolean>;
  /** Why no request for the node may come from this address; undefined: it may. */
  objection(nodeUuid: string, address: string | undefined): Promise<string | undefined>;
}

type ReadInterfaces = (nodeUuid: string) => Promise<KnownInterfaces>;
/** What a value of [api]agent_source_check knows of a node. */
interface KnownSources {
  /** What this server or the operator assigned, the cheapest source first. */
  readonly assigned: readonly ReadInterfaces[];
  /**
   * What the machine said itself. Anybody may post an inventory, so these addresses permit nothing that is refused without them: they are
   * read only for nodes that would otherwise not be checked.
   */
  readonly reported?: ReadInterfaces;
}

const isText = (value: unknown): value is string => typeof value === 'string';
/** Addresses may end with a prefix length (`/24`). */
const addressesOf = (values: readonly unknown[]): readonly string[] =>
  values.filter(isText).flatMap((text) => canonicalAddress(text.split('/')[0]!) ?? []);

/** The static addresses of a node's network_data. */
function configuredIn(data: NodeRecord['network_data']): KnownInterfaces {
  const listOf = (name: string): readonly unknown[] => (Array.isArray(data[name]) ? (data[name] as readonly unknown[]) : []);
  const member = (item: unknown, name: string): unknown => (isObject(item) ? item[name] : undefined);
  return {
    addresses: addressesOf(listOf('networks').map((network) => member(network, 'ip_address'))),
    macs: listOf('links')
      .map((link) => member(link, 'ethernet_mac_address'))
      .filter(isText),
  };
}

/** The last 64 bits of an IPv6 address, as a hexadecimal number of 16 digits. */
function interfaceIdOf(address: string): string {
  const [head = '', tail] = address.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const after = groups(tail ?? '');
  const all =
    tail === undefined ? groups(head) : [...groups(head), ...Array<string>(8 - groups(head).length - after.length).fill('0'), ...after];
  return all
    .slice(4)
    .map((group) => group.padStart(4, '0'))
    .join('');
}
/** The identifier that stateless configuration makes of a MAC address (RFC 4291 Appendix A). */
function interfaceIdFrom(mac: string): string {
  const digits = mac.toLowerCase().replaceAll(':', '');
  return `${(parseInt(digits.slice(0, 2), 16) ^ 2).toString(16).padStart(2, '0')}${digits.slice(2, 6)}fffe${digits.slice(6)}`;
}

interface NamedNetworks {
  readonly name: string;
  readonly networks: Network;
}
/** @throws Error for the operator */
function allowedNetworks(entries: readonly string[]): { readonly common: readonly string[]; readonly named: readonly NamedNetworks[] } {
  const parsed = entries.map((entry) => {
    const at = entry.lastIndexOf('=');
    const [name, network] = at < 0 ? [undefined, entry.trim()] : [entry.slice(0, at).trim(), entry.slice(at + 1).trim()];
    if (name === '' || !parseNetwork(network))
      throw new Error(`[api]agent_allowed_networks: "${entry}" is neither a network nor name=network`);
    return { name, network };
  });
  return {
    common: parsed.flatMap(({ name, network }) => (name === undefined ? [network] : [])),
    named: parsed.flatMap(({ name, network }) => (name === undefined ? [] : [{ name, networks: networksOf([network]) }])),
  };
}
/** The keys of driver_info that may name the network that the node's agent runs in. The conductor group may name it too. */
const NETWORK_KEYS = ['provisioning_network', 'cleaning_network', 'inspection_network', 'rescuing_network', 'servicing_network'];
const networkNamesOf = ({
  driver_info: info,
  conductor_group: group,
}: Pick<NodeRecord, 'driver_info' | 'conductor_group'>): readonly unknown[] => [...NETWORK_KEYS.map((key) => info[key]), group];

/** Characters of a MAC address. In a DHCPv6 lease, an IAID follows it. */
const MAC_LENGTH = 17;

const MAX_NAMED = 8;
const listed = (addresses: readonly string[]): string =>
  addresses.length > MAX_NAMED ? `${addresses.slice(0, MAX_NAMED).join(', ')} …` : addresses.join(', ');

/** Throws an Error for invalid options, with a message for the operator. */
export function createAgentSources({ store, options, clock }: AgentSourceParts): AgentSources {
  const mode = options['api.agent_source_check'];
  const { common, named } = allowedNetworks(options['api.agent_allowed_networks']);
  if (mode === 'networks' && common.length + named.length === 0)
    throw new Error('[api]agent_source_check = networks needs [api]agent_allowed_networks');
  const commonNetworks = networksOf(common);

  const leased: ReadInterfaces = async (nodeUuid) => {
    const leases = (await store.leases.ofNode(nodeUuid)).filter(({ expires_at: end }) => end > clock.now());
    return { addresses: leases.map(({ address }) => address), macs: leases.map(({ mac }) => mac.slice(0, MAC_LENGTH)) };
  };
  const inspected: ReadInterfaces = async (nodeUuid) => {
    const interfaces = await store.inventories.interfaces(nodeUuid);
    return {
      addresses: addressesOf(interfaces.flatMap(({ ipv4_address: ipv4, ipv6_address: ipv6 }) => [ipv4, ipv6])),
      macs: interfaces.map(({ mac_address: mac }) => mac).filter(isText),
    };
  };
  /** Only these columns, because anybody may send the requests. */
  async function columnsOf<Column extends keyof NodeRecord>(
    nodeUuid: string,
    ...columns: readonly Column[]
  ): Promise<Pick<NodeRecord, Column>> {
    const [node] = await store.nodes.listColumns(columns, { where: { uuid: nodeUuid }, children: 'all' });
    if (!node) throw new Fault('NodeNotFound', { node: nodeUuid });
    return node;
  }
  const configured: ReadInterfaces = async (nodeUuid) => configuredIn((await columnsOf(nodeUuid, 'network_data')).network_data);
  const KNOWN: Readonly<Record<string, KnownSources>> = {
    lease: { assigned: [leased] },
    known: { assigned: [leased, configured], reported: inspected },
    networks: { assigned: [] },
  };

  const networksFor = async (nodeUuid: string): Promise<readonly Network[]> => {
    if (named.length === 0) return [];
    const names = networkNamesOf(await columnsOf(nodeUuid, 'driver_info', 'conductor_group'));
    return named.filter(({ name }) => names.includes(name)).map(({ networks }) => networks);
  };
  const accepts = ({ addresses, macs }: KnownInterfaces, address: string): boolean =>
    addresses.includes(address) || (isIPv6(address) && macs.some((mac) => interfaceIdFrom(mac) === interfaceIdOf(address)));
  const refusal = (address: string, addresses: readonly string[]): string =>
    mode === 'lease'
      ? `the request came from ${address}, but DHCP gave the node ${listed(addresses)}`
      : `the request came from ${address}, but the known addresses of the node are ${listed(addresses)}`;
  return {
    isAssigned: async (nodeUuid, address) =>
      (await leased(nodeUuid)).addresses.includes(address) || (await configured(nodeUuid)).addresses.includes(address),
    async objection(nodeUuid, address) {
      const known = KNOWN[mode];
      if (!known) return undefined;
      if (address === undefined) return mode === 'networks' ? 'nobody knows where the request came from' : undefined;
      if (commonNetworks.contains(address)) return undefined;
      const addresses: string[] = [];
      for (const read of known.assigned) {
        const found = await read(nodeUuid);
        if (accepts(found, address)) return undefined;
        addresses.push(...found.addresses);
      }
      const own = await networksFor(nodeUuid);
      if (own.some((networks) => networks.contains(address))) return undefined;
      if (addresses.length > 0) return refusal(address, addresses);
      if (mode === 'networks' || common.length > 0 || own.length > 0)
        return `the request came from ${address}, which [api]agent_allowed_networks does not contain`;
      const reported = await known.reported?.(nodeUuid);
      return reported && reported.addresses.length > 0 && !accepts(reported, address) ? refusal(address, reported.addresses) : undefined;
    },
  };
}
