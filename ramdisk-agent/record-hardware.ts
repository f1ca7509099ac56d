/** The hardware of a running host for its recorder: the inventory without values that change by themselves, and without remote devices. */
import type { Clock } from '../model/clock';
import type { HardwareRecord } from '../model/hardware-records';
import type { InventoryDisk, JsonObject } from '../model/records';
import { transport } from './inventory/disks';
import { readPciDevices } from './inventory/interfaces';
import { bootMode, readInventory, type HostEnvironment } from './inventory/inventory';
import { readSmbios } from './inventory/smbios';
import type { Tree } from './system/tree';
import type { Run } from './system/run';

/** Virtual disks, and transports of network disks: a host gets and loses them without any change of hardware. */
const VIRTUAL = /^\/dev\/(md|rbd|drbd|zd|bcache|nullb)/;
const REMOTE: readonly (string | null)[] = ['iscsi', 'fc', 'fcoe'];
function isHardware(tree: Tree, { name }: InventoryDisk): boolean {
  const own = name.replace('/dev/', '').replaceAll('/', '!');
  // The transport of a multipath device is that of its paths.
  const paths = tree.list(`/sys/block/${own}/slaves`);
  return !VIRTUAL.test(name) && ![own, ...paths].some((path) => REMOTE.includes(transport(tree, path)));
}
const firmwareOf = (tree: Tree, { name }: InventoryDisk): string | null => {
  const base = `/sys/block/${name.replace('/dev/', '').replaceAll('/', '!')}/device`;
  return tree.text(`${base}/firmware_rev`) ?? tree.text(`${base}/rev`);
};

/** Virtual functions belong to their physical function, and come and go with virtual machines. */
const isPhysical = (tree: Tree, device: string): boolean => tree.real(`${device}/physfn`) === null;
/** The permanent address of an interface in a bond, which otherwise shows the bond's address. Undefined: it is in no bond. */
const ownAddress = (tree: Tree, name: string): string | undefined =>
  tree.text(`/sys/class/net/${name}/bonding_slave/perm_hwaddr`)?.toLowerCase();

/** Memory in MiB that the kernel knows, including hot-plugged memory; null where the kernel does not count blocks. */
function presentMb(tree: Tree): number | null {
  const size = parseInt(tree.text('/sys/devices/system/memory/block_size_bytes') ?? '', 16);
  const blocks = tree.list('/sys/devices/system/memory').filter((name) => /^memory\d+$/.test(name)).length;
  return Number.isNaN(size) || blocks === 0 ? null : (size * blocks) / 2 ** 20;
}
/** Null instead of an empty list: the value is not available on this host. */
const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);
/** SMBIOS values that every user may read. Only root can read the table itself. */
const DMI = { manufacturer: 'sys_vendor', product_name: 'product_name', serial_number: 'product_serial' } as const;
const DMI_FIRMWARE = { vendor: 'bios_vendor', version: 'bios_version', build_date: 'bios_date' } as const;
const filled = (tree: Tree, table: JsonObject, files: Readonly<Record<string, string>>): JsonObject =>
  Object.fromEntries(
    Object.entries(files).map(([member, file]) => [member, table[member] || (tree.text(`/sys/class/dmi/id/${file}`) ?? '')]),
  );
/** An interface's firmware by ethtool(8), if the host has it. */
async function interfaceFirmware(run: Run, name: string): Promise<string | null> {
  const output = await run('ethtool', ['-i', name], { timeoutMs: 10_000 }).catch(() => '');
  return (
    /^firmware-version:(.*)$/m
      .exec(output)?.[1]
      ?.trim()
      .replace(/^N\/A$/, '') || null
  );
}
const bmcFirmware = (tree: Tree): string | null => {
  const bmc = tree.list('/sys/bus/platform/devices').find((name) => name.startsWith('ipmi_bmc'));
  return bmc === undefined ? null : tree.text(`/sys/bus/platform/devices/${bmc}/firmware_revision`);
};

export async function readHardware(environment: HostEnvironment): Promise<HardwareRecord> {
  const { tree } = environment;
  const found = await readInventory(environment);
  const interfaces = found.interfaces.filter(({ name }) => isPhysical(tree, `/sys/class/net/${name}/device`));
  const firmware = await Promise.all(interfaces.map(({ name }) => interfaceFirmware(environment.run, name)));
  const { modules } = readSmbios(tree.bytes('/sys/firmware/dmi/tables/DMI'));
  const hardware = {
    disks: found.disks.filter((disk) => isHardware(tree, disk)).map((disk) => ({ ...disk, firmware: firmwareOf(tree, disk) })),
    interfaces: interfaces.map(
      ({ name, mac_address, has_carrier, speed_mbps, vendor, product, pci_address, driver, client_id }, index) => ({
        name,
        mac_address: ownAddress(tree, name) ?? mac_address,
        has_carrier,
        speed_mbps,
        vendor,
        product,
        pci_address,
        driver,
        client_id,
        firmware: firmware[index],
      }),
    ),
    pci_devices: orNull(readPciDevices(tree).filter(({ bus }) => isPhysical(tree, `/sys/bus/pci/devices/${bus as string}`))),
    // The frequency may be the current one.
    cpu: { ...found.cpu, frequency: undefined },
    memory: {
      physical_mb: (found.memory as Readonly<Record<string, unknown>>)['physical_mb'] ?? null,
      present_mb: presentMb(tree),
      modules: orNull(modules),
    },
    system_vendor: {
      ...filled(tree, found.system_vendor as JsonObject, DMI),
      firmware: filled(tree, (found.system_vendor as JsonObject)['firmware'] as JsonObject, DMI_FIRMWARE),
    },
    boot: { current_boot_mode: bootMode(tree) },
    hostname: found.hostname,
    bmc_address: found.bmc_address ?? null,
    bmc_v6address: found.bmc_v6address ?? null,
    bmc_mac: found['bmc_mac'] ?? null,
    bmc_firmware: bmcFirmware(tree),
  };
  // Normalized as the server will parse it.
  return JSON.parse(JSON.stringify(hardware)) as HardwareRecord;
}

const LIFETIME_MS = 3_600_000;
/**
 * Caches programs' output for an hour, since queries to a BMC take time of the BMC and the host. If a program fails later, its earlier
 * output is used: a BMC that is busy still has its address.
 */
export function cached(run: Run, clock: Clock): Run {
  const now = (): number => clock.monotonic?.() ?? clock.now();
  const outputs = new Map<string, { readonly until: number; readonly output: Promise<string> }>();
  return (program, args, options) => {
    const key = [program, ...args].join(' ');
    const known = outputs.get(key);
    if (known && known.until > now()) return known.output;
    const output = run(program, args, options).catch((error: unknown) => known?.output ?? Promise.reject(error as Error));
    output.catch(() => {});
    outputs.set(key, { until: now() + LIFETIME_MS, output });
    return output;
  };
}
