/** What a node's default config is compared with: read from its machine now, or as it was last read. */
import type { Driver } from '../../drivers/interfaces';
import { reasonOf } from '../../model/errors';
import { isCompared, type MachineFacts, type MergedStep } from '../../model/rules/default-config';
import { storedPorts } from '../../model/rules/network-ports';
import { isInterrupted } from '../core/interruption';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';

type Part = 'bios' | 'firmware' | 'management' | 'raid';
interface Source<Fact> {
  /** Undefined: the interface cannot read it. */
  readonly live: (task: NodeTask) => Promise<Fact> | undefined;
  readonly stored: (task: NodeTask) => Promise<Fact> | Fact;
}
const SOURCES: {
  readonly bios: Source<MachineFacts['bios']>;
  readonly firmware: Source<MachineFacts['firmware']>;
  readonly management: Source<MachineFacts['networkPorts']>;
  readonly raid: Source<MachineFacts['raidConfig']>;
} = {
  bios: {
    live: (task) =>
      task.driver.bios
        .settings?.(task)
        .then((all) => all.map(({ name, value, attribute_type: type = null }) => ({ name, value, attribute_type: type }))),
    stored: ({ context, node }) => context.store.biosSettings.ofNode(node.uuid),
  },
  firmware: {
    live: (task) => task.driver.firmware.components?.(task),
    stored: ({ context, node }) => context.store.firmwareComponents.ofNode(node.uuid),
  },
  management: {
    live: (task) => task.driver.management.networkPorts?.(task),
    stored: ({ node }) => storedPorts(node.driver_internal_info['network_ports']),
  },
  raid: {
    live: (task) => task.driver.raid.currentConfig?.(task),
    stored: ({ node }) => node.raid_config,
  },
};

/** @param ask the parts that are read from the machine; if that fails, what was last read counts */
export async function machineFacts(
  task: NodeTask,
  defaults: readonly MergedStep[],
  ask: readonly Part[],
): Promise<{ readonly facts: MachineFacts; readonly isRead: boolean }> {
  let isRead = true;
  const factOf = async <Fact>(part: Part & keyof Driver, { live, stored }: Source<Fact>, none: Fact): Promise<Fact> => {
    if (!defaults.some((step) => step.interface === part && isCompared(step))) return none;
    if (!ask.includes(part)) return stored(task);
    try {
      await validateInterface(task, part);
      const reading = live(task);
      if (reading) return await reading;
    } catch (error) {
      if (isInterrupted(task.context, error)) throw error;
      task.log.warn(`the ${part} of the machine cannot be read for its default config`, { reason: reasonOf(error) });
    }
    isRead = false;
    return stored(task);
  };
  const [bios, firmware, networkPorts, raidConfig] = await Promise.all([
    factOf('bios', SOURCES.bios, []),
    factOf('firmware', SOURCES.firmware, []),
    factOf('management', SOURCES.management, []),
    factOf('raid', SOURCES.raid, {}),
  ]);
  return { facts: { bios, firmware, networkPorts, raidConfig }, isRead };
}
