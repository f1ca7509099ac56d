/** The parts of a simulated machine, and the inventory that its agent reports. */
import { createHash } from 'node:crypto';
import type { Inventory, JsonObject } from '../../model/records';

export interface DiskDescription {
  /** /dev/sda, … */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  readonly serial: string;
  readonly rotational: boolean;
  readonly model: string;
}
export interface MachineDescription {
  readonly name: string;
  /** UUID as SMBIOS and Redfish show it. */
  readonly uuid: string;
  readonly serial: string;
  readonly architecture: 'x86_64' | 'aarch64';
  /** The boot mode unless the BMC sets one. */
  readonly mode: 'uefi' | 'bios';
  readonly cpus: number;
  readonly memoryMiB: number;
  /** In lower case; the first one belongs to the boot interface. */
  readonly macs: readonly string[];
  /** Address of the first interface in the agent's inventory; no packet goes there. */
  readonly address: string;
  readonly disks: readonly DiskDescription[];
  readonly bmcAddress: string;
  readonly manufacturer: string;
  readonly product: string;
}

const GIB = 2 ** 30;
export const MANUFACTURER = 'Bloomery';
export const PRODUCT = 'Simulated machine';

/** The parts of a machine, without names. */
export interface Build {
  readonly cpus: number;
  readonly memoryGiB: number;
  readonly nics: number;
  readonly disks: readonly (readonly [kind: keyof typeof DISKS, count: number, sizeGiB: number])[];
}
const DISKS = {
  ssd: { rotational: false, model: 'Simulated SSD', device: (index: number) => `/dev/sd${String.fromCharCode(97 + index)}` },
  disk: { rotational: true, model: 'Simulated disk', device: (index: number) => `/dev/sd${String.fromCharCode(97 + index)}` },
  nvme: { rotational: false, model: 'Simulated NVMe', device: (index: number) => `/dev/nvme${index}n1` },
  virtio: { rotational: true, model: 'QEMU', device: (index: number) => `/dev/vd${String.fromCharCode(97 + index)}` },
} as const;
/** Kinds with the same value share one count of device names. */
const DEVICE_NAMES = { ssd: 'sd', disk: 'sd', nvme: 'nvme', virtio: 'vd' } as const;
const DEFAULT_BUILD: Build = {
  cpus: 8,
  memoryGiB: 16,
  nics: 2,
  disks: [
    ['ssd', 1, 100],
    ['disk', 1, 500],
  ],
};
/** The values from which a seed chooses. */
const CPUS = [4, 8, 16, 24, 32, 48, 64, 96, 128, 192];
const MEMORY_GIB_PER_CPU = [2, 4, 8];
const NICS = [1, 2, 2, 4];
const BOOT_DISKS: readonly Build['disks'][number][] = [
  ['ssd', 1, 240],
  ['ssd', 2, 480],
  ['ssd', 2, 960],
  ['disk', 2, 600],
];
const DATA_DISKS: readonly Build['disks'][number][] = [
  ['nvme', 0, 0],
  ['nvme', 2, 1920],
  ['nvme', 4, 3840],
  ['disk', 8, 4000],
  ['disk', 12, 8000],
];

/** The parts that a seed chooses for a machine; deterministic in seed and number. */
function buildOf(seed: number, index: number): Build {
  const bytes = createHash('sha256').update(`${seed}/${index}`).digest();
  const pick = <T>(at: number, from: readonly T[]): T => from[bytes.readUInt16LE(at * 2) % from.length]!;
  const cpus = pick(0, CPUS);
  return {
    cpus,
    memoryGiB: cpus * pick(1, MEMORY_GIB_PER_CPU),
    nics: pick(2, NICS),
    disks: [pick(3, BOOT_DISKS), pick(4, DATA_DISKS)],
  };
}

/**
 * The machine with this number, deterministic in number and seed. There are at most 65,536 machines.
 * @param seed absent: all machines have the same parts; a `Build`: its parts
 */
export function describeMachine(index: number, bmcAddress: string, seed?: number | Build): MachineDescription {
  const hex = index.toString(16).padStart(4, '0');
  const { cpus, memoryGiB, nics, disks } = seed === undefined ? DEFAULT_BUILD : typeof seed === 'object' ? seed : buildOf(seed, index);
  const names = { sd: 0, nvme: 0, vd: 0 };
  return {
    name: `sim-${index}`,
    uuid: `b100e000-0000-4000-8000-00000000${hex}`,
    serial: `SIM${String(index).padStart(6, '0')}`,
    architecture: 'x86_64',
    mode: 'uefi',
    cpus,
    memoryMiB: memoryGiB * 1024,
    macs: Array.from({ length: nics }, (_, nic) => `52:54:0${nic}:b1:${hex.slice(0, 2)}:${hex.slice(2)}`),
    // 198.18.0.0/15 is reserved for benchmark tests (RFC 2544).
    address: `198.18.${index >> 8}.${index & 255}`,
    disks: disks.flatMap(([kind, count, sizeGiB]) =>
      Array.from({ length: count }, () => {
        const { device, rotational, model } = DISKS[kind];
        const at = names[DEVICE_NAMES[kind]]++;
        return { name: device(at), size: sizeGiB * GIB, serial: `${kind.toUpperCase()}${at}${hex}`, rotational, model };
      }),
    ),
    bmcAddress,
    manufacturer: MANUFACTURER,
    product: PRODUCT,
  };
}

/** @param bootInterface the address in the kernel's command line (BOOTIF) */
export const inventoryOf = (machine: MachineDescription, mode: 'uefi' | 'bios', bootInterface: string | undefined): Inventory => ({
  interfaces: machine.macs.map((mac, index) => ({
    name: `eth${index}`,
    mac_address: mac,
    ipv4_address: index === 0 ? machine.address : null,
    ipv6_address: null,
    has_carrier: index === 0,
    lldp: null,
    vendor: '0x1af4',
    product: '0x0001',
    client_id: null,
    biosdevname: null,
    speed_mbps: 10_000,
    pci_address: `0000:00:0${index + 3}.0`,
    driver: 'virtio_net',
  })),
  cpu: {
    model_name: 'Simulated CPU',
    frequency: '2400.0',
    count: machine.cpus,
    architecture: machine.architecture,
    flags: ['fpu', 'aes'],
    socket_count: 1,
  },
  disks: machine.disks.map(({ name, size, serial, rotational, model }, index) => ({
    name,
    model,
    size,
    rotational,
    wwn: `0x5000c500${serial.slice(-4)}${String(index).padStart(4, '0')}`,
    serial,
    vendor: MANUFACTURER,
    wwn_with_extension: null,
    wwn_vendor_extension: null,
    hctl: `${index}:0:0:0`,
    by_path: `/dev/disk/by-path/pci-0000:00:1f.2-ata-${index + 1}`,
    logical_sectors: 512,
    physical_sectors: 4096,
    tran: 'sata',
  })),
  memory: { total: machine.memoryMiB * 2 ** 20, physical_mb: machine.memoryMiB },
  bmc_address: machine.bmcAddress,
  bmc_v6address: '::/0',
  bmc_mac: machine.macs[0]!.replace(/^52:54/, '52:55'),
  system_vendor: {
    product_name: machine.product,
    serial_number: machine.serial,
    manufacturer: machine.manufacturer,
    firmware: { vendor: machine.manufacturer, version: '1.0', build_date: '01/01/2026' },
  } satisfies JsonObject,
  boot: { current_boot_mode: mode, ...(bootInterface === undefined ? {} : { pxe_interface: bootInterface }) },
  hostname: machine.name,
});
