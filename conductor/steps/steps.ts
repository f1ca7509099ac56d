/** The steps of a node: collected from its interfaces and its agent, checked against requested steps, put in order. */
import type { Options } from '../../config/options';
import type { Driver, Interface, PlannedStep, SavedKind, Step, StepArgument, StepKind } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { maskSecrets } from '../../model/masks';
import { repr } from '../../model/python';
import type { InterfaceKind, JsonObject, StepControls } from '../../model/records';
import { CONTROL_NAMES } from '../../model/rules/step-controls';
import type { NodeTask } from '../core/node-task';
import { isDropped, plannedReserved, reservedStep } from './reserved-steps';

export type { SavedKind } from '../../drivers/interfaces';

/** At equal priorities the step of the interface with the higher number runs first. An interface without a number has no such steps. */
const COMMON_ORDER = { vendor: 7, power: 6, management: 5, firmware: 4, deploy: 3, bios: 2, raid: 1 } as const;
const INTERFACE_ORDER: Readonly<Record<StepKind, Readonly<Partial<Record<InterfaceKind, number>>>>> = {
  clean: COMMON_ORDER,
  deploy: COMMON_ORDER,
  service: { network: 8, ...COMMON_ORDER },
  verify: {
    power: 13,
    management: 12,
    firmware: 11,
    inspect: 10,
    deploy: 9,
    boot: 8,
    bios: 7,
    raid: 6,
    vendor: 5,
    network: 4,
    storage: 3,
    console: 2,
    rescue: 1,
  },
};

/** `deploy.write_image`: the name of a step in messages, and its identity. */
export const stepId = ({ interface: kind, step }: { readonly interface: string; readonly step: string }): string => `${kind}.${step}`;

/** Descending by priority; ties by interface, then in the given order. */
export const inOrder = (kind: StepKind, steps: readonly PlannedStep[]): readonly PlannedStep[] => {
  const rank = (step: PlannedStep): number => INTERFACE_ORDER[kind][step.interface as InterfaceKind] ?? 0;
  return [...steps].sort((a, b) => b.priority - a.priority || rank(b) - rank(a));
};

const shownArguments = (args: NonNullable<Step['args']>): JsonObject =>
  Object.fromEntries(
    Object.entries(args).map(([name, { description, required }]) => [
      name,
      { description, ...(required === undefined ? {} : { required }) },
    ]),
  );
const planned = (kind: StepKind, owner: string, step: Step): PlannedStep => ({
  step: step.step,
  priority: step.priority[kind]!,
  // A deployment may be aborted at every step.
  ...(kind === 'verify' ? {} : { abortable: step.abortable ?? kind === 'deploy' }),
  argsinfo: step.args ? shownArguments(step.args) : null,
  interface: owner,
  ...(kind === 'clean' || kind === 'service' ? { requires_ramdisk: step.requiresRamdisk ?? true } : {}),
});

/** All steps of a kind, also those of priority 0. The driver's own step replaces the agent's of the same name. */
export function offeredSteps(driver: Driver, kind: StepKind, fromAgent: readonly PlannedStep[] = []): readonly PlannedStep[] {
  const own = (Object.keys(INTERFACE_ORDER[kind]) as InterfaceKind[]).flatMap((owner) => {
    const chosen: Interface = driver[owner];
    return (chosen.steps ?? []).filter((step) => step.priority[kind] !== undefined).map((step) => planned(kind, owner, step));
  });
  const taken = new Set(own.map(stepId));
  return [...own, ...fromAgent.filter((step) => !taken.has(stepId(step))).map((step) => withArguments(driver, step))];
}
/** An agent's step with the arguments that the driver adds. */
function withArguments({ deploy }: Driver, step: PlannedStep): PlannedStep {
  const more = deploy.agentArguments?.[stepId(step)];
  return more ? { ...step, addedArguments: shownArguments(more) } : step;
}
/** The arguments of an offered step, by their names. */
export const argumentsOf = ({ argsinfo, addedArguments }: PlannedStep): Readonly<Record<string, Partial<StepArgument>>> =>
  ({ ...addedArguments, ...(isObject(argsinfo) ? argsinfo : {}) }) as Readonly<Record<string, Partial<StepArgument>>>;

/** Steps of the agent whose priority is an option of its own, `[deploy]…_priority` → their interface. */
const WITH_OPTIONS = {
  erase_devices: 'deploy',
  erase_devices_metadata: 'deploy',
  create_configuration: 'raid',
  delete_configuration: 'raid',
} as const;

/** The operator's priorities, which replace the driver's and the agent's: `interface.step` → priority. */
export function cleanPriorities(options: Options): Readonly<Record<string, number>> {
  const set: Record<string, number> = {};
  for (const [name, owner] of Object.entries(WITH_OPTIONS) as [keyof typeof WITH_OPTIONS, string][]) {
    const priority = options[`deploy.${name}_priority`];
    if (priority !== null) set[`${owner}.${name}`] = priority;
  }
  return { ...set, ...overrides(options['conductor.clean_step_priority_override']) };
}
/** `interface.step` → priority, from an option. Values that are not numbers are ignored. */
export const overrides = (option: Readonly<Record<string, string>>): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(option)
      .filter(([, priority]) => /^\d+$/.test(priority))
      .map(([id, priority]) => [id, Number(priority)]),
  );

