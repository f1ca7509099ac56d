/** The hardware as the server gets it: inventory, and the collectors' other keys. */
import type { Inventory, InventoryDisk, JsonObject } from '../../model/records';
import type { Run } from '../system/run';
import { readDisks } from './disks';
import { type Addresses, readInterfaces } from './interfaces';
import { readCpu, readMemory } from './processor';
import { readSmbios } from './smbios';
import type { Tree } from '../system/tree';

export interface Surroundings {
  readonly tree: Tree;
  readonly run: Run;
  /** os.networkInterfaces() */
  readonly addresses: () => Addresses;
  /** uname -m */
  readonly machine: string;
  readonly hostname: () => string;
  /** BOOTIF as the kernel got it. */
  readonly bootInterface: string | null;
}

export async function readInventory(around: Surroundings): Promise<Inventory & { readonly disks: readonly InventoryDisk[] }> {
  const { tree } = around;
  const smbios = readSmbios(tree.bytes('/sys/firmware/dmi/tables/DMI'));
  return {
    interfaces: readInterfaces(tree, around.addresses()),
    cpu: readCpu(tree, around.machine),
    disks: readDisks(tree),
    memory: readMemory(tree, smbios.physical_mb),
    ...(await readBmc(around)),
    system_vendor: {
      product_name: smbios.product_name,
      serial_number: smbios.serial_number,
      manufacturer: smbios.manufacturer,
      firmware: smbios.firmware,
    },
    boot: { current_boot_mode: bootMode(tree), ...(around.bootInterface === null ? {} : { pxe_interface: around.bootInterface }) },
    hostname: around.hostname(),
  };
}

export const bootMode = (tree: Tree): 'uefi' | 'bios' => (tree.list('/sys/firmware/efi').length > 0 ? 'uefi' : 'bios');

/** Where the machine's BMC is, by the machine's own word: asked through ipmitool, where the ramdisk has it and the kernel a BMC. */
async function readBmc({
  tree,
  run,
}: Surroundings): Promise<JsonObject & { readonly bmc_address: string | null; readonly bmc_v6address: string | null }> {
  const none = { bmc_address: null, bmc_v6address: null };
  const unknown = { bmc_address: '0.0.0.0', bmc_v6address: '::/0' };
  if (!tree.list('/dev').some((name) => /^ipmi\d*$/.test(name))) return none;
  // The BMC's LAN channel has no fixed number; 1 to 11 may be (IPMI 2.0 §6.3).
  for (let channel = 1; channel <= 11; channel++) {
    const said = await run('ipmitool', ['lan', 'print', String(channel)], { timeoutMs: 10_000 }).catch(() => '');
    const address = /^IP Address\s*: (\d+\.\d+\.\d+\.\d+)$/m.exec(said)?.[1];
    if (address === undefined || address === '0.0.0.0') continue;
    const mac = /^MAC Address\s*: ([0-9a-f:]{17})$/im.exec(said)?.[1];
    return { ...unknown, bmc_address: address, ...(mac === undefined ? {} : { bmc_mac: mac.toLowerCase() }) };
  }
  return unknown;
}
