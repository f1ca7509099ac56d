/** Hooks for devices: PCI devices, accelerators, a new RAID volume, and the output of hardware-detect. */
import { reasonOf } from '../../../model/errors';
import { isObject, type JsonObject } from '../../../model/json';
import type { Change, InspectionData } from './hook';

const objectsOf = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
/** A ramdisk sends PCI devices in plugin_data, a BMC in the inventory. */
const pciDevices = ({ pluginData, inventory }: InspectionData): readonly JsonObject[] => {
  const fromRamdisk = objectsOf(pluginData['pci_devices']);
  return fromRamdisk.length > 0 ? fromRamdisk : objectsOf((inventory as JsonObject)['pci_devices']);
};

export function accelerators(data: InspectionData): readonly Change[] {
  const devices = pciDevices(data);
  if (devices.length === 0) return [];
  const value = devices.flatMap((device) => {
    const known = data.accelerators.find(
      (accelerator) => accelerator.vendor_id === device['vendor_id'] && accelerator.device_id === device['product_id'],
    );
    return known ? [{ ...known, pci_address: device['bus'] ?? null }] : [];
  });
  return [{ on: 'property', name: 'accelerators', value }];
}

/** Parses texts of comma-separated objects of vendor_id, product_id and name. Throws an Error for the operator. */
export function pciAliases(texts: readonly string[]): readonly Readonly<Record<'vendor_id' | 'product_id' | 'name', string>>[] {
  const names = ['name', 'product_id', 'vendor_id'];
  try {
    const list = (JSON.parse(`[${texts.filter((text) => text !== '').join(',')}]`) as readonly unknown[]).flat();
    const right = list.every(
      (candidate) =>
        isObject(candidate) &&
        Object.keys(candidate).sort().join() === names.join() &&
        names.every((name) => typeof candidate[name] === 'string'),
    );
    if (!right) throw new Error('each entry has exactly vendor_id, product_id and name');
    return list as ReturnType<typeof pciAliases>;
  } catch (error) {
    throw new Error(`[inspector]pci_device_alias: ${reasonOf(error)}`, { cause: error });
  }
}
export function pciCounts({ pluginData, options }: InspectionData): readonly Change[] {
  const devices = objectsOf(pluginData['pci_devices']);
  return pciAliases(options['inspector.pci_device_alias']).flatMap(
    ({ vendor_id: vendor, product_id: product, name }): readonly Change[] => {
      const count = devices.filter((device) => device['vendor_id'] === vendor && device['product_id'] === product).length;
      return count > 0 ? [{ on: 'capability', name, value: String(count) }] : [];
    },
  );
}

/** If exactly one disk was not in the previous inventory, it is the new RAID volume. */
export function raidDevice({ node, inventory, previous }: InspectionData): readonly Change[] {
  const serials = (of: unknown): readonly unknown[] => objectsOf(of).flatMap(({ serial }) => (serial ? [serial] : []));
  if (Object.hasOwn(node.properties, 'root_device') || !previous) return [];
  const before = serials(previous.disks);
  const [serial, ...more] = serials(inventory.disks).filter((candidate) => !before.includes(candidate));
  return serial === undefined || more.length > 0 ? [] : [{ on: 'property', name: 'root_device', value: { serial } }];
}

/** Turns the rows of hardware-detect (class, device, name, value) into nested objects, and removes the rows. */
export function extraHardware({ pluginData, options }: InspectionData): readonly Change[] {
  if (!Object.hasOwn(pluginData, 'data')) return [];
  const rows = pluginData['data'];
  const strict = options['inspector.extra_hardware_strict'];
  const dropped: Change = { on: 'plugin_data', name: 'data', value: undefined };
  if (!Array.isArray(rows) || !rows.every((row) => Array.isArray(row) && (!strict || row.length === 4))) return strict ? [dropped] : [];
  const extra = new Map<string, Map<string, Map<string, unknown>>>();
  for (const row of rows as readonly (readonly unknown[])[]) {
    const [type, device, name] = row.map(String);
    if (type === undefined) continue;
    const devices = extra.get(type) ?? new Map<string, Map<string, unknown>>();
    extra.set(type, devices);
    if (device === undefined) continue;
    const facts = devices.get(device) ?? new Map<string, unknown>();
    devices.set(device, facts);
    if (row.length < 4) continue;
    facts.set(name!, typeof row[3] === 'string' && /^\s*[+-]?\d{1,15}\s*$/.test(row[3]) ? Number(row[3]) : row[3]);
  }
  const plain = [...extra].map(
    ([type, devices]) => [type, Object.fromEntries([...devices].map(([device, facts]) => [device, Object.fromEntries(facts)]))] as const,
  );
  return [{ on: 'plugin_data', name: 'extra', value: Object.fromEntries(plain) }, dropped];
}
