/** The hardware in the server's form: the inventory and further keys. */
import type { Inventory, InventoryDisk, JsonObject } from '../../model/records';
import type { Run } from '../system/run';
import { findDisks, inventoried } from './disks';
import { type Addresses, readInterfaces } from './interfaces';
import { readCpu, readMemory } from './processor';
import { readSmbios } from './smbios';
import type { Tree } from '../system/tree';

export interface HostEnvironment {
  readonly tree: Tree;
  readonly run: Run;
  /** os.networkInterfaces() */
  readonly addresses: () => Addresses;
  /** uname -m */
  readonly machine: string;
  readonly hostname: () => string;
  /** The parameter boot_method is vmedia. */
  readonly bootedFromMedium: boolean;
  /** BOOTIF, unchanged. */
  readonly bootInterface: string | null;
}

export async function readInventory(environment: HostEnvironment): Promise<Inventory & { readonly disks: readonly InventoryDisk[] }> {
  const { tree } = environment;
  const uuid = tree.text('/sys/class/dmi/id/product_uuid');
  const smbios = readSmbios(tree.bytes('/sys/firmware/dmi/tables/DMI'));
  return {
    interfaces: readInterfaces(tree, environment.addresses()),
    cpu: readCpu(tree, environment.machine),
    disks: findDisks(environment).map(inventoried),
    memory: readMemory(tree, smbios.physical_mb),
    ...(await readBmc(environment)),
    system_vendor: {
      product_name: smbios.product_name,
      serial_number: smbios.serial_number,
      manufacturer: smbios.manufacturer,
      firmware: smbios.firmware,
      // As inspections by Redfish have it; the real agent has none.
      ...(uuid === null ? {} : { system_uuid: uuid.toLowerCase() }),
    },
    boot: {
      current_boot_mode: bootMode(tree),
      ...(environment.bootInterface === null ? {} : { pxe_interface: environment.bootInterface }),
    },
    hostname: environment.hostname(),
  };
}

export const bootMode = (tree: Tree): 'uefi' | 'bios' => (tree.list('/sys/firmware/efi').length > 0 ? 'uefi' : 'bios');

/** The BMC's addresses, by ipmitool where the ramdisk has it and the kernel knows a BMC. */
async function readBmc({
  tree,
  run,
}: HostEnvironment): Promise<JsonObject & { readonly bmc_address: string | null; readonly bmc_v6address: string | null }> {
  const none = { bmc_address: null, bmc_v6address: null };
  const unknown = { bmc_address: '0.0.0.0', bmc_v6address: '::/0' };
  if (!tree.list('/dev').some((name) => /^ipmi\d*$/.test(name))) return none;
  // The BMC's LAN channel has no fixed number; 1 to 11 are possible (IPMI 2.0 §6.3).
  for (let channel = 1; channel <= 11; channel++) {
    const output = await run('ipmitool', ['lan', 'print', String(channel)], { timeoutMs: 10_000 }).catch(() => '');
    const address = /^IP Address\s*: (\d+\.\d+\.\d+\.\d+)$/m.exec(output)?.[1];
    if (address === undefined || address === '0.0.0.0') continue;
    const mac = /^MAC Address\s*: ([0-9a-f:]{17})$/im.exec(output)?.[1];
    return { ...unknown, bmc_address: address, ...(mac === undefined ? {} : { bmc_mac: mac.toLowerCase() }) };
  }
  return unknown;
}
