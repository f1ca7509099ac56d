/**
 * Plans the network of the ramdisk by OpenStack's network_data.json: links (interfaces, bonds, VLANs), networks with addresses and routes,
 * and name servers. The plan is data. Every word in it is checked here: each is an address, a number, or the kernel's name of an interface.
 */
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { hostOf, subnetOf } from './addresses';

export type NetworkOperation =
  /** A program and its words; no shell sees them. */
  | { readonly kind: 'run'; readonly words: readonly string[] }
  /** A setting below /proc or /sys. */
  | { readonly kind: 'set'; readonly path: string; readonly value: string }
  /** A DHCP client that keeps running. */
  | { readonly kind: 'dhcp'; readonly name: string }
  | { readonly kind: 'dhcpv6'; readonly name: string };
export interface NetworkPlan {
  readonly operations: readonly NetworkOperation[];
  readonly nameServers: readonly string[];
  /** Interfaces with static addresses: ready when they have a link and their addresses are usable. */
  readonly addressed: readonly string[];
  /** Messages about the parts of the data that the plan leaves out. */
  readonly warnings: readonly string[];
}

const MAX_LINKS = 256;
const MAX_NETWORKS = 1024;
const MAX_ROUTES = 1024;
/** The resolver ignores further name servers (resolv.conf(5)). */
const MAX_NAME_SERVERS = 3;
/** The most characters of an interface's name: IFNAMSIZ (16) without the final NUL. */
const MAX_NAME = 15;
const MIIMON_MS = 100;
const BOND = 'bond';
const MAC = /^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/;
const BOND_MODES = ['balance-rr', 'active-backup', 'balance-xor', 'broadcast', '802.3ad', 'balance-tlb', 'balance-alb'];
const HASH_POLICIES = ['layer2', 'layer2+3', 'layer3+4', 'encap2+3', 'encap3+4', 'vlan+srcmac'];

const invalid = (problem: string): Error => new Error(`network_data: ${problem}`);

/** Throws if the member is not a list of objects, or is too long. */
function listIn(data: JsonObject, name: string, most: number): readonly JsonObject[] {
  const list = data[name] ?? [];
  if (!Array.isArray(list) || list.length > most) throw invalid(`${name} is not a list of up to ${most} items`);
  if (!list.every(isObject)) throw invalid(`${name} has items that are not objects`);
  return list;
}
function textIn(item: JsonObject, name: string, what: string): string {
  const value = item[name];
  if (typeof value !== 'string' || value === '') throw invalid(`${what} has no ${name}`);
  return value;
}
function macIn(item: JsonObject, name: string): string | undefined {
  const value = item[name];
  const mac = typeof value === 'string' ? value.toLowerCase().replaceAll('-', ':') : '';
  return MAC.test(mac) ? mac : undefined;
}
function numberIn(item: JsonObject, name: string, least: number, most: number): number | undefined {
  const value = typeof item[name] === 'string' && /^\d{1,9}$/.test(item[name]) ? Number(item[name]) : item[name];
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most ? value : undefined;
}
/** Ids are untrusted: messages quote them, cut to 64 characters, and no operation contains them. */
const quoted = (id: string): string => JSON.stringify(id.slice(0, 64));

const ip = (...words: readonly string[]): NetworkOperation => ({ kind: 'run', words: ['ip', ...words] });

/** The links of the data. */
interface Links {
  /** Id → the name that the kernel has or will have for it. */
  readonly names: Map<string, string>;
  readonly operations: NetworkOperation[];
  /** The kernel's names in the order in which the interfaces come up: a VLAN follows its parent. */
  readonly up: string[];
  readonly warnings: string[];
}

/** The MAC addresses by which the data names interfaces of the machine. */
export const neededMacs = (data: JsonObject): readonly string[] =>
  listIn(data, 'links', MAX_LINKS)
    .filter((link) => link['type'] !== 'bond' && link['type'] !== 'vlan')
    .flatMap((link) => macIn(link, 'ethernet_mac_address') ?? []);

/** Adds a link that is neither a bond nor a VLAN. Its MAC address identifies the interface; its type (phy, ovs, …) does not matter. */
function addInterface(link: JsonObject, id: string, interfaces: ReadonlyMap<string, string>, { names, operations, warnings }: Links): void {
  const mac = macIn(link, 'ethernet_mac_address');
  const name = interfaces.get(mac ?? '');
  if (name === undefined) {
    warnings.push(`no interface has the MAC address of link ${quoted(id)}`);
    return;
  }
  names.set(id, name);
  operations.push(...sized(link, name));
}
const sized = (link: JsonObject, name: string): readonly NetworkOperation[] => {
  const mtu = numberIn(link, 'mtu', 68, 65_535);
  return mtu === undefined ? [] : [ip('link', 'set', name, 'mtu', String(mtu))];
};

