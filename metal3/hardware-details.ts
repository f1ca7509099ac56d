/**
 * The hardware of a node as metal3 writes it, in HardwareData and in the status of a BareMetalHost: from the inventory of its inspection,
 * and from the later record of its recorder. Hosts send both, so every text and number is checked.
 */
import { defined, isObject, objectOf } from '../model/json';
import type { Json, JsonObject } from '../model/records';
import { storable } from '../model/text';

/** As in metal3's CRDs; what is not known, empty, zero or false is absent. */
export interface HardwareDetails {
  readonly systemVendor?: JsonObject;
  readonly firmware?: JsonObject;
  readonly ramMebibytes?: number;
  readonly nics?: readonly Nic[];
  readonly storage?: readonly JsonObject[];
  readonly cpu?: JsonObject;
  readonly hostname?: string;
}
interface Nic extends JsonObject {
  readonly mac: string;
  readonly name?: string;
}
interface Inspected {
  readonly inventory: Json;
  readonly plugin_data: Json;
}

/** Characters of a text, and entries of a list: an object of Kubernetes has at most 1.5 MiB. */
const MAX_TEXT = 255;
const MAX_ENTRIES = 512;
/** A WWN and a path are longer than a name, and a CPU has hundreds of flags. */
const MAX_FLAGS = 1024;

const objects = (value: Json): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject).slice(0, MAX_ENTRIES) : []);
const text = (value: Json): string | undefined =>
  typeof value === 'string' && value !== '' ? storable(value.slice(0, MAX_TEXT)) : undefined;
const whole = (value: Json): number | undefined => (Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined);
const yes = (value: Json): true | undefined => (value === true ? true : undefined);
/** Absent rather than empty, as metal3's `omitempty` does. */
const filled = <Value extends object>(value: Value): Value | undefined => (Object.keys(value).length === 0 ? undefined : value);

/** The CRD's pattern is not anchored; longer addresses, such as InfiniBand's, are no MAC address. */
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;
const macOf = ({ mac_address: address }: JsonObject): string | undefined => {
  const mac = text(address)?.toLowerCase();
  return mac !== undefined && MAC.test(mac) ? mac : undefined;
};

// ---- parts of an inventory or a record, which have the same members
const systemVendor = (source: JsonObject): JsonObject => {
  const { manufacturer, product_name, serial_number } = objectOf(source['system_vendor']);
  return defined({ manufacturer: text(manufacturer), productName: text(product_name), serialNumber: text(serial_number) });
};
const bios = (source: JsonObject): JsonObject => {
  const { vendor, version, build_date } = objectOf(objectOf(source['system_vendor'])['firmware']);
  return defined({ vendor: text(vendor), version: text(version), date: text(build_date) });
};
const cpu = (source: JsonObject): JsonObject => {
  const { architecture, model_name, count, frequency, flags } = objectOf(source['cpu']);
  const megahertz = Math.round(parseFloat(String(frequency)));
  const names = Array.isArray(flags) ? flags.flatMap((flag) => text(flag) ?? []) : [];
  return defined({
    arch: text(architecture),
    model: text(model_name),
    clockMegahertz: whole(megahertz),
    count: whole(count),
    flags: filled(names.slice(0, MAX_FLAGS).sort()),
  });
};
const kindOf = (rotational: Json, name: Json): string => {
  if (rotational === true) return 'HDD';
  return String(name).startsWith('/dev/nvme') ? 'NVME' : 'SSD';
};
const disk = (source: JsonObject): JsonObject => {
  const { name, by_path: path, rotational, size, vendor, model, serial, wwn, hctl } = source;
  return defined({
    name: text(path) ?? text(name),
    alternateNames: filled([name, path].flatMap((item) => text(item) ?? [])),
    rotational: yes(rotational),
    type: kindOf(rotational, name),
    sizeBytes: whole(size),
    vendor: text(vendor),
    model: text(model),
    serialNumber: text(serial),
    wwn: text(wwn),
    wwnVendorExtension: text(source['wwn_vendor_extension']),
    wwnWithExtension: text(source['wwn_with_extension']),
    hctl: text(hctl),
  });
};
const modelOf = ({ vendor, product }: JsonObject): string | undefined => text([vendor, product].flatMap((id) => text(id) ?? []).join(' '));
/** Whole gigabits, as metal3 has them: 0, which is absent, for slower links and those that are down. */
const speedOf = (mbps: Json): number | undefined => (typeof mbps === 'number' ? whole(Math.floor(mbps / 1000)) : undefined);

