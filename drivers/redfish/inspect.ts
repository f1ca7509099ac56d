/** Out-of-band inspection: the Redfish service describes the machine, which boots nothing. */
import type { InspectionFindings, InspectInterface, Task } from '../interfaces';
import { redfishInventory, type RedfishInventory } from './inventory';
import { redfishReader, type RedfishReader } from './reader';
import { REDFISH_PROPERTIES, onSystem, redfishSystem, type SystemView } from './target';

/** Without these properties the scheduler cannot choose the machine. Some services do not tell the architecture; then the node keeps its own. */
const ESSENTIAL = ['memory_mb', 'local_gb'] as const;
/** Hooks that fail without a network interface. Some services show none of the machine's. */
const OF_INTERFACES: readonly string[] = ['validate-interfaces', 'ports', 'local-link-connection', 'physical-network'];

const HOOKS = 'redfish.inspection_hooks';
/** Reads the machine. A maker's inspection reads more. */
type ReadMachine = (task: Task, reader: RedfishReader, system: SystemView) => Promise<RedfishInventory>;
export const inspectBy = (read: ReadMachine): InspectInterface => ({
  hooksOption: HOOKS,
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  inspect: (task) =>
    onSystem(task, undefined, async (system) => {
      const { inventory, memoryMb, localGb, bootMode, lldp } = await read(task, redfishReader(task, system.ask), system);
      if (localGb === 0) task.log.warn('The Redfish service names no disk of 4 GiB or more; the machine counts as without disks');
      const hooks = task.options[HOOKS];
      const isBlind = inventory.interfaces.length === 0;
      if (isBlind) task.log.warn('The Redfish service names no network interface with an address; no ports are created');
      if (inventory.cpu?.architecture === '') task.log.warn('The Redfish service does not tell the architecture of the processors');
      return {
        kind: 'found',
        inventory,
        pluginData: Object.keys(lldp).length > 0 ? { parsed_lldp: lldp } : {},
        properties: { ...(memoryMb === undefined ? {} : { memory_mb: memoryMb }), local_gb: localGb },
        capabilities: bootMode === undefined ? {} : { boot_mode: bootMode },
        essential: ESSENTIAL,
        hooks: isBlind ? hooks.filter((name) => !OF_INTERFACES.includes(name)) : hooks,
      } satisfies InspectionFindings;
    }),
  // `inspect` changes nothing, so there is nothing to revert.
  abort: async () => {},
});
export const redfishInspect: InspectInterface = inspectBy((_, reader, { body }) => redfishInventory(reader, body));