function addBond(link: JsonObject, id: string, { names, operations, up, warnings }: Links): void {
  const mode = link['bond_mode'];
  if (typeof mode !== 'string' || !BOND_MODES.includes(mode)) throw invalid(`bond ${quoted(id)} has an unknown bond_mode`);
  const ids = Array.isArray(link['bond_links']) ? (link['bond_links'] as readonly unknown[]) : [];
  const members = [...new Set(ids.flatMap((member) => (typeof member === 'string' ? (names.get(member) ?? []) : [])))];
  if (members.length === 0) throw invalid(`bond ${quoted(id)} has no interface`);
  if (members.length < ids.length) warnings.push(`bond ${quoted(id)} has ${members.length} of its ${ids.length} links`);
  const count = up.filter((name) => name.startsWith(BOND)).length;
  const name = `${BOND}${count}`;
  names.set(id, name);
  up.push(name);
  const setting = (key: string, value: string): NetworkOperation => ({ kind: 'set', path: `/sys/class/net/${name}/bonding/${key}`, value });
  const mac = macIn(link, 'ethernet_mac_address');
  const policy = link['bond_xmit_hash_policy'];
  // Without max_bonds=0 the module creates a bond0 when it is loaded.
  if (count === 0) operations.push({ kind: 'run', words: ['modprobe', 'bonding', 'max_bonds=0'] });
  operations.push(
    ip('link', 'add', 'name', name, 'type', 'bond'),
    setting('mode', mode),
    setting('miimon', String(numberIn(link, 'bond_miimon', 1, 60_000) ?? MIIMON_MS)),
    ...(typeof policy === 'string' && HASH_POLICIES.includes(policy) ? [setting('xmit_hash_policy', policy)] : []),
    ...(mac === undefined ? [] : [ip('link', 'set', name, 'address', mac)]),
    // An interface joins a bond while it is down.
    ...members.flatMap((member) => [ip('link', 'set', member, 'down'), ip('link', 'set', member, 'master', name)]),
    ...sized(link, name),
  );
}

function addVlan(link: JsonObject, id: string, parent: string, { names, operations, up }: Links): void {
  const vlan = numberIn(link, 'vlan_id', 1, 4094);
  if (vlan === undefined) throw invalid(`VLAN ${quoted(id)} has no vlan_id from 1 to 4094`);
  const name = `${parent}.${vlan}`;
  if (name.length > MAX_NAME) throw invalid(`VLAN ${quoted(id)} is in too many others`);
  const mac = macIn(link, 'vlan_mac_address');
  names.set(id, name);
  up.push(name);
  operations.push(
    ip('link', 'add', 'link', parent, 'name', name, 'type', 'vlan', 'id', String(vlan)),
    ...(mac === undefined ? [] : [ip('link', 'set', name, 'address', mac)]),
    ...sized(link, name),
  );
}

/** Adds the interfaces first, then the bonds of interfaces, then the VLANs on either. */
function linksOf(data: JsonObject, interfaces: ReadonlyMap<string, string>): Links {
  // All interfaces come up, also those without a network, so that they receive LLDP and report their carrier.
  const links: Links = { names: new Map(), operations: [], up: [...interfaces.values()], warnings: [] };
  const all = listIn(data, 'links', MAX_LINKS).map((link) => ({ link, id: textIn(link, 'id', 'a link'), type: link['type'] }));
  if (new Set(all.map(({ id }) => id)).size < all.length) throw invalid('two links have one id');
  for (const { link, id, type } of all) if (type !== 'bond' && type !== 'vlan') addInterface(link, id, interfaces, links);
  for (const { link, id, type } of all) if (type === 'bond') addBond(link, id, links);
  let waiting = all.filter(({ type }) => type === 'vlan');
  while (waiting.length > 0) {
    const placed = waiting.filter(({ link, id }) => {
      const parent = links.names.get(textIn(link, 'vlan_link', `VLAN ${quoted(id)}`));
      if (parent !== undefined) addVlan(link, id, parent, links);
      return parent !== undefined;
    });
    if (placed.length === 0) {
      for (const { id } of waiting) links.warnings.push(`the vlan_link of VLAN ${quoted(id)} is missing`);
      break;
    }
    waiting = waiting.filter((candidate) => !placed.includes(candidate));
  }
  return links;
}

