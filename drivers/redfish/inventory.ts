/**
 * The inventory of a machine in Ironic's form, read from its Redfish service (schemas ComputerSystem, Processor, Storage, Drive,
 * EthernetInterface, PCIeFunction, Port). Values that the service leaves out are absent. Each value's type is checked.
 */
import { isMac } from '../../model/idents';
import { defined } from '../../model/json';
import type { Inventory, InventoryDisk, InventoryInterface, JsonObject } from '../../model/records';
import { member, numberOf } from '../../wire/redfish';
import type { RedfishReader } from './reader';

const GIB = 1024 ** 3;
/** Characters that are stored of one text. */
const MAX_TEXT = 1024;
/** Smaller disks cannot take an operating system. */
const MIN_ROOT_BYTES = 4 * GIB;

/** A text that is not empty. */
const text = (value: unknown): string | undefined => {
  const content = typeof value === 'number' ? String(value) : value;
  return typeof content === 'string' && content !== '' ? content.slice(0, MAX_TEXT) : undefined;
};
/** What makers write in place of a serial number. */
const NO_SERIAL = /^(?:to be filled\b.*|0+|n\/?a|none|null|unknown|not (?:specified|available|applicable)|default string|[.\s-]+)$/i;
/** A serial number without the spaces around it. */
function serial(value: unknown): string | undefined {
  const content = text(value)?.trim();
  return content === undefined || content === '' || NO_SERIAL.test(content) ? undefined : content;
}
/** A number of zero or more. */
const positive = (value: unknown): number | undefined => {
  const number = numberOf(value);
  return number !== undefined && number >= 0 ? number : undefined;
};
/** A whole number of zero or more. */
const whole = (value: unknown): number | undefined => {
  const number = positive(value);
  return number === undefined ? undefined : Math.trunc(number);
};
const orNull = <T>(value: T | undefined): T | null => value ?? null;
const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.slice(0, 64).flatMap((item: unknown) => text(item) ?? []) : [];

const textIn = (resource: unknown, name: string): string | undefined =>
  name === 'SerialNumber' ? serial(member(resource, name)) : text(member(resource, name));
/** Member of the resource → name in the inventory. */
type Names = readonly (readonly [string, string])[];
const named = (resource: unknown, names: Names): JsonObject =>
  defined(Object.fromEntries(names.map(([of, to]) => [to, textIn(resource, of)])));

/** InstructionSet → cpu_arch. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  'ARM-A32': 'arm',
  'ARM-A64': 'aarch64',
  'IA-64': 'ia64',
  MIPS32: 'mips',
  MIPS64: 'mips64',
  x86: 'i686',
  'x86-64': 'x86_64',
};
/** ProcessorArchitecture → cpu_arch, for processors without an InstructionSet: of 64 bits, as those of all servers of today. */
const FAMILIES: Readonly<Record<string, string>> = { x86: 'x86_64', ARM: 'aarch64', 'IA-64': 'ia64' };
const BOOT_MODES: Readonly<Record<string, string>> = { UEFI: 'uefi', Legacy: 'bios' };
const lookUp = (table: Readonly<Record<string, string>>, key: unknown): string | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined;

const SYSTEM_VENDOR: Names = [
  ['Model', 'product_name'],
  ['SerialNumber', 'serial_number'],
  ['Manufacturer', 'manufacturer'],
  ['UUID', 'system_uuid'],
];
const STATUS: Names = [
  ['Health', 'health'],
  ['State', 'state'],
  ['HealthRollup', 'health_rollup'],
];
const PCI_FUNCTION: Names = [
  ['DeviceClass', 'class'],
  ['DeviceId', 'product_id'],
  ['VendorId', 'vendor_id'],
  ['SubsystemId', 'subsystem_id'],
  ['SubsystemVendorId', 'subsystem_vendor_id'],
  ['RevisionId', 'revision'],
];
/** Port.Ethernet.LLDPReceive → the names of the parse-lldp hook. */
const LLDP: Names = [
  ['ChassisId', 'switch_chassis_id'],
  ['PortId', 'switch_port_id'],
  ['SystemName', 'switch_system_name'],
  ['SystemDescription', 'switch_system_description'],
];

/** `status`, if the resource has one. */
function statusOf(resource: unknown): JsonObject {
  const status = member(resource, 'Status');
  if (typeof status !== 'object' || status === null) return {};
  const fields = named(status, STATUS);
  return { status: Object.keys(fields).length > 0 ? fields : null };
}

