/** RAID volumes that the agent creates and deletes. Afterwards the node's raid_config and properties describe the result. */
import { bareTimestamp } from '../../model/clock';
import { invalidParameter, Fault } from '../../model/errors';
import type { JsonObject, NodeRecord } from '../../model/records';
import { runAgentStep } from './steps';
import { without } from './view';
import { withCapability } from '../common/capabilities';
import type { RaidInterface, SavedKind, Step, Task } from '../interfaces';

type LogicalDisk = JsonObject & { readonly is_root_volume?: unknown; readonly size_gb?: unknown; readonly raid_level?: unknown };

/** The logical disks of a configuration, of which at most one is the root volume. Throws InvalidParameterValue. */
export function logicalDisks(config: unknown): readonly LogicalDisk[] {
  const disks = (config as { readonly logical_disks?: unknown } | null | undefined)?.logical_disks;
  if (disks === undefined) throw invalidParameter("RAID config validation error: 'logical_disks' is a required property");
  if (!Array.isArray(disks) || disks.length === 0 || disks.some((disk) => typeof disk !== 'object' || disk === null))
    throw invalidParameter('RAID config validation error: logical_disks is not a list of objects, at least one');
  const roots = disks.filter((disk: LogicalDisk) => disk.is_root_volume).length;
  if (roots > 1) throw invalidParameter(`Raid config cannot have more than one root volume. ${roots} root volumes were specified`);
  return disks as LogicalDisk[];
}

/** Runs the agent's step of the same name, after a check. */
const agentStep =
  (kind: SavedKind, check: (task: Task, args: JsonObject) => Promise<void> | void): Step['run'] =>
  async (task, args) => {
    await check(task, args);
    const column = { clean: 'clean_step', deploy: 'deploy_step', service: 'service_step' } as const;
    const { step, priority = 0, ...more } = task.node[column[kind]] as { readonly step: string; readonly priority?: number };
    return runAgentStep(task, kind, { ...more, interface: 'raid', step, priority, args });
  };

/** Saves the target configuration in driver_internal_info, from which the agent takes it. Throws MissingParameterValue. */
async function saveTarget(task: Task): Promise<void> {
  const { uuid, target_raid_config: target } = task.node;
  if (Object.keys(target).length === 0)
    throw new Fault('MissingParameterValue', { message: `Node ${uuid} has no target RAID configuration.` });
  logicalDisks(target);
  await task.saveInternal({ target_raid_config: target });
}

/** The node's properties of the root disk after RAID was created. */
function describeRoot(properties: NodeRecord['properties'], root: LogicalDisk): NodeRecord['properties'] {
  const { size_gb: size, root_device_hint: hint, raid_level: level } = root;
  return {
    ...properties,
    ...(size === 'MAX' || size === undefined ? {} : { local_gb: Math.trunc(Number(size)) }),
    ...(hint === undefined ? {} : { root_device: hint }),
    capabilities: withCapability(properties['capabilities'], 'raid_level', String(level)),
  };
}

/** Saves the configuration that the agent reports. */
async function created(task: Task, result: unknown): Promise<void> {
  const { uuid, properties } = task.node;
  if (typeof result !== 'object' || result === null || Object.keys(result).length === 0)
    throw new Error(`Agent ramdisk didn't return a proper command result while building RAID on ${uuid}.`);
  const root = logicalDisks(result).find((disk) => disk.is_root_volume);
  await task.save({
    raid_config: { ...result, last_updated: bareTimestamp(task.clock.now()).replace('T', ' ') },
    ...(root ? { properties: describeRoot(properties, root) } : {}),
  });
}

async function deleted(task: Task): Promise<void> {
  await task.save({ properties: without(task.node.properties, ['root_device']), raid_config: {} });
}

const args: Step['args'] = {
  raid_config: { description: 'The RAID configuration to make.', required: true, type: 'object' },
  delete_existing: { description: 'Whether what there is of RAID is removed before. Default: true.', type: 'boolean' },
};
const apply = (kind: 'deploy' | 'service'): Step => ({
  step: 'apply_configuration',
  usesAgent: true,
  priority: { [kind]: 0 },
  args,
  checkArguments: ({ raid_config: config }) => void logicalDisks(config),
  run: agentStep(kind, (_, { raid_config: config }) => void logicalDisks(config)),
  finish: created,
});

export const agentRaid: RaidInterface = {
  validate: async ({ node: { target_raid_config: target } }) => {
    if (Object.keys(target).length > 0) logicalDisks(target);
  },
  steps: [
    {
      step: 'create_configuration',
      usesAgent: true,
      priority: { clean: 0 },
      abortable: true,
      run: agentStep('clean', saveTarget),
      finish: created,
    },
    {
      step: 'delete_configuration',
      usesAgent: true,
      priority: { clean: 0 },
      abortable: true,
      run: agentStep('clean', () => {}),
      finish: deleted,
    },
    apply('deploy'),
    apply('service'),
  ],
};