/** Returns the steps that the operator does not disallow. */
export const allowedSteps = (options: Options, kind: SavedKind, steps: readonly PlannedStep[]): readonly PlannedStep[] =>
  steps.filter((step) => !options[`api.disallow_${kind}_steps`].includes(stepId(step)));

/** The steps of automated cleaning and of verify. */
export const automatedSteps = (
  kind: 'clean' | 'verify',
  offered: readonly PlannedStep[],
  priorities: Readonly<Record<string, number>>,
): readonly PlannedStep[] =>
  inOrder(
    kind,
    offered.map((step) => ({ ...step, priority: priorities[stepId(step)] ?? step.priority })).filter(({ priority }) => priority > 0),
  );

/** A step as a client, a template or a runbook requests it. The API checked its shape. */
export interface RequestedStep extends StepControls {
  readonly interface: string;
  readonly step: string;
  readonly args?: JsonObject;
  readonly priority?: number;
  readonly order?: number;
  readonly execute_on_child_nodes?: boolean;
  readonly limit_child_node_execution?: readonly string[];
  readonly defaults?: Readonly<Record<string, string>>;
}
export const withoutDroppedSteps = (steps: readonly object[]): readonly RequestedStep[] =>
  (steps as readonly RequestedStep[]).filter((step) => !isDropped(step));

/** The database changes the order of an object's members. Clients expect these orders, for requested steps and for a driver's steps. */
const MEMBERS = [
  'interface',
  'step',
  'args',
  'order',
  'execute_on_child_nodes',
  'limit_child_node_execution',
  'abortable',
  'priority',
  ...CONTROL_NAMES,
];
const OWN_MEMBERS = ['step', 'priority', 'abortable', 'argsinfo', 'interface', 'requires_ramdisk'];
export function shaped<T extends object>(step: T): T {
  const members = 'argsinfo' in step ? OWN_MEMBERS : MEMBERS;
  const place = (member: string): number => (members.includes(member) ? members.indexOf(member) : members.length);
  return Object.fromEntries(Object.entries(step).sort(([a], [b]) => place(a) - place(b))) as T;
}
/** A step as messages show it: without secrets in its arguments. */
export const showStep = (step: object): string => repr(shaped('args' in step ? { ...step, ...maskSecrets({ args: step.args }) } : step));

function stepErrors(kind: SavedKind, asked: RequestedStep, offered: PlannedStep | undefined, withoutRamdisk: boolean): readonly string[] {
  // The steps of a child are checked when the step runs on it.
  if (asked.execute_on_child_nodes) return [];
  if (!offered) return [`node does not support this ${kind} step: ${showStep(asked)}`];
  // When a list is checked again with the ramdisk, messages show the members that the offer adds to its steps.
  const { abortable = false, priority } = offered;
  const shown = showStep(kind === 'deploy' || withoutRamdisk ? asked : { ...asked, abortable, priority });
  const known = argumentsOf(offered);
  const given = asked.args ?? {};
  const errors: string[] = [];
  const unexpected = Object.keys(given).filter((name) => !Object.hasOwn(known, name));
  if (unexpected.length > 0) errors.push(`${kind} step ${shown} has these unexpected arguments: ${unexpected.join(', ')}`);
  if (kind === 'deploy' && asked.priority === 0) return errors;
  const missing = Object.entries(known)
    .filter(([name, { required }]) => required && !Object.hasOwn(given, name))
    .map(([name, { description }]) => (description ? `${name} (${description})` : name));
  if (missing.length > 0) errors.push(`${kind} step ${shown} is missing these required arguments: ${missing.join(', ')}`);
  if (withoutRamdisk && (offered.requires_ramdisk ?? true)) errors.push(`${kind} step ${shown} requires booting a ramdisk`);
  if (kind === 'deploy' && stepId(offered) === 'deploy.deploy')
    errors.push(
      'deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. ' +
        'It may be disabled by setting the priority to 0',
    );
  return errors;
}

