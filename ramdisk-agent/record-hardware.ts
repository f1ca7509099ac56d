/** The hardware as a recorder on a running host tells of it: the inventory without what changes by itself, and without what is attached from elsewhere. */
import type { Clock } from '../model/clock';
import type { HardwareRecord } from '../model/hardware';
import type { InventoryDisk, JsonObject } from '../model/records';
import { readPciDevices } from './inventory/interfaces';
import { bootMode, readInventory, type Surroundings } from './inventory/inventory';
import { readSmbios } from './inventory/smbios';
import type { Tree } from './system/tree';
import type { Run } from './system/run';

/** Disks made of others, or of a network: a host gets and loses them while nobody touches the machine. */
const MADE = /^\/dev\/(md|rbd|drbd|zd|bcache|nullb)/;
const FROM_ELSEWHERE: readonly unknown[] = ['iscsi', 'fc'];
const isHardware = ({ name, tran }: InventoryDisk & { readonly tran?: unknown }): boolean =>
  !MADE.test(name) && !FROM_ELSEWHERE.includes(tran);
const firmwareOf = (tree: Tree, { name }: InventoryDisk): string | null => {
  const base = `/sys/block/${name.replace('/dev/', '').replaceAll('/', '!')}/device`;
  return tree.text(`${base}/firmware_rev`) ?? tree.text(`${base}/rev`);
};

/** A virtual function is its physical function's, and comes and goes with virtual machines. */
const isPhysical = (tree: Tree, device: string): boolean => tree.real(`${device}/physfn`) === null;
/** In a bond an interface has the bond's address; its own stands here. */
const ownAddress = (tree: Tree, name: string): string | undefined =>
  tree.text(`/sys/class/net/${name}/bonding_slave/perm_hwaddr`)?.toLowerCase();

/** Memory that the kernel knows of, plugged in while it runs too, in blocks; null where it does not count so. */
function presentMb(tree: Tree): number | null {
  const size = parseInt(tree.text('/sys/devices/system/memory/block_size_bytes') ?? '', 16);
  const blocks = tree.list('/sys/devices/system/memory').filter((name) => /^memory\d+$/.test(name)).length;
  return Number.isNaN(size) || blocks === 0 ? null : (size * blocks) / 2 ** 20;
}
/** Null: it cannot be told here. */
const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length === 0 ? null : list);
/** What the kernel lets everybody read of the SMBIOS table, where the table itself is root's alone. */
const DMI = { manufacturer: 'sys_vendor', product_name: 'product_name', serial_number: 'product_serial' } as const;
const DMI_FIRMWARE = { vendor: 'bios_vendor', version: 'bios_version', build_date: 'bios_date' } as const;
const filled = (tree: Tree, told: JsonObject, files: Readonly<Record<string, string>>): JsonObject =>
  Object.fromEntries(
    Object.entries(files).map(([member, file]) => [member, told[member] || (tree.text(`/sys/class/dmi/id/${file}`) ?? '')]),
  );
/** Of an interface, by ethtool(8), where the host has it. */
async function interfaceFirmware(run: Run, name: string): Promise<string | null> {
  const said = await run('ethtool', ['-i', name], { timeoutMs: 10_000 }).catch(() => '');
  return /^firmware-version: *(\S.*?) *$/m.exec(said)?.[1]?.replace(/^N\/A$/, '') || null;
}
const bmcFirmware = (tree: Tree): string | null => {
  const bmc = tree.list('/sys/bus/platform/devices').find((name) => name.startsWith('ipmi_bmc'));
  return bmc === undefined ? null : tree.text(`/sys/bus/platform/devices/${bmc}/firmware_revision`);
};

export async function readHardware(around: Surroundings): Promise<HardwareRecord> {
  const { tree } = around;
  const found = await readInventory(around);
  const interfaces = found.interfaces.filter(({ name }) => isPhysical(tree, `/sys/class/net/${name}/device`));
  const firmware = await Promise.all(interfaces.map(({ name }) => interfaceFirmware(around.run, name)));
  const { modules } = readSmbios(tree.bytes('/sys/firmware/dmi/tables/DMI'));
  const told = {
    disks: found.disks.filter(isHardware).map((disk) => ({ ...disk, firmware: firmwareOf(tree, disk) })),
    interfaces: interfaces.map(({ name, mac_address, vendor, product, pci_address, driver, client_id }, index) => ({
      ...{ name, mac_address: ownAddress(tree, name) ?? mac_address },
      ...{ vendor, product, pci_address, driver, client_id, firmware: firmware[index] },
    })),
    pci_devices: orNull(readPciDevices(tree).filter(({ bus }) => isPhysical(tree, `/sys/bus/pci/devices/${bus as string}`))),
    // The frequency may be the one of the moment.
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
  // As the other end will read it.
  return JSON.parse(JSON.stringify(told)) as HardwareRecord;
}

const REMEMBERED_MS = 3_600_000;
/**
 * What programs say is good for an hour: asking a BMC is work for it, and for the host's processor. Where one fails that did not, what it
 * said before stands: a BMC that is busy has not lost its address.
 */
export function rarely(run: Run, clock: Clock): Run {
  const now = (): number => clock.monotonic?.() ?? clock.now();
  const kept = new Map<string, { readonly until: number; readonly said: Promise<string> }>();
  return (program, args, options) => {
    const key = [program, ...args].join(' ');
    const known = kept.get(key);
    if (known && known.until > now()) return known.said;
    const said = run(program, args, options).catch((error: unknown) => known?.said ?? Promise.reject(error as Error));
    said.catch(() => {});
    kept.set(key, { until: now() + REMEMBERED_MS, said });
    return said;
  };
}
