/** Default configs at work: a flow reads them when it makes its list, and the list has their arguments from then on. */
import type { PlannedStep } from '../../drivers/interfaces';
import type { JsonObject } from '../../model/json';
import type { HeldNode, NodeChanges } from '../../model/records';
import {
  argumentsToBringBack,
  idOf,
  inOrderOfUse,
  isCompared,
  mergedDefaults,
  runnable,
  type MergedStep,
} from '../../model/rules/default-config';
import { storable } from '../../model/rules/network-ports';
import type { InternalChanges } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { machineFacts } from './machine-facts';
import { argumentsOf, automatedSteps, cleanPriorities, inOrder, stepId, type RequestedStep } from './steps';

/** The default config of a node. One query, or none if the reservation tells that there are no default configs. */
export const defaultsOf = async ({ node, context }: NodeTask): Promise<readonly MergedStep[]> =>
  (node as HeldNode).has_default_configs === false ? [] : mergedDefaults(await context.store.defaultConfigs.ofNode(node));

const namesOf = (step: PlannedStep): readonly string[] => Object.keys(argumentsOf(step));
/** Fills in the arguments that a step leaves out and that the offered step has. The origins of these arguments are shown with the step. */
function filledStep<Asked extends RequestedStep>(asked: Asked, offer: PlannedStep, defaults: MergedStep): Asked {
  const { args = {} } = asked;
  const known = namesOf(offer);
  const more = [...defaults.args].filter(([name]) => known.includes(name) && !Object.hasOwn(args, name));
  if (more.length === 0) return asked;
  return {
    ...asked,
    args: { ...Object.fromEntries(more.map(([name, { value }]) => [name, runnable(idOf(defaults), name, value)])), ...args },
    defaults: { ...asked.defaults, ...Object.fromEntries(more.map(([name, { origin }]) => [name, origin])) },
  };
}
/** The steps with the arguments of the default config. Those that the steps name are taken as they are. No query without such arguments. */
export async function withDefaults<Asked extends RequestedStep>(
  task: NodeTask,
  asked: readonly Asked[],
  offered: readonly PlannedStep[],
  known?: readonly MergedStep[],
): Promise<readonly Asked[]> {
  const offers = new Map(offered.filter((step) => namesOf(step).length > 0).map((step) => [stepId(step), step]));
  const isFilled = (step: Asked): boolean => !step.execute_on_child_nodes && offers.has(stepId(step));
  if (!asked.some(isFilled)) return asked;
  const defaults = new Map((known ?? (await defaultsOf(task))).map((step) => [idOf(step), step]));
  return asked.map((step) => {
    const own = defaults.get(stepId(step));
    return own && isFilled(step) ? filledStep(step, offers.get(stepId(step))!, own) : step;
  });
}

/** The priorities that default configs give steps of automated cleaning. */
const defaultPriorities = (defaults: readonly MergedStep[]): Readonly<Record<string, number>> =>
  Object.fromEntries(defaults.flatMap((step) => (step.priority ? [[idOf(step), step.priority.value]] : [])));

/** An offered step with arguments of the default config. */
function stepOf(offer: PlannedStep, args: JsonObject, { args: merged, priority }: MergedStep): PlannedStep {
  const origins = Object.keys(args).flatMap((name) => {
    const origin = merged.get(name)?.origin;
    return origin === undefined ? [] : [[name, origin] as const];
  });
  const defaults = origins.length > 0 ? { defaults: Object.fromEntries(origins) } : {};
  return { ...offer, args, priority: priority?.value ?? 0, ...defaults };
}
/** RAID is made in cleaning from the node's target: what is there is deleted before. */
function raidSteps(args: JsonObject, defaults: MergedStep, find: (id: string) => PlannedStep | undefined): readonly PlannedStep[] {
  const [remove, create] = [find('raid.delete_configuration'), find('raid.create_configuration')];
  if (!create) return [];
  const known = namesOf(create);
  const given = Object.fromEntries(Object.entries(args).filter(([name]) => known.includes(name)));
  if (known.includes('delete_existing')) return [stepOf(create, { ...given, delete_existing: true }, defaults)];
  return remove ? [stepOf(remove, {}, defaults), stepOf(create, given, defaults)] : [];
}

/**
 * The steps that bring the machine back to its default config, with their priorities, and the columns that they need. Automated cleaning
 * would not run them otherwise.
 */
async function stepsToBringBack(
  task: NodeTask,
  defaults: readonly MergedStep[],
  offered: readonly PlannedStep[],
): Promise<{ readonly steps: readonly PlannedStep[]; readonly changes: NodeChanges; readonly internal: InternalChanges }> {
  if (defaults.length === 0) return { steps: [], changes: {}, internal: {} };
  // The flow has read BIOS and firmware when it began.
  const { facts } = await machineFacts(task, defaults, ['management', 'raid']);
  const find = (id: string): PlannedStep | undefined => offered.find((step) => stepId(step) === id);
  const steps: PlannedStep[] = [];
  let changes: NodeChanges = {};
  for (const step of inOrderOfUse(defaults)) {
    // Priority 0 switches a step off.
    const args = step.priority?.value === 0 ? undefined : argumentsToBringBack(step, facts);
    if (!args) continue;
    if (idOf(step) === 'raid.apply_configuration') {
      const made = raidSteps(args, step, find);
      if (made.length > 0) changes = { target_raid_config: args['raid_config'] as JsonObject };
      steps.push(...made);
      continue;
    }
    const offer = find(idOf(step));
    if (offer) steps.push(stepOf(offer, args, step));
  }
  const ports = storable(facts.networkPorts);
  return { steps, changes, internal: ports ? { network_ports: ports } : {} };
}

/** The steps of automated cleaning: those with a priority, and those that bring the machine back. Notes the columns that they need. */
export async function automatedCleanSteps(task: NodeTask, offered: readonly PlannedStep[]): Promise<readonly PlannedStep[]> {
  const defaults = await defaultsOf(task);
  const { steps, changes, internal } = await stepsToBringBack(task, defaults, offered);
  task.note(changes, internal);
  const priorities = { ...cleanPriorities(task.context.options), ...defaultPriorities(defaults) };
  // What is compared runs only if the machine differs.
  const left = new Set([...steps.map(stepId), ...defaults.filter(isCompared).map(idOf)]);
  const others = automatedSteps('clean', offered, priorities).filter((step) => !left.has(stepId(step)));
  const [last, ranked] = [steps.filter(({ priority }) => priority === 0), steps.filter(({ priority }) => priority > 0)];
  return [...inOrder('clean', [...(await withDefaults(task, others, offered, defaults)), ...ranked]), ...last];
}
