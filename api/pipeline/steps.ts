/** The steps of deploy templates and runbooks. */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { maskSecrets } from '../../model/masks';
import { equalJson } from '../../model/patch';
import { throwIfInvalid } from '../schema/schema';
import type { JsonObject, StepRecord } from '../../model/records';
import { CONTROL_NAMES, controlsOf, wrongControls } from '../../model/rules/step-controls';

const KEYS = ['interface', 'step', 'args', 'priority', 'order', ...CONTROL_NAMES];

/** Removes unknown members that a patch added to a step, as Ironic does. */
export const pruned = (steps: unknown): unknown =>
  Array.isArray(steps)
    ? steps.map((step: unknown) => (isObject(step) ? Object.fromEntries(Object.entries(step).filter(([key]) => KEYS.includes(key))) : step))
    : steps;

/** The error in the controls of steps, with the field's name; undefined: none. Other errors are found by the schema. */
export function controlsProblem(steps: readonly unknown[], name = ''): string | undefined {
  for (const [at, step] of steps.entries()) {
    const [wrong] = isObject(step) ? wrongControls(step) : [];
    if (wrong) return `${name}[${at}].${wrong.field}: ${wrong.problem}`;
  }
  return undefined;
}
/** What the schema of a template or runbook cannot express. @throws Fault InvalidParameterValue, or InvalidDeployTemplate for runbooks too */
export function checkStepList(steps: readonly StepInput[]): void {
  throwIfInvalid('', controlsProblem(steps, 'steps'));
  const names = new Set<string>();
  const twice = new Set<string>();
  for (const { interface: kind, step } of steps) {
    const name = `interface: ${kind}, step: ${step}`;
    (names.has(name) ? twice : names).add(name);
  }
  if (twice.size === 0) return;
  const err = 'Duplicate deploy steps. A template cannot have multiple deploy steps with the same interface and step. Duplicates: ';
  throw new Fault('InvalidDeployTemplate', { err: err + [...twice].join('; ') });
}

/** A step in a request: numbers may be text, and `args` may be absent. */
type StepInput = Omit<StepRecord, 'args' | 'priority' | 'order'> & {
  readonly args?: JsonObject;
  readonly priority?: number | string;
  readonly order?: number | string;
};
export const stored = (steps: readonly StepInput[]): readonly StepRecord[] =>
  steps.map((given) => {
    const { interface: kind, step, args, priority, order } = given;
    return {
      interface: kind,
      step,
      args: args ?? {},
      ...(priority === undefined ? {} : { priority: Number(priority) }),
      ...(order === undefined ? {} : { order: Number(order) }),
      ...controlsOf(given),
    };
  });

/** The steps of a response, with the numbers as the client wrote them. */
export const asWritten = (steps: readonly StepInput[]): readonly StepRecord[] => steps as readonly StepRecord[];

const sortKey = ({ interface: kind, step }: StepRecord): string => `${kind} ${step}`;
/** Unchanged steps stay in place; new steps follow, sorted by name. */
export function merged(before: readonly StepRecord[], after: readonly StepRecord[]): readonly StepRecord[] {
  // A list has no two steps with the same key (checkStepList).
  const byKey = (steps: readonly StepRecord[]): ReadonlyMap<string, StepRecord> => new Map(steps.map((step) => [sortKey(step), step]));
  const isIn = (steps: ReadonlyMap<string, StepRecord>, step: StepRecord): boolean => {
    const other = steps.get(sortKey(step));
    return other !== undefined && equalJson(other, step);
  };
  const [old, latest] = [byKey(before), byKey(after)];
  const added = after.filter((step) => !isIn(old, step));
  const unchanged = before.filter((step) => isIn(latest, step));
  return [...unchanged, ...added.sort((left, right) => (sortKey(left) < sortKey(right) ? -1 : 1))];
}

/** Steps in responses: secrets in their arguments are masked. */
export const masked = (steps: readonly StepRecord[]): readonly object[] => steps.map((step) => ({ ...step, args: maskSecrets(step.args) }));
