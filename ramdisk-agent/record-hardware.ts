/** The hardware as a recorder on a running host tells of it: the inventory without what changes by itself, and without what is attached from elsewhere. */
import type { Clock } from '../model/clock';
import type { HardwareRecord } from '../model/hardware';
import type { InventoryDisk } from '../model/records';
import { bootMode, readInventory, type Surroundings } from './inventory/inventory';
import type { Tree } from './inventory/tree';
import type { Run } from './run';

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
const isPhysical = (tree: Tree, name: string): boolean => tree.real(`/sys/class/net/${name}/device/physfn`) === null;
/** In a bond an interface has the bond's address; its own stands here. */
const ownAddress = (tree: Tree, name: string): string | undefined =>
  tree.text(`/sys/class/net/${name}/bonding_slave/perm_hwaddr`)?.toLowerCase();

/** Memory that the kernel knows of, plugged in while it runs too, in blocks; null where it does not count so. */
function presentMb(tree: Tree): number | null {
  const size = parseInt(tree.text('/sys/devices/system/memory/block_size_bytes') ?? '', 16);
  const blocks = tree.list('/sys/devices/system/memory').filter((name) => /^memory\d+$/.test(name)).length;
  return Number.isNaN(size) || blocks === 0 ? null : (size * blocks) / 2 ** 20;
}
const bmcFirmware = (tree: Tree): string | null => {
  const bmc = tree.list('/sys/bus/platform/devices').find((name) => name.startsWith('ipmi_bmc'));
  return bmc === undefined ? null : tree.text(`/sys/bus/platform/devices/${bmc}/firmware_revision`);
};

export async function readHardware(around: Surroundings): Promise<HardwareRecord> {
  const { tree } = around;
  const found = await readInventory(around);
  const told = {
    disks: found.disks.filter(isHardware).map((disk) => ({ ...disk, firmware: firmwareOf(tree, disk) })),
    interfaces: found.interfaces
      .filter(({ name }) => isPhysical(tree, name))
      .map(({ name, mac_address, vendor, product, pci_address, driver, client_id }) => ({
        ...{ name, mac_address: ownAddress(tree, name) ?? mac_address },
        ...{ vendor, product, pci_address, driver, client_id },
      })),
    // The frequency may be the one of the moment.
    cpu: { ...found.cpu, frequency: undefined },
    memory: { physical_mb: (found.memory as Readonly<Record<string, unknown>>)['physical_mb'] ?? null, present_mb: presentMb(tree) },
    system_vendor: found.system_vendor,
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
/** What programs say is good for an hour: asking a BMC is work for it, and for the host's processor. */
export function rarely(run: Run, clock: Clock): Run {
  const kept = new Map<string, { readonly until: number; readonly said: Promise<string> }>();
  return (program, args, options) => {
    const key = [program, ...args].join(' ');
    const known = kept.get(key);
    if (known && known.until > clock.now()) return known.said;
    const said = run(program, args, options);
    said.catch(() => {});
    kept.set(key, { until: clock.now() + REMEMBERED_MS, said });
    return said;
  };
}
