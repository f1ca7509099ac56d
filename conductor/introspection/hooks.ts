/** [processing]processing_hooks: selects inspection hooks by ironic-inspector's names or by our names. */
import type { Inventory } from '../../model/records';

/** ironic-inspector's hook → the hooks here that do the same. */
const EQUIVALENTS: Readonly<Record<string, readonly string[]>> = {
  ramdisk_error: ['ramdisk-error'],
  root_disk_selection: ['root-device'],
  scheduler: ['cpus', 'architecture', 'memory'],
  validate_interfaces: ['validate-interfaces', 'ports'],
  capabilities: ['cpu-capabilities'],
  pci_devices: ['pci-devices'],
  extra_hardware: ['extra-hardware'],
  local_link_connection: ['local-link-connection'],
  lldp_basic: ['parse-lldp'],
  physnet_cidr_map: ['physical-network'],
  raid_device: ['raid-device'],
};
/** These hooks fail without their data. As in ironic-inspector, they are skipped then. */
const HAS_DATA: Readonly<Record<string, (inventory: Inventory) => boolean>> = {
  architecture: ({ cpu }) => typeof cpu?.architecture === 'string',
  memory: ({ memory }) => typeof memory?.physical_mb === 'number',
};
export const hookNames = (names: readonly string[]): readonly string[] => [
  ...new Set(names.flatMap((name) => (Object.hasOwn(EQUIVALENTS, name) ? EQUIVALENTS[name]! : [name]))),
];
export const hooksFor = (names: readonly string[], inventory: Inventory): readonly string[] =>
  hookNames(names).filter((name) => HAS_DATA[name]?.(inventory) ?? true);
