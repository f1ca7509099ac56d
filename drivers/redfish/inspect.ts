/** Inspection out of band: the machine is described by its Redfish service and boots nothing. */
import type { InspectionFindings, InspectInterface } from '../interfaces';
import { redfishInventory } from './inventory';
import { redfishReader } from './reader';
import { REDFISH_PROPERTIES, onSystem, redfishSystem } from './target';

/** Without these a machine cannot be chosen for an instance. */
const ESSENTIAL = ['memory_mb', 'local_gb', 'cpu_arch'] as const;

export const redfishInspect: InspectInterface = {
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  inspect: (task) =>
    onSystem(task, undefined, async ({ ask, body }) => {
      const { inventory, memoryMb, localGb, bootMode, lldp } = await redfishInventory(redfishReader(task, ask), body);
      if (localGb === 0) task.log.warn('The Redfish service names no disk of 4 GiB or more; the machine counts as without disks');
      return {
        kind: 'found',
        inventory,
        pluginData: Object.keys(lldp).length > 0 ? { parsed_lldp: lldp } : {},
        properties: { ...(memoryMb === undefined ? {} : { memory_mb: memoryMb }), local_gb: localGb },
        capabilities: bootMode === undefined ? {} : { boot_mode: bootMode },
        essential: ESSENTIAL,
        hooks: task.options['redfish.inspection_hooks'],
      } satisfies InspectionFindings;
    }),
  // Nothing was set up.
  abort: async () => {},
};