/** Processors other than CPUs (GPU, FPGA, …) run no operating system. */
const isCpu = (processor: unknown): boolean => ['CPU', undefined, null].includes(member(processor, 'ProcessorType') as string);
async function cpuOf(reader: RedfishReader, system: unknown): Promise<JsonObject & { readonly architecture: string }> {
  const processors = (await reader.members(member(system, 'Processors'))).filter(isCpu);
  // The first socket may be empty.
  const describes = (...names: readonly string[]) =>
    processors.find((processor) =>
      names.every((name) => text(member(processor, name)) !== undefined && member(processor, 'Status', 'State') !== 'Absent'),
    );
  const first = describes('InstructionSet') ?? describes('ProcessorArchitecture') ?? describes('Model') ?? processors[0];
  const architecture =
    lookUp(ARCHITECTURES, member(first, 'InstructionSet')) ?? lookUp(FAMILIES, member(first, 'ProcessorArchitecture')) ?? '';
  return {
    count: processors.reduce<number>((sum, processor) => sum + (whole(member(processor, 'TotalThreads')) ?? 0), 0),
    architecture,
    ...defined({ model_name: text(member(first, 'Model')), frequency: whole(member(first, 'MaxSpeedMHz')) }),
  };
}

async function interfacesOf(reader: RedfishReader, system: unknown): Promise<readonly InventoryInterface[]> {
  return (await reader.members(member(system, 'EthernetInterfaces'))).flatMap((item) => {
    const mac = text(member(item, 'MACAddress'))?.replaceAll('-', ':').toLowerCase();
    const name = text(member(item, 'Id'));
    if (!isMac(mac) || name === undefined) return [];
    return [{ mac_address: mac, name, ...defined({ speed_mbps: whole(member(item, 'SpeedMbps')) }) }];
  });
}

/** A Storage resource with its drives and the sizes of its volumes. */
interface Storage {
  readonly resource: unknown;
  readonly drives: readonly unknown[];
  readonly volumeSizes: readonly number[];
}
const sizesOf = (resources: readonly unknown[]): readonly number[] =>
  resources.flatMap((resource) => whole(member(resource, 'CapacityBytes')) ?? []);
async function storagesOf(reader: RedfishReader, system: unknown): Promise<readonly Storage[]> {
  const storages: Storage[] = [];
  for (const resource of await reader.members(member(system, 'Storage')))
    storages.push({
      resource,
      drives: await reader.members(member(resource, 'Drives')),
      volumeSizes: sizesOf(await reader.members(member(resource, 'Volumes'))),
    });
  return storages;
}
/** The devices of the older schema SimpleStorage. */
async function simpleDevicesOf(reader: RedfishReader, system: unknown): Promise<readonly unknown[]> {
  return (await reader.members(member(system, 'SimpleStorage'))).flatMap((item) => {
    const devices = member(item, 'Devices');
    return Array.isArray(devices) ? (devices as unknown[]) : [];
  });
}

/** GiB of the smallest disk for an operating system, less one; 0: there is none. Volumes take precedence over their drives. */
function localGb(storages: readonly Storage[], simpleDevices: readonly unknown[]): number {
  const smallest = (sizes: readonly number[]): number => {
    const enough = sizes.filter((size) => size >= MIN_ROOT_BYTES);
    return enough.length > 0 ? Math.min(...enough) : 0;
  };
  const enabled = simpleDevices.filter((simpleDevice) =>
    ['Enabled', undefined, null].includes(member(simpleDevice, 'Status', 'State') as string),
  );
  const full =
    smallest(storages.flatMap((storage) => storage.volumeSizes)) || smallest(sizesOf(storages.flatMap((storage) => storage.drives)));
  const simple = smallest(sizesOf(enabled));
  const bytes = full > 0 && simple > 0 ? Math.min(full, simple) : Math.max(full, simple);
  return Math.max(0, Math.trunc(bytes / GIB - 1));
}

/** Null where the drive has no value: clients of Ironic expect the keys. */
const textOrNull = (resource: unknown, name: string): string | null => orNull(textIn(resource, name));
const size = (resource: unknown): number | null => orNull(whole(member(resource, 'CapacityBytes')));
const diskOf = (drive: unknown): JsonObject => ({
  name: textOrNull(drive, 'Name'),
  size: size(drive),
  vendor: textOrNull(drive, 'Manufacturer'),
  model: textOrNull(drive, 'Model'),
  serial: textOrNull(drive, 'SerialNumber'),
  ...(text(member(drive, 'MediaType')) === undefined ? {} : { rotational: member(drive, 'MediaType') === 'HDD' }),
});
const simpleDiskOf = (device: unknown): JsonObject => ({ name: textOrNull(device, 'Name'), size: size(device) });

