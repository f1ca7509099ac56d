/** The steps of deploy templates and runbooks. */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { maskSecrets } from '../../model/masks';
import { equalJson } from '../../model/patch';
import type { JsonObject, StepRecord } from '../../model/records';

const KEYS = ['interface', 'step', 'args', 'priority', 'order'];

/** Removes unknown members that a patch added to a step, as Ironic does. */
export const pruned = (steps: unknown): unknown =>
  Array.isArray(steps)
    ? steps.map((step: unknown) => (isObject(step) ? Object.fromEntries(Object.entries(step).filter(([key]) => KEYS.includes(key))) : step))
    : steps;

/** @throws Fault InvalidDeployTemplate, also for runbooks */
export function checkDuplicates(steps: readonly StepInput[]): void {
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
export type StepInput = Omit<StepRecord, 'args' | 'priority' | 'order'> & {
  readonly args?: JsonObject;
  readonly priority?: number | string;
  readonly order?: number | string;
};
export const stored = (steps: readonly StepInput[]): readonly StepRecord[] =>
  steps.map(({ interface: kind, step, args, priority, order }) => ({
    interface: kind,
    step,
    args: args ?? {},
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    ...(order === undefined ? {} : { order: Number(order) }),
  }));

const sortKey = ({ interface: kind, step }: StepRecord): string => `${kind} ${step}`;
/** Unchanged steps stay in place; new steps follow, sorted by name. */
export function merged(before: readonly StepRecord[], after: readonly StepRecord[]): readonly StepRecord[] {
  // A list has no two steps with the same key (checkDuplicates).
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
