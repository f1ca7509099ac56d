/**
 * A report that a ramdisk posted to the introspection service: parsed before its node is known, and in the form in which it is stored.
 */
import { isIP } from 'node:net';
import { canonicalAddress, isLoopback } from '../../model/idents';
import { isObject } from '../../model/json';
import { repr, str } from '../../model/python';
import type { Inventory, InventoryInterface, JsonObject } from '../../model/records';

/** An interface in the service's data. */
interface ReportedInterface {
  readonly ip: string | null;
  readonly mac: string;
  readonly client_id: unknown;
  readonly pxe: boolean;
}
export interface Report {
  /** The posted data without logs. */
  readonly raw: JsonObject;
  /** With the results of preprocessing. */
  readonly data: JsonObject;
  readonly inventory: Inventory;
  readonly macs: readonly string[];
  readonly bmcAddresses: readonly string[];
  /** Why it cannot be used. They are reported once the node is known. */
  readonly failures: readonly string[];
  /** The report names the interface that the machine booted from. */
  readonly saysBootInterface: boolean;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
/** Addresses that mean that the ramdisk does not know the BMC's address. */
const UNKNOWN = ['0.0.0.0', '::/0'];
function bmcAddress(raw: JsonObject, inBand: 'bmc_address' | 'bmc_v6address', old: string): string | null {
  const { inventory } = raw;
  const value = textOf(isObject(inventory) && Object.hasOwn(inventory, inBand) ? inventory[inBand] : raw[old]);
  return value === undefined || UNKNOWN.includes(value) ? null : value;
}
/** In pxelinux's form (01-aa-bb-…) or as a plain address. */
function bootMac(raw: JsonObject): string | undefined {
  const given = textOf(raw['boot_interface'])?.toLowerCase();
  return given?.includes('-') ? given.slice(given.indexOf('-') + 1).replaceAll('-', ':') : given;
}

function allInterfaces(raw: JsonObject): Readonly<Record<string, ReportedInterface>> {
  const { inventory } = raw;
  if (!isObject(inventory) || Object.keys(inventory).length === 0) throw new Error('Hardware inventory is empty or missing');
  const given: unknown = inventory['interfaces'];
  if (!Array.isArray(given) || given.length === 0) throw new Error('No network interfaces provided in the inventory');
  const booted = bootMac(raw);
  const found = new Map<string, ReportedInterface>();
  for (const item of given as readonly Partial<Record<keyof InventoryInterface, unknown>>[]) {
    if (!isObject(item)) throw new Error(`Malformed interface record: ${repr(item)}`);
    const [name, mac] = [textOf(item['name']), textOf(item['mac_address'])?.toLowerCase()];
    if (name === undefined || mac === undefined || !/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac)) continue;
    const ip = textOf(item['ipv4_address']) ?? textOf(item['ipv6_address'])?.split('%')[0] ?? null;
    found.set(name, { ip, mac, client_id: item['client_id'] ?? null, pxe: mac === booted });
  }
  return Object.fromEntries(found);
}

/** The interfaces that get ports. Throws an Error if there are none. */
function suitable(
  all: Readonly<Record<string, ReportedInterface>>,
  which: string,
  namesBoot: boolean,
): Readonly<Record<string, ReportedInterface>> {
  if (Object.keys(all).length === 0) throw new Error('No interfaces supplied by the ramdisk');
  const chosen = Object.entries(all).filter(([name, { ip, pxe }]) => {
    if (name === 'lo' || (ip !== null && isIP(ip) > 0 && isLoopback(ip))) return false;
    if (which === 'pxe' && namesBoot && !pxe) return false;
    return which === 'all' || ip !== null;
  });
  if (chosen.length === 0) throw new Error(`No suitable interfaces found in ${repr(all)}`);
  return Object.fromEntries(chosen);
}

/** @param addPorts [inspector]add_ports */
export function readReport(given: JsonObject, addPorts: string): Report {
  const raw = Object.fromEntries(Object.entries(given).filter(([name]) => name !== 'logs'));
  const [address, v6] = [bmcAddress(raw, 'bmc_address', 'ipmi_address'), bmcAddress(raw, 'bmc_v6address', 'ipmi_v6address')];
  const booted = bootMac(raw);
  const postedInventory = isObject(raw['inventory']) ? (raw['inventory'] as Inventory) : ({} as Inventory);
  const failures: string[] = [];
  if (raw['error']) failures.push(`Preprocessing hook ramdisk_error: Ramdisk reported error: ${str(raw['error'])}`);
  let learned: JsonObject = {};
  let macs: readonly string[] = [];
  try {
    const all = allInterfaces(raw);
    const interfaces = suitable(all, addPorts, booted !== undefined);
    learned = { all_interfaces: all, interfaces, macs: Object.values(interfaces).map(({ mac }) => mac) };
    macs = [...new Set(Object.values(all).map(({ mac }) => mac))];
  } catch (error) {
    failures.push(`Preprocessing hook validate_interfaces: ${(error as Error).message}`);
  }
  const inventory: Inventory =
    Array.isArray(postedInventory.disks) && postedInventory.disks.length > 0 ? postedInventory : { ...postedInventory, disks: [] };
  return {
    raw,
    data: { ...raw, inventory: inventory, ipmi_address: address, ipmi_v6address: v6, ...learned },
    inventory:
      booted === undefined || inventory.boot?.pxe_interface !== undefined
        ? inventory
        : { ...inventory, boot: { ...inventory.boot, pxe_interface: booted } },
    macs,
    bmcAddresses: [address, v6].flatMap((item) => (item === null ? [] : [canonicalAddress(item) ?? item])),
    failures,
    saysBootInterface: booted !== undefined,
  };
}

const integer = (value: unknown): number | undefined => {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? Math.trunc(number) : undefined;
};
/** Members that the service stores in its own form. The hooks' values of these are only for the node's inventory. */
const OWN = ['inventory', 'ipmi_address', 'ipmi_v6address', 'all_interfaces', 'interfaces', 'valid_interfaces', 'macs'];
/** The data as rules see it and as it is stored: values of hooks replace the posted ones. */
export function processedData({ data, inventory }: Report, pluginData: JsonObject): JsonObject {
  const { cpu, memory } = inventory;
  const facts = {
    local_gb: pluginData['local_gb'],
    cpus: integer(cpu?.count),
    cpu_arch: textOf(cpu?.architecture),
    memory_mb: integer(memory?.physical_mb),
  };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  const found = new Map<string, unknown>([...Object.entries(pluginData).filter(([name]) => !OWN.includes(name)), ...known]);
  const replaced = Object.entries(data).flatMap(([name, value]) =>
    OWN.includes(name) ? [[name, value] as const] : found.has(name) ? [[name, found.get(name)] as const] : [],
  );
  const order = [...Object.keys(facts), ...found.keys()].filter((name, at, all) => all.indexOf(name) === at);
  const more = order.flatMap((name) => (found.has(name) && !Object.hasOwn(data, name) ? [[name, found.get(name)] as const] : []));
  return Object.fromEntries([...replaced, ...more]);
}
/** What hooks get besides the inventory. */
export const pluginDataOf = ({ raw }: Report): JsonObject =>
  Object.fromEntries(Object.entries(raw).filter(([name]) => name !== 'inventory'));