function controllerOf({ resource, drives }: Storage): JsonObject {
  const controllers = member(resource, 'StorageControllers');
  return {
    id: text(member(resource, 'Id')) ?? '',
    name: textOrNull(resource, 'Name'),
    storage_controllers: (Array.isArray(controllers) ? controllers.slice(0, 64) : []).map((controller: unknown) => ({
      member_id: textOrNull(controller, 'MemberId'),
      name: textOrNull(controller, 'Name'),
      raid_types: texts(member(controller, 'SupportedRAIDTypes')),
      speed_gbps: orNull(positive(member(controller, 'SpeedGbps'))),
      controller_protocols: texts(member(controller, 'SupportedControllerProtocols')),
      device_protocols: texts(member(controller, 'SupportedDeviceProtocols')),
      ...statusOf(controller),
    })),
    drives: drives.map((drive) => ({
      name: textOrNull(drive, 'Name'),
      size: size(drive),
      id: textOrNull(drive, 'Id'),
      media_type: textOrNull(drive, 'MediaType'),
      serial_number: textOrNull(drive, 'SerialNumber'),
      manufacturer: textOrNull(drive, 'Manufacturer'),
      model: textOrNull(drive, 'Model'),
      revision: textOrNull(drive, 'Revision'),
      ...named(drive, [['Protocol', 'protocol']]),
      ...statusOf(drive),
    })),
  };
}

async function pciDevicesOf(reader: RedfishReader, system: unknown): Promise<readonly JsonObject[]> {
  const devices: JsonObject[] = [];
  for (const device of await reader.members(member(system, 'PCIeDevices')))
    for (const item of await reader.members(member(device, 'PCIeFunctions'))) {
      const info = named(item, PCI_FUNCTION);
      if (Object.keys(info).length > 0) devices.push(info);
    }
  return devices;
}

/** LLDP neighbours of the machine's network ports: identity of the port → its neighbour. */
export async function lldpOf(reader: RedfishReader, system: unknown): Promise<JsonObject> {
  const neighbours = new Map<string, JsonObject>();
  for (const chassis of await reader.members(member(system, 'Links', 'Chassis')))
    for (const adapter of await reader.members(member(chassis, 'NetworkAdapters')))
      for (const port of await reader.members(member(adapter, 'Ports'))) {
        const received = member(port, 'Ethernet', 'LLDPReceive');
        const neighbour = {
          ...named(received, LLDP),
          ...defined({ switch_vlan_id: whole(member(received, 'ManagementVlanId')) || undefined }),
        };
        const id = text(member(port, 'Id'));
        if (id !== undefined && Object.keys(neighbour).length > 0) neighbours.set(id, neighbour);
      }
  return Object.fromEntries(neighbours);
}

/** The machine's boot mode. Some services show it only in the settings resource of the system. */
async function bootModeOf(reader: RedfishReader, system: unknown): Promise<string | undefined> {
  const here = member(system, 'Boot', 'BootSourceOverrideMode') ?? undefined;
  if (here !== undefined) return lookUp(BOOT_MODES, here);
  const settings = await reader.get(member(system, '@Redfish.Settings', 'SettingsObject'));
  return lookUp(BOOT_MODES, member(settings, 'Boot', 'BootSourceOverrideMode'));
}

export interface RedfishInventory {
  readonly inventory: Inventory;
  readonly localGb: number;
  readonly memoryMb: number | undefined;
  readonly bootMode: string | undefined;
  readonly lldp: JsonObject;
}
/**
 * @param system the ComputerSystem
 * @param neighbours reads what LLDP told the machine's network ports
 */
export async function redfishInventory(
  reader: RedfishReader,
  system: unknown,
  neighbours: typeof lldpOf = lldpOf,
): Promise<RedfishInventory> {
  const memoryMb = whole((positive(member(system, 'MemorySummary', 'TotalSystemMemoryGiB')) ?? 0) * 1024) || undefined;
  const cpu = await cpuOf(reader, system);
  const storages = await storagesOf(reader, system);
  const simpleDevices = await simpleDevicesOf(reader, system);
  const disks = storages.length > 0 ? storages.flatMap(({ drives }) => drives.map(diskOf)) : simpleDevices.map(simpleDiskOf);
  const interfaces = await interfacesOf(reader, system);
  const pciDevices = await pciDevicesOf(reader, system);
  const vendor = named(system, SYSTEM_VENDOR);
  const bootMode = await bootModeOf(reader, system);
  const inventory: Inventory = {
    ...(memoryMb === undefined ? {} : { memory: { physical_mb: memoryMb } }),
    cpu,
    ...(disks.length > 0 ? { disks: disks as unknown as readonly InventoryDisk[] } : {}),
    ...(storages.length > 0 ? { storage_controllers: storages.map(controllerOf) } : {}),
    interfaces,
    ...(pciDevices.length > 0 ? { pci_devices: pciDevices } : {}),
    ...(Object.keys(vendor).length > 0 ? { system_vendor: vendor } : {}),
    ...(bootMode === undefined ? {} : { boot: { current_boot_mode: bootMode } }),
  };
  return { inventory, memoryMb, bootMode, localGb: localGb(storages, simpleDevices), lldp: await neighbours(reader, system) };
}
