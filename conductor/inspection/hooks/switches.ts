/** Hooks for the links of ports (LLDP) and for their physical networks. */
import { parseNetwork } from '../../../model/idents';
import type { JsonObject } from '../../../model/json';
import { lldpFacts, lldpLink, tlvOf, type Tlv } from './lldp';
import type { Change, InspectionData } from './hook';
import { normalMac } from './interfaces';

/** LLDP data of more interfaces is ignored. */
const MAX_INTERFACES = 64;
/** A frame of 1500 bytes has at most 750 TLVs (§8.4: two bytes each). The rest is ignored. */
const MAX_TLVS = 750;

/** Interfaces by name. `known`: only those that `validate-interfaces` accepted as well-formed. */
function interfacesOf(
  { inventory, pluginData }: InspectionData,
  known: boolean,
): readonly { readonly name: string; readonly mac: string; readonly item: JsonObject }[] {
  const all = (Array.isArray(inventory.interfaces) ? inventory.interfaces : []) as readonly (JsonObject | null)[];
  const accepted = pluginData['all_interfaces'] as object | undefined;
  return all.flatMap((item) => {
    const mac = normalMac(item?.['mac_address']);
    const name = item?.['name'];
    if (!item || mac === undefined || typeof name !== 'string' || (known && !Object.hasOwn(accepted ?? {}, name))) return [];
    return [{ name, mac, item }];
  });
}
/** Undefined if the interface has none. `whole` is false if one is malformed. */
function tlvsOf(
  { pluginData }: InspectionData,
  name: string,
  item: JsonObject,
): { readonly tlvs: readonly Tlv[]; readonly whole: boolean } | undefined {
  const raw = pluginData['lldp_raw'];
  const given =
    (typeof raw === 'object' && raw !== null && Object.hasOwn(raw, name) ? (raw as JsonObject)[name] : undefined) ?? item['lldp'];
  if (!Array.isArray(given)) return undefined;
  const tlvs = given.slice(0, MAX_TLVS).map(tlvOf);
  return { tlvs: tlvs.filter((tlv) => tlv !== undefined), whole: !tlvs.includes(undefined) };
}

export function parseLldp(data: InspectionData): readonly Change[] {
  const parsed = interfacesOf(data, false)
    .slice(0, MAX_INTERFACES)
    .flatMap(({ name, item }) => {
      const facts = lldpFacts(tlvsOf(data, name, item)?.tlvs ?? []);
      return Object.keys(facts).length > 0 ? [[name, facts] as const] : [];
    });
  if (parsed.length === 0) return [];
  const before = data.pluginData['parsed_lldp'] as object | undefined;
  return [{ on: 'plugin_data', name: 'parsed_lldp', value: { ...before, ...Object.fromEntries(parsed) } }];
}

/** Values that an operator or an earlier inspection set stay. */
export function localLinks(data: InspectionData): readonly Change[] {
  return interfacesOf(data, true).flatMap(({ name, mac, item }): readonly Change[] => {
    const received = tlvsOf(data, name, item);
    if (!received?.whole) return [];
    const before = data.ports.find(({ address }) => address === mac)?.local_link_connection ?? {};
    const found = Object.entries(lldpLink(received.tlvs)).filter(([key, value]) => value !== undefined && !Object.hasOwn(before, key));
    if (found.length === 0) return [];
    return [{ on: 'port update', mac, changes: { local_link_connection: { ...before, ...Object.fromEntries(found) } } }];
  });
}

/** Parses entries such as `10.0.0.0/24:name`. Throws an Error for the operator. */
export function cidrMap(entries: readonly string[]): readonly { readonly covers: (address: string) => boolean; readonly name: string }[] {
  return entries.map((entry) => {
    const at = entry.lastIndexOf(':');
    const network = at === -1 ? undefined : parseNetwork(entry.slice(0, at));
    if (!network) throw new Error(`[inspector]physical_network_cidr_map: ${entry} is not network/bits:name`);
    return { covers: (address) => network.contains(address), name: entry.slice(at + 1) };
  });
}
export function physicalNetworks(data: InspectionData): readonly Change[] {
  const map = cidrMap(data.options['inspector.physical_network_cidr_map']);
  return interfacesOf(data, true).flatMap(({ mac, item }): readonly Change[] => {
    const addresses = [item['ipv4_address'], item['ipv6_address']].filter((value) => typeof value === 'string');
    const name = addresses.flatMap((address) => map.find(({ covers }) => covers(address))?.name ?? [])[0];
    const before = data.ports.find(({ address }) => address === mac);
    if (name === undefined || before?.physical_network === name) return [];
    return [{ on: 'port update', mac, changes: { physical_network: name } }];
  });
}
