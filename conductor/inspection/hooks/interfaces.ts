/** Hooks for network interfaces: which of them are valid, and how the node's ports change. */
import { isLoopback } from '../../../model/idents';
import type { Inventory, InventoryInterface } from '../../../model/records';
import { invalidInventory, type Change, type InspectionData } from './hook';

/** Inventories come from the network, so the type of every field is checked. */
type ReportedInterface = Readonly<Partial<Record<keyof InventoryInterface, unknown>>>;
/** An interface as stored in plugin_data, and whether the machine booted from it. */
type KnownInterface = ReportedInterface & { readonly mac_address: string; readonly pxe_enabled: boolean };

/** Returns aa:bb:cc:dd:ee:ff, or undefined if the value is not a MAC address. */
export function normalMac(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const mac = value.toLowerCase().replaceAll('-', ':');
  return /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac) ? mac : undefined;
}
/** The MAC address that the machine booted from, as an address or in pxelinux's form with the hardware type first (01-aa-bb-…). */
function pxeMac(inventory: Inventory): string | undefined {
  const given: unknown = inventory.boot?.pxe_interface;
  if (typeof given !== 'string') return undefined;
  return normalMac(given) ?? normalMac(given.slice(given.indexOf('-') + 1));
}

const addressOf = (item: ReportedInterface): string | undefined => {
  const address = [item.ipv4_address, item.ipv6_address].find((value) => typeof value === 'string' && value !== '');
  return address as string | undefined;
};

/** Virtual functions count too (SR-IOV). */
const MAX_INTERFACES = 4096;
/** Preprocess: plugin_data.all_interfaces, valid_interfaces and macs. Throws if no interface is valid. */
export function validInterfaces({ node, inventory, options }: InspectionData): readonly Change[] {
  if (!Array.isArray(inventory.interfaces)) throw invalidInventory(node, 'no interfaces present in inventory');
  if (inventory.interfaces.length > MAX_INTERFACES) throw invalidInventory(node, `more than ${MAX_INTERFACES} interfaces in inventory`);
  const booted = pxeMac(inventory);
  const all = new Map<string, KnownInterface>();
  for (const item of inventory.interfaces as readonly (ReportedInterface | null)[]) {
    const mac = normalMac(item?.mac_address);
    if (!item || typeof item.name !== 'string' || item.name === '' || mac === undefined) continue;
    const v6 = typeof item.ipv6_address === 'string' ? item.ipv6_address.split('%')[0]! : null;
    all.set(item.name, { ...item, mac_address: mac, ipv6_address: v6, pxe_enabled: mac === booted });
  }
  if (all.size === 0) throw invalidInventory(node, 'no valid network interfaces');
  const which = options['inspector.add_ports'];
  const valid = [...all].filter(([name, candidate]) => {
    const address = addressOf(candidate);
    if (name === 'lo' || (address !== undefined && isLoopback(address))) return false;
    if (which === 'pxe' && booted !== undefined) return candidate.pxe_enabled;
    return which !== 'active' || address !== undefined;
  });
  if (valid.length === 0) throw invalidInventory(node, `no network interfaces match the configuration (add_ports set to "${which}")`);
  return [
    { on: 'plugin_data', name: 'all_interfaces', value: Object.fromEntries(all) },
    { on: 'plugin_data', name: 'valid_interfaces', value: Object.fromEntries(valid) },
    { on: 'plugin_data', name: 'macs', value: valid.map(([, item]) => item.mac_address) },
  ];
}

const clientIdOf = (value: KnownInterface): { readonly clientId?: string } =>
  typeof value.client_id === 'string' && value.client_id !== '' ? { clientId: value.client_id } : {};

/** Creates a port for each valid interface. The options decide whether other ports stay, change or go. */
export function portChanges({ ports, pluginData, options }: InspectionData): readonly Change[] {
  const all = Object.values(pluginData.all_interfaces as Readonly<Record<string, KnownInterface>>);
  const valid = Object.values(pluginData.valid_interfaces as Readonly<Record<string, KnownInterface>>);
  const keep = options['inspector.keep_ports'];
  const expected = keep === 'all' ? undefined : new Set((keep === 'present' ? all : valid).map((item) => item.mac_address));
  const known = new Set(ports.map((port) => port.address));
  const added = options['inspector.add_ports'] === 'disabled' ? [] : valid.filter((candidate) => !known.has(candidate.mac_address));
  const macs = new Set<string>();
  const created = added
    .filter((candidate) => !macs.has(candidate.mac_address) && macs.add(candidate.mac_address))
    .map((item): Change => ({ on: 'port', mac: item.mac_address, pxeEnabled: item.pxe_enabled, ...clientIdOf(item) }));
  const updated = ports.flatMap((port): readonly Change[] => {
    if (expected && !expected.has(port.address)) return [{ on: 'port removal', uuid: port.uuid }];
    const mine = all.filter((candidate) => candidate.mac_address === port.address);
    const booted = mine.some((candidate) => candidate.pxe_enabled);
    const clientId = mine.map(clientIdOf).find((candidate) => candidate.clientId !== undefined)?.clientId;
    const changes = {
      ...(options['inspector.update_pxe_enabled'] && booted !== port.pxe_enabled ? { pxe_enabled: booted } : {}),
      ...(clientId !== undefined && clientId !== port.extra['client-id'] ? { extra: { ...port.extra, 'client-id': clientId } } : {}),
    };
    return Object.keys(changes).length > 0 ? [{ on: 'port update', mac: port.address, changes }] : [];
  });
  return [...created, ...updated];
}