/** Routes of one network, through its interface. */
function routesOf(network: JsonObject, name: string, family: 4 | 6, warnings: string[]): readonly NetworkOperation[] {
  return listIn(network, 'routes', MAX_ROUTES).flatMap((route) => {
    const to = subnetOf(route['network'], route['netmask']);
    const gateway = hostOf(route['gateway'], family);
    if (to?.family !== family || gateway === undefined) {
      warnings.push(`a route through ${name} has no network, mask or gateway of IPv${family}`);
      return [];
    }
    return ip(`-${family}`, 'route', 'replace', `${to.address}/${to.prefix}`, 'via', gateway, 'dev', name);
  });
}

/** The name servers of the whole data, of its networks, and of their routes. */
function nameServersOf(data: JsonObject): readonly string[] {
  const networks = listIn(data, 'networks', MAX_NETWORKS);
  const places = [data, ...networks, ...networks.flatMap((network) => listIn(network, 'routes', MAX_ROUTES))];
  const servers = places
    .flatMap((place) => listIn(place, 'services', MAX_NETWORKS))
    .filter(({ type }) => type === 'dns')
    .flatMap(({ address }) => hostOf(address) ?? []);
  return [...new Set(servers)].slice(0, MAX_NAME_SERVERS);
}

/** The types of networks with static addresses, and their families. */
const TYPES: Readonly<Record<string, 4 | 6 | undefined>> = { ipv4: 4, ipv6: 6 };
const STATEFUL = new Set(['ipv6_dhcp', 'ipv6_dhcpv6-stateful']);
const ADVERTISED = new Set(['ipv6_slaac', 'ipv6_dhcpv6-stateless']);

/**
 * @param interfaces MAC address, in lower case → the kernel's name of the interface
 * @throws Error when the data is not network data, or when no link of it exists here
 */
export function planNetwork(data: unknown, interfaces: ReadonlyMap<string, string>): NetworkPlan {
  if (!isObject(data)) throw invalid('not an object');
  const networks = listIn(data, 'networks', MAX_NETWORKS);
  // Links alone say nothing about addresses; Ironic's standalone networking sends such data.
  if (networks.length === 0) throw invalid('no networks');
  const { names, operations, up, warnings } = linksOf(data, interfaces);
  if (names.size === 0) throw invalid('none of its links is an interface of this machine');
  const [addressed, silenced, clients, clients6] = [new Set<string>(), new Set<string>(), new Set<string>(), new Set<string>()];
  const routes: NetworkOperation[] = [];
  const advertised = new Set(networks.filter(({ type }) => String(type).startsWith('ipv6_')).map(({ link }) => names.get(String(link))));
  for (const network of networks) {
    const name = names.get(textIn(network, 'link', 'a network'));
    const id = quoted(String(network['id']));
    const type = String(network['type']);
    const family = TYPES[type];
    if (name === undefined) warnings.push(`the link of network ${id} is missing`);
    else if (type === 'ipv4_dhcp') clients.add(name);
    else if (STATEFUL.has(type)) clients6.add(name);
    // The kernel makes addresses of advertised prefixes by itself.
    else if (family === undefined && !ADVERTISED.has(type)) warnings.push(`network ${id} has an unknown type`);
    else if (family !== undefined) {
      const own = subnetOf(network['ip_address'], network['netmask']);
      if (own?.family !== family) throw invalid(`network ${id} has no address with a mask of IPv${family}`);
      if (family === 6 && !advertised.has(name)) silenced.add(name);
      operations.push(ip(`-${family}`, 'addr', 'add', `${own.address}/${own.prefix}`, 'dev', name));
      addressed.add(name);
      routes.push(...routesOf(network, name, family, warnings));
    }
  }
  return {
    operations: [
      ...operations,
      // If all IPv6 addresses of an interface are static, router advertisements must not add others.
      ...[...silenced].map((name): NetworkOperation => ({ kind: 'set', path: `/proc/sys/net/ipv6/conf/${name}/accept_ra`, value: '0' })),
      ...up.map((name) => ip('link', 'set', name, 'up')),
      // The routes come last, since a gateway can be in any of the networks.
      ...routes,
      ...[...clients].map((name): NetworkOperation => ({ kind: 'dhcp', name })),
      ...[...clients6].map((name): NetworkOperation => ({ kind: 'dhcpv6', name })),
    ],
    nameServers: nameServersOf(data),
    addressed: [...addressed],
    warnings,
  };
}
