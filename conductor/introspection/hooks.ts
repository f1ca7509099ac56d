/** [processing]processing_hooks: the hooks of an inspection by ironic-inspector's names, or by our own. */
import type { Inventory } from '../../model/records';

/** The name there → what does the same here. */
const HERE: Readonly<Record<string, readonly string[]>> = {
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
/** What these hooks refuse to go without is only missed here, as there. */
const WANTS: Readonly<Record<string, (inventory: Inventory) => boolean>> = {
  architecture: ({ cpu }) => typeof cpu?.architecture === 'string',
  memory: ({ memory }) => typeof memory?.physical_mb === 'number',
};
export const hookNames = (names: readonly string[]): readonly string[] => [
  ...new Set(names.flatMap((name) => (Object.hasOwn(HERE, name) ? HERE[name]! : [name]))),
];
export const hooksFor = (names: readonly string[], inventory: Inventory): readonly string[] =>
  hookNames(names).filter((name) => WANTS[name]?.(inventory) ?? true);