// ---- inspection
const VLAN_MAX = 4094;
const vlanOf = (value: Json): number | undefined => {
  const id = Number(value);
  return Number.isInteger(id) && id > 0 && id <= VLAN_MAX ? id : undefined;
};
/** @param lldp of the hook parse-lldp */
function switchOf(lldp: JsonObject): JsonObject {
  const { switch_chassis_id: chassis, switch_port_id: port, switch_system_name: name } = lldp;
  const vlans = objects(lldp['switch_port_vlans']).flatMap((vlan): JsonObject[] => {
    const id = vlanOf(vlan['id']);
    return id === undefined ? [] : [defined({ id, name: text(vlan['name']) })];
  });
  return defined({
    lldp: filled(defined({ switchID: text(chassis), portID: text(port), switchSystemName: text(name) })),
    vlans: filled(vlans),
    vlanId: vlanOf(lldp['switch_port_untagged_vlan_id']),
  });
}
/** As the baremetal-operator does: an interface with an IPv4 and an IPv6 address has two entries. */
function nicsOf(inventory: JsonObject, plugin: JsonObject): readonly Nic[] {
  const all = objectOf(plugin['all_interfaces']);
  const parsed = objectOf(plugin['parsed_lldp']);
  return objects(inventory['interfaces']).flatMap((source): Nic[] => {
    const mac = macOf(source);
    if (mac === undefined) return [];
    const name = text(source['name']);
    const known = name === undefined ? {} : { pxe: yes(objectOf(all[name])['pxe_enabled']), ...switchOf(objectOf(parsed[name])) };
    const [four, six] = [text(source['ipv4_address']), text(source['ipv6_address'])];
    const addresses = four !== undefined && six !== undefined ? [four, six] : [four ?? six];
    return addresses.map((ip) => ({
      ...defined({
        name,
        model: modelOf(source),
        ip,
        speedGbps: speedOf(source['speed_mbps']),
        pciAddress: text(source['pci_address']),
        ...known,
      }),
      mac,
    }));
  });
}
const joined = ({ firmware, ...more }: JsonObject): HardwareDetails => {
  const known = filled(objectOf(firmware));
  return defined({ ...more, firmware: known === undefined ? undefined : { bios: known } });
};
/** The details that the baremetal-operator writes after an inspection. */
export function detailsOfInspection({ inventory, plugin_data: plugin }: Inspected): HardwareDetails {
  const source = objectOf(inventory);
  return joined({
    systemVendor: filled(systemVendor(source)),
    firmware: bios(source),
    ramMebibytes: whole(objectOf(source['memory'])['physical_mb']),
    nics: filled(nicsOf(source, objectOf(plugin))),
    storage: filled(objects(source['disks']).map(disk)),
    cpu: filled(cpu(source)),
    hostname: text(source['hostname']),
  });
}

// ---- records
/** Bonds and VLANs of the deployed system are no hardware: they have neither a driver nor a place on a bus. */
const isHardware = ({ driver, pci_address: place }: JsonObject): boolean => text(driver) !== undefined || text(place) !== undefined;
/** A record has no IP address, switch or boot interface: these are what inspection found for the MAC address. */
function recordedNics(record: JsonObject, before: readonly Nic[]): readonly Nic[] {
  return objects(record['interfaces']).flatMap((source): Nic[] => {
    const mac = macOf(source);
    if (mac === undefined) return [];
    const known = before.filter((nic) => nic.mac.toLowerCase() === mac);
    if (known.length === 0 && !isHardware(source)) return [];
    const { has_carrier: carrier, speed_mbps: mbps } = source;
    return (known.length === 0 ? [{ mac }] : known).map((nic) => {
      const { speedGbps, ...kept } = nic as Nic & { readonly speedGbps?: number };
      // A recorder of an older release does not know the link.
      const speed = carrier === undefined ? speedGbps : carrier === true ? speedOf(mbps) : undefined;
      const changed = { name: text(source['name']), model: modelOf(source), pciAddress: text(source['pci_address']), speedGbps: speed };
      return { ...kept, ...defined(changed), mac };
    });
  });
}
/** JsonObject that the record does not know keep their values. */
const over = (before: JsonObject | undefined, now: JsonObject): JsonObject | undefined => filled({ ...before, ...now });

/** @param before what inspection found, or what metal3 has */
export function withRecord(before: HardwareDetails, record: JsonObject): HardwareDetails {
  const { disks, interfaces } = record;
  return joined({
    systemVendor: over(before.systemVendor, systemVendor(record)),
    firmware: over(objectOf(before.firmware?.['bios']), bios(record)),
    ramMebibytes: whole(objectOf(record['memory'])['physical_mb']) ?? before.ramMebibytes,
    nics: Array.isArray(interfaces) ? recordedNics(record, before.nics ?? []) : before.nics,
    storage: Array.isArray(disks) ? objects(disks).map(disk) : before.storage,
    cpu: over(before.cpu, cpu(record)),
    hostname: text(record['hostname']) ?? before.hostname,
  });
}
/** The interfaces of a record without a link, which HardwareData shows only as a missing speed. */
export const linksDown = (record: JsonObject): readonly string[] =>
  objects(record['interfaces'])
    .filter((source) => source['has_carrier'] === false && isHardware(source))
    .flatMap(({ name }) => text(name) ?? [])
    .sort();
