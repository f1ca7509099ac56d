/** The steps of a node: collected from its interfaces and its agent, put in order, saved, and run one after the other. */
import { failed, type Driver, type Interface, type Outcome, type PlannedStep, type Step, type StepKind } from '../drivers/interfaces';
import { Fault, reasonOf } from '../model/errors';
import { repr } from '../model/python';
import type { InterfaceKind, JsonObject, NodeChanges } from '../model/records';
import type { ConductorOptions } from './context';
import { mustLeave, type Held, type Internal } from './task';

/** Kinds whose list is saved on the node; verify steps run in one go. */
export type SavedKind = 'clean' | 'deploy';

/** Which interface's step goes first when priorities are equal: the higher number. Interfaces that are not here have no steps of the kind. */
const COMMON_ORDER = { vendor: 7, power: 6, management: 5, firmware: 4, deploy: 3, bios: 2, raid: 1 } as const;
export const INTERFACE_ORDER: Readonly<Record<StepKind, Readonly<Partial<Record<InterfaceKind, number>>>>> = {
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

/** `deploy.write_image`: how texts name a step, and how two are told apart. */
export const stepId = ({ interface: kind, step }: { readonly interface: string; readonly step: string }): string => `${kind}.${step}`;

/** Descending by priority; ties by interface, then as they came. */
export const inOrder = (kind: StepKind, steps: readonly PlannedStep[]): readonly PlannedStep[] => {
  const rank = (step: PlannedStep): number => INTERFACE_ORDER[kind][step.interface as InterfaceKind] ?? 0;
  return [...steps].sort((a, b) => b.priority - a.priority || rank(b) - rank(a));
};

const planned = (kind: StepKind, owner: string, step: Step): PlannedStep => ({
  interface: owner,
  step: step.step,
  priority: step.priority[kind]!,
  argsinfo: step.args ?? null,
  ...(kind === 'clean' || kind === 'service'
    ? { abortable: step.abortable ?? false, requires_ramdisk: step.requiresRamdisk ?? true }
    : step.abortable
      ? { abortable: true }
      : {}),
});

/** All steps of a kind, those of priority 0 too; a step that the driver has itself wins over the agent's of the same name. */
export function offeredSteps(driver: Driver, kind: StepKind, fromAgent: readonly PlannedStep[] = []): readonly PlannedStep[] {
  const own = (Object.keys(INTERFACE_ORDER[kind]) as InterfaceKind[]).flatMap((owner) => {
    const chosen: Interface = driver[owner];
    return (chosen.steps ?? []).filter((step) => step.priority[kind] !== undefined).map((step) => planned(kind, owner, step));
  });
  const taken = new Set(own.map(stepId));
  return [...own, ...fromAgent.filter((step) => !taken.has(stepId(step)))];
}

/** The priorities that the operator set over the driver's and the agent's: `interface.step` → priority. */
export function cleanPriorities(options: ConductorOptions): Readonly<Record<string, number>> {
  const set: Record<string, number> = {};
  for (const name of ['erase_devices', 'erase_devices_metadata'] as const) {
    const priority = options[`deploy.${name}_priority`];
    if (priority !== null) set[`deploy.${name}`] = priority;
  }
  for (const [id, priority] of Object.entries(options['conductor.clean_step_priority_override']))
    if (/^\d+$/.test(priority)) set[id] = Number(priority);
  return set;
}

/** What automated cleaning runs. */
export const automatedSteps = (offered: readonly PlannedStep[], overrides: Readonly<Record<string, number>>): readonly PlannedStep[] =>
  inOrder(
    'clean',
    offered.map((step) => ({ ...step, priority: overrides[stepId(step)] ?? step.priority })).filter(({ priority }) => priority > 0),
  );

/** A step as a client asks for it. The API checked its shape. */
export interface AskedStep {
  readonly interface: string;
  readonly step: string;
  readonly args?: JsonObject;
  readonly priority?: number;
}
export const askedSteps = (steps: readonly JsonObject[]): readonly AskedStep[] => steps as unknown as readonly AskedStep[];

function stepErrors(kind: SavedKind, asked: AskedStep, offered: PlannedStep | undefined, withoutRamdisk: boolean): readonly string[] {
  // The database keeps the members of an object in an order of its own.
  const { interface: owner, step, ...rest } = asked;
  const shown = repr({ interface: owner, step, ...rest });
  if (!offered) return [`node does not support this ${kind} step: ${shown}`];
  const known = (offered.argsinfo ?? {}) as Readonly<Record<string, { description?: string; required?: boolean }>>;
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

export interface Checking {
  /** A step that nobody offers yet may be the agent's: leave it for later. */
  readonly unknownLater?: boolean;
  readonly withoutRamdisk?: boolean;
  /** Stands before the errors. */
  readonly prefix?: string;
}
/** Throws InvalidParameterValue that lists all that is wrong. */
export function checkAsked(
  kind: SavedKind,
  asked: readonly AskedStep[],
  offered: readonly PlannedStep[],
  { unknownLater = false, withoutRamdisk = false, prefix = '' }: Checking = {},
): void {
  const byId = new Map(offered.map((step) => [stepId(step), step]));
  const errors = asked
    .filter((step) => !unknownLater || byId.has(stepId(step)))
    .flatMap((step) => stepErrors(kind, step, byId.get(stepId(step)), withoutRamdisk));
  if (errors.length > 0) throw new Fault('InvalidParameterValue', { message: prefix + errors.join('; ') });
}

/** What manual cleaning runs: exactly the list, in its order. Throws as `checkAsked`. */
export function manualSteps(asked: readonly AskedStep[], offered: readonly PlannedStep[], checking: Checking): readonly PlannedStep[] {
  checkAsked('clean', asked, offered, checking);
  const byId = new Map(offered.map((step) => [stepId(step), step]));
  return asked.flatMap((step) => {
    const found = byId.get(stepId(step));
    return found ? [{ ...found, ...(step.args ? { args: step.args } : {}) }] : [];
  });
}

/** What a deployment runs: the offered steps under the client's priorities and arguments; priority 0 leaves one out. */
export function deploySteps(asked: readonly AskedStep[], offered: readonly PlannedStep[]): readonly PlannedStep[] {
  const wanted = new Map(asked.map((step) => [stepId(step), step]));
  const all = offered.map((step) => {
    const own = wanted.get(stepId(step));
    return own ? { ...step, priority: own.priority ?? step.priority, ...(own.args ? { args: own.args } : {}) } : step;
  });
  return inOrder(
    'deploy',
    all.filter(({ priority }) => priority > 0),
  );
}

/** The step objects of a driver by interface and name; undefined: the agent's. */
export const findStep = (
  driver: Driver,
  kind: StepKind,
  { interface: owner, step }: { readonly interface: string; readonly step: string },
): Step | undefined => {
  const chosen = (driver as unknown as Readonly<Record<string, Interface | undefined>>)[owner];
  return chosen?.steps?.find((one) => one.step === step && one.priority[kind] !== undefined);
};

/** Column of the running step, and the keys of the saved list and position. */
const PLACES = {
  clean: { column: 'clean_step', list: 'clean_steps', index: 'clean_step_index' },
  deploy: { column: 'deploy_step', list: 'deploy_steps', index: 'deploy_step_index' },
} as const satisfies Record<SavedKind, { column: keyof NodeChanges; list: string; index: string }>;

export interface Position {
  readonly steps: readonly PlannedStep[];
  /** The step that runs, or the next one to run; undefined before the list is made. */
  readonly index: number | undefined;
  readonly running: PlannedStep | undefined;
}
export function positionOf(task: Held, kind: SavedKind): Position {
  const { column, list, index } = PLACES[kind];
  const internal = task.node.driver_internal_info;
  const steps = Array.isArray(internal[list]) ? (internal[list] as PlannedStep[]) : [];
  const running = task.node[column] as unknown as Partial<PlannedStep>;
  return {
    steps,
    index: typeof internal[index] === 'number' ? internal[index] : undefined,
    running: running.step === undefined ? undefined : (running as PlannedStep),
  };
}
/** The list as keys to save; `index` absent: nothing has begun. */
export const savedList = (kind: SavedKind, steps: readonly PlannedStep[], index?: number): Internal => ({
  [PLACES[kind].list]: steps,
  [PLACES[kind].index]: index,
});

/** Runs one step; whatever it throws is its failure. */
export async function runStep(task: Held, kind: SavedKind, step: PlannedStep): Promise<Outcome> {
  const own = findStep(task.driver, kind, step);
  try {
    if (own) return await own.run(task, step.args ?? {});
    if (task.driver.deploy.runAgentStep) return await task.driver.deploy.runAgentStep(task, kind, step);
    return failed('neither the driver nor an agent has such a step');
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn(`step ${stepId(step)} threw`, { error });
    return failed(reasonOf(error));
  }
}

/**
 * The one loop under cleaning and deployment. Each step is written down before it runs, and cleared when it is done: a step that stands on the
 * node runs or ran, an index without one names the next. Ends with `wait`, a failure, or `done` after the last.
 */
export async function runSteps(task: Held, kind: SavedKind, from: number): Promise<Outcome> {
  const { steps } = positionOf(task, kind);
  const { column, index } = PLACES[kind];
  for (let at = from; at < steps.length; at++) {
    task.signal.throwIfAborted();
    const step = steps[at]!;
    await task.write({ [column]: step }, { [index]: at });
    task.log.info(`${kind} step ${stepId(step)} (${at + 1} of ${steps.length})`);
    const outcome = await runStep(task, kind, step);
    if (outcome.kind !== 'done') return outcome;
    await task.write({ [column]: {} }, { [index]: at + 1 });
  }
  return { kind: 'done' };
}