const IS: Readonly<Record<NonNullable<StepArgument['type']>, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  list: (value) => Array.isArray(value),
  object: (value) => isObject(value),
};
export const isOfType = (type: NonNullable<StepArgument['type']>, value: unknown): boolean => IS[type](value);
/** Checks the arguments that the driver and the conductor know, and the node's settings for the steps. Throws InvalidParameterValue. */
export function checkArguments({ driver, node }: Pick<NodeTask, 'driver' | 'node'>, kind: StepKind, asked: readonly RequestedStep[]): void {
  const errors = asked
    .filter((step) => !step.execute_on_child_nodes)
    .flatMap((step) => {
      const own = findStep(driver, kind, step) ?? reservedStep(step);
      const known = own?.args ?? driver.deploy.agentArguments?.[stepId(step)] ?? {};
      const inArguments = Object.entries(step.args ?? {}).flatMap(([name, value]) => {
        const { type, problem } = known[name] ?? { description: '' };
        if (type !== undefined && !IS[type](value)) return [`${kind} step ${showStep(step)} needs ${type} as its argument ${name}`];
        const wrong = problem?.(value, step.args ?? {});
        return wrong === undefined ? [] : [`the argument ${name} of ${kind} step ${showStep(step)} ${wrong}`];
      });
      if (own || inArguments.length > 0) return inArguments;
      const problem = driver.deploy.agentStepProblem?.(node, step);
      return problem === undefined ? [] : [`${kind} step ${stepId(step)}: ${problem}`];
    });
  if (errors.length > 0) throw new Fault('InvalidParameterValue', { message: errors.join('; ') });
}

/** A deployment may have each step only once. */
function repeated(kind: SavedKind, asked: readonly RequestedStep[]): readonly string[] {
  const ids = asked.map(stepId);
  const twice = [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
  return kind === 'deploy' && twice.length > 0
    ? [
        "deploy steps from all deploy templates matching this node's instance traits cannot have the same interface and step. " +
          `Duplicate deploy steps for ${twice.join(', ')}`,
      ]
    : [];
}

interface Checking {
  /** A step that is not offered may be the agent's: it is checked later. */
  readonly unknownLater?: boolean;
  readonly withoutRamdisk?: boolean;
  /** Precedes the errors in the message. */
  readonly prefix?: string;
}
/** Finds the offered step of a requested one: the node's, or the conductor's own. */
function offer(kind: SavedKind, offered: readonly PlannedStep[]): (asked: RequestedStep) => PlannedStep | undefined {
  const byId = new Map(offered.map((step) => [stepId(step), step]));
  return (asked) => byId.get(stepId(asked)) ?? plannedReserved(asked, kind);
}
/** Throws InvalidParameterValue with all errors. */
export function checkRequestedSteps(
  kind: SavedKind,
  asked: readonly RequestedStep[],
  offered: readonly PlannedStep[],
  { unknownLater = false, withoutRamdisk = false, prefix = '' }: Checking = {},
): void {
  const found = offer(kind, offered);
  const checked = asked.filter((step) => !unknownLater || found(step) !== undefined);
  const errors = [...checked.flatMap((step) => stepErrors(kind, step, found(step), withoutRamdisk)), ...repeated(kind, checked)];
  if (errors.length > 0) throw new Fault('InvalidParameterValue', { message: prefix + errors.join('; ') });
}

/** The steps of manual cleaning and servicing: exactly the list, in its order. Throws as `checkRequestedSteps`, or keeps unknown steps. */
export function manualSteps(
  kind: 'clean' | 'service',
  asked: readonly RequestedStep[],
  offered: readonly PlannedStep[],
  checking: Checking,
): readonly PlannedStep[] {
  checkRequestedSteps(kind, asked, offered, checking);
  const found = offer(kind, offered);
  return asked.flatMap((step) => {
    const own: Partial<PlannedStep> | undefined = step.execute_on_child_nodes ? {} : found(step);
    return own || checking.unknownLater ? [shaped({ ...step, abortable: own?.abortable ?? false, priority: own?.priority ?? 0 })] : [];
  });
}

/** Whether one of the steps may be the agent's, or requires the ramdisk. */
export function needsRamdisk(kind: SavedKind, asked: readonly RequestedStep[], offered: readonly PlannedStep[]): boolean {
  const found = offer(kind, offered);
  return !asked.every((step) => step.execute_on_child_nodes || found(step)?.requires_ramdisk === false);
}

/** The steps of a deployment: the offered ones, replaced by requested ones of the same name. Priority 0 drops a step. */
export function deploySteps(asked: readonly RequestedStep[], offered: readonly PlannedStep[]): readonly PlannedStep[] {
  const found = offer('deploy', offered);
  const wanted = new Set(asked.map(stepId));
  const own = asked.flatMap((step) => {
    const planned = { ...step, priority: step.priority ?? 0, ...(reservedStep(step) ? { abortable: true } : {}) };
    return found(step) || step.execute_on_child_nodes ? [shaped(planned)] : [];
  });
  return inOrder(
    'deploy',
    [...offered.filter((step) => !wanted.has(stepId(step))), ...own].filter(({ priority }) => priority > 0),
  );
}

/** The driver's step of this name; undefined: it may be a reserved step or the agent's. */
export const findStep = (
  driver: Driver,
  kind: StepKind,
  { interface: owner, step }: { readonly interface: string; readonly step: string },
): Step | undefined => {
  const chosen = (driver as unknown as Readonly<Record<string, Interface | undefined>>)[owner];
  return chosen?.steps?.find((candidate) => candidate.step === step && candidate.priority[kind] !== undefined);
};
