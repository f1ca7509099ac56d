/**
 * Settings of the agent's steps that ironic-python-agent reads from its node, such as the length of a burn-in. Here they are arguments of the
 * steps too: the agent gets the node with the values of the step.
 */
import { isObject } from '../../model/json';
import { MANAGER_NAME } from '../../model/agent/manager';
import { settingsProblem } from '../../model/agent/step-checks';
import type { JsonObject, NodeRecord } from '../../model/records';
import type { PlannedStep, SavedKind, StepArgument, Task } from '../interfaces';

interface Setting extends StepArgument {
  /** Where the agent reads it. */
  readonly field: readonly ['driver_info' | 'driver_internal_info', key: string];
}
/** Twelve weeks. */
const MOST_SECONDS = 12 * 7 * 24 * 3600;
const numberFrom = (least: number, most: number) => (value: unknown) =>
  (value as number) >= least && (value as number) <= most ? undefined : `must be from ${least} to ${most}`;
const driver = (key: string, description: string, type: NonNullable<StepArgument['type']>, problem?: StepArgument['problem']): Setting => ({
  field: ['driver_info', key],
  description: `${description} Default: ${key} of driver_info, or the agent's default.`,
  type,
  ...(problem ? { problem } : {}),
});
const erasing = (key: string, option: string, description: string, more: Pick<Setting, 'type' | 'problem'>): Setting => ({
  field: ['driver_internal_info', key],
  description: `${description} Default: [deploy]${option}.`,
  ...more,
});
const seconds = (key: string, what: string): Setting => driver(key, `Seconds that ${what}.`, 'integer', numberFrom(1, MOST_SECONDS));

/** `interface.step` → argument → setting. */
const SETTINGS: Readonly<Record<string, Readonly<Record<string, Setting>>>> = {
  'deploy.erase_devices': {
    iterations: erasing('agent_erase_devices_iterations', 'shred_random_overwrite_iterations', 'Passes of random data.', {
      type: 'integer',
      problem: (value, { zeroize }) =>
        value === 0 && zeroize === false ? 'must be above 0 where zeroize is false: nothing would be written' : numberFrom(0, 100)(value),
    }),
    zeroize: erasing('agent_erase_devices_zeroize', 'shred_final_overwrite_with_zeros', 'Whether zeros are written after these passes.', {
      type: 'boolean',
    }),
  },
  'deploy.burnin_cpu': {
    timeout: seconds('agent_burnin_cpu_timeout', 'the processors are stressed'),
    cpu: driver('agent_burnin_cpu_cpu', 'Number of processors to stress; 0: all.', 'integer', numberFrom(0, 65_536)),
  },
  'deploy.burnin_memory': {
    timeout: seconds('agent_burnin_vm_timeout', 'the memory is stressed'),
    vm: driver('agent_burnin_vm_vm', 'Number of workers; 0: one for each processor.', 'integer', numberFrom(0, 65_536)),
    'vm-bytes': driver('agent_burnin_vm_vm-bytes', 'Memory of all workers, such as 98%.', 'string', (value) =>
      /^\d{1,15}[%bkmg]?$/i.test(value as string) ? undefined : 'must be a number with %, b, k, m or g',
    ),
  },
  'deploy.burnin_disk': {
    runtime: driver(
      'agent_burnin_fio_disk_runtime',
      'Seconds that the disks are stressed; 0: by loops.',
      'integer',
      numberFrom(0, MOST_SECONDS),
    ),
    loops: driver('agent_burnin_fio_disk_loops', 'Passes over the disks.', 'integer', numberFrom(1, 1000)),
    smart_test: driver('agent_burnin_fio_disk_smart_test', 'Whether a SMART self-test of each disk follows.', 'boolean'),
  },
  'deploy.burnin_network': {
    runtime: seconds('agent_burnin_fio_network_runtime', 'the network is stressed'),
  },
};
/** See DeployInterface.agentArguments. */
export const agentArguments: Readonly<Record<string, Readonly<Record<string, StepArgument>>>> = SETTINGS;

/** driver_info with the values of the step. */
function driverInfoFor(info: JsonObject, id: string, args: JsonObject): JsonObject {
  const known = SETTINGS[id] ?? {};
  const set = Object.entries(args).filter(([name]) => Object.hasOwn(known, name) && known[name]!.field[0] === 'driver_info');
  return { ...info, ...Object.fromEntries(set.map(([name, value]) => [known[name]!.field[1], value])) };
}
/** See DeployInterface.agentStepProblem. Before the first agent of a node has called, it may be any agent. */
export function agentStepProblem(
  { driver_info, driver_internal_info, properties }: Pick<NodeRecord, 'driver_info' | 'driver_internal_info' | 'properties'>,
  { interface: owner, step, args = {} }: Pick<PlannedStep, 'interface' | 'step' | 'args'>,
): string | undefined {
  const id = `${owner}.${step}`;
  const managers = driver_internal_info['hardware_manager_version'];
  const isOurs = isObject(managers) && Object.hasOwn(managers, MANAGER_NAME);
  return settingsProblem(id, { info: driverInfoFor(driver_info, id, args), properties, args }, isOurs);
}
/** Arguments of this name that the agent itself offers are its own. */
function offeredByAgent({ node }: Task, kind: SavedKind, step: PlannedStep): readonly string[] {
  const cached = node.driver_internal_info[`agent_cached_${kind}_steps`];
  const steps = isObject(cached) ? cached[step.interface] : undefined;
  const own = Array.isArray(steps) ? (steps as readonly PlannedStep[]).find(({ step: name }) => name === step.step)?.argsinfo : undefined;
  return isObject(own) ? Object.keys(own) : [];
}
/** The step as the agent knows it, and its node with the settings of the step. */
export function withSettings(task: Task, kind: SavedKind, step: PlannedStep, node: JsonObject): { step: PlannedStep; node: JsonObject } {
  const known = SETTINGS[`${step.interface}.${step.step}`];
  if (!known || !isObject(step.args)) return { step, node };
  const own = offeredByAgent(task, kind, step);
  const isSetting = (name: string): boolean => Object.hasOwn(known, name) && !own.includes(name);
  const given = Object.entries(step.args);
  const set = given.filter(([name]) => isSetting(name)).map(([name, value]) => ({ field: known[name]!.field, value }));
  const inside = (place: 'driver_info' | 'driver_internal_info'): JsonObject => ({
    ...(isObject(node[place]) ? node[place] : {}),
    ...Object.fromEntries(set.filter(({ field }) => field[0] === place).map(({ field: [, key], value }) => [key, value])),
  });
  return {
    step: { ...step, args: Object.fromEntries(given.filter(([name]) => !isSetting(name))) },
    node: { ...node, driver_info: inside('driver_info'), driver_internal_info: inside('driver_internal_info') },
  };
}
