/** The table of inspection hooks, and the selection by option. */
import { matchDisks, parseHints } from '../../../model/agent/hints';
import { repr } from '../../../model/python';
import type { InventoryDisk } from '../../../model/records';
import { accelerators, extraHardware, pciCounts, raidDevice } from './devices';
import { inspectionFailure, invalidInventory, plainFailure, type Hook, type InspectionData } from './hook';
import { portChanges, validInterfaces } from './interfaces';
import { localLinks, parseLldp, physicalNetworks } from './switches';

const GIB = 1024 ** 3;

function rootDisk({ node, inventory, pluginData }: InspectionData): InventoryDisk | undefined {
  const hints = node.properties.root_device;
  // An inventory does not tell the names of arrays.
  if (hints === undefined || hints === null || Object.keys(hints).length === 0 || Object.hasOwn(hints, 'volume_name'))
    return pluginData.root_disk as InventoryDisk | undefined;
  const skipped = node.properties.skip_block_devices;
  try {
    const disks: readonly InventoryDisk[] = Array.isArray(inventory.disks) ? inventory.disks : [];
    const skip = (Array.isArray(skipped) ? (skipped as unknown[]) : []).flatMap((item) => matchDisks(disks, parseHints(item)));
    const [found] = matchDisks(
      disks.filter((disk) => !skip.includes(disk)),
      parseHints(hints),
    );
    if (found) return found;
  } catch (error) {
    throw plainFailure(
      `No disks could be found using root device hints ${repr(hints)} for node ${node.uuid} ` +
        `because they failed to validate. Error: ${(error as Error).message}`,
    );
  }
  throw plainFailure(`No disks satisfied root device hints for node ${node.uuid}`);
}

/** [inspector]hooks, or the option of an inspect interface, selects hooks and their order. @internal */
export const HOOKS: readonly Hook[] = [
  {
    name: 'ramdisk-error',
    preprocess: ({ pluginData }) => {
      if (!pluginData.error) return [];
      const { error } = pluginData;
      throw inspectionFailure(`Ramdisk reported error: ${typeof error === 'string' ? error : JSON.stringify(error)}`);
    },
  },
  { name: 'validate-interfaces', preprocess: validInterfaces },
  { name: 'ports', after: ['validate-interfaces'], apply: portChanges },
  {
    name: 'architecture',
    apply: ({ node, inventory }) => {
      const value = inventory.cpu?.architecture;
      // The BMC does not know the architecture.
      if (value === '') return [];
      if (typeof value === 'string') return [{ on: 'property', name: 'cpu_arch', value }];
      throw invalidInventory(
        node,
        `Inventory has malformed or missing CPU architecture information: ${repr(inventory.cpu ?? null)} for node ${node.uuid}.`,
      );
    },
  },
  {
    name: 'memory',
    apply: ({ node, inventory }) => {
      const value = inventory.memory?.physical_mb;
      if (typeof value === 'number') return [{ on: 'property', name: 'memory_mb', value }];
      throw invalidInventory(node, `Inventory has missing memory information: ${repr(inventory.memory ?? null)} for node ${node.uuid}.`);
    },
  },
  {
    name: 'cpus',
    apply: ({ inventory }) => {
      const value = inventory.cpu?.count ?? 0;
      return Number.isInteger(value) && value > 0 ? [{ on: 'property', name: 'cpus', value }] : [];
    },
  },
  {
    name: 'cpu-capabilities',
    apply: ({ inventory, options }) => {
      const given: unknown = inventory.cpu?.flags;
      const flags = new Set<unknown>(Array.isArray(given) ? given : []);
      const names = Object.entries(options['inspector.cpu_capabilities']).flatMap(([flag, name]) => (flags.has(flag) ? [name] : []));
      return [...new Set(names)].map((name) => ({ on: 'capability' as const, name, value: 'true' }));
    },
  },
  {
    name: 'boot-mode',
    apply: ({ inventory }) => {
      const value = inventory.boot?.current_boot_mode;
      return value === 'bios' || value === 'uefi' ? [{ on: 'capability', name: 'boot_mode', value }] : [];
    },
  },
  {
    name: 'root-device',
    apply: (data) => {
      const disk = rootDisk(data);
      const whole = Math.floor((typeof disk?.size === 'number' ? disk.size : 0) / GIB);
      // Partition tables and a config drive need one GiB.
      const value = whole > 0 && data.options['inspector.disk_partitioning_spacing'] ? whole - 1 : whole;
      return [
        ...(disk ? [{ on: 'plugin_data' as const, name: 'root_disk', value: disk }] : []),
        { on: 'plugin_data', name: 'local_gb', value },
        { on: 'property', name: 'local_gb', value },
      ];
    },
  },
  { name: 'accelerators', apply: accelerators },
  { name: 'extra-hardware', apply: extraHardware },
  { name: 'local-link-connection', after: ['validate-interfaces'], apply: localLinks },
  { name: 'parse-lldp', apply: parseLldp },
  { name: 'pci-devices', apply: pciCounts },
  { name: 'physical-network', after: ['validate-interfaces'], apply: physicalNetworks },
  { name: 'raid-device', usesPrevious: true, apply: raidDevice },
];

const shown = (option: string): string => option.replace(/^([^.]*)\.(.*)$/, '[$1]$2');
const unknownHook = (name: string, option: string): string =>
  `${shown(option)}: unknown hook ${name}; the known hooks are ${HOOKS.map((hook) => hook.name).join(', ')}`;
/**
 * Throws an Error for the operator.
 * @param option `section.name` of the option that names the hook
 */
export function hookOf(name: string, option: string): Hook {
  const hook = HOOKS.find((candidate) => candidate.name === name);
  if (!hook) throw new Error(unknownHook(name, option));
  return hook;
}

/**
 * Returns the hooks of an option in its order.
 * @param option `section.name`
 * @throws Error for the operator: an unknown hook, or a hook without one that must precede it
 */
export function chosenHooks(names: readonly string[], option = 'inspector.hooks'): readonly Hook[] {
  const problems: string[] = [];
  const hooks = names.flatMap((name, at): readonly Hook[] => {
    const hook = HOOKS.find((candidate) => candidate.name === name);
    const missing = (hook?.after ?? []).filter((other) => !names.slice(0, at).includes(other));
    if (missing.length > 0) problems.push(`${shown(option)}: ${name} needs ${missing.join(', ')} before it`);
    if (!hook) problems.push(unknownHook(name, option));
    return hook ? [hook] : [];
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return hooks;
}
