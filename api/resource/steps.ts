/** Steps as deploy templates and runbooks keep them. */
import { Fault } from '../../model/errors';
import { isObject } from '../../model/json';
import { maskSecrets } from '../../model/masks';
import { same } from '../../model/patch';
import type { JsonObject, StepRecord } from '../../model/records';

const KEYS = ['interface', 'step', 'args', 'priority', 'order'];

/** What a patch added to a step beside its own members goes again, as it does there. */
export const pruned = (steps: unknown): unknown =>
  Array.isArray(steps)
    ? steps.map((step: unknown) => (isObject(step) ? Object.fromEntries(Object.entries(step).filter(([key]) => KEYS.includes(key))) : step))
    : steps;

/** @throws Fault InvalidDeployTemplate (runbooks too: the sentence is one) */
export function checkDuplicates(steps: readonly StepInput[]): void {
  const names = steps.map(({ interface: kind, step }) => `interface: ${kind}, step: ${step}`);
  const twice = [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
  if (twice.length === 0) return;
  const err = 'Duplicate deploy steps. A template cannot have multiple deploy steps with the same interface and step. Duplicates: ';
  throw new Fault('InvalidDeployTemplate', { err: err + twice.join('; ') });
}

/** As callers say them: numbers may be text, and arguments may be left out. */
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
/** Steps that stay keep their places; what is new comes behind, by name. */
export function merged(before: readonly StepRecord[], after: readonly StepRecord[]): readonly StepRecord[] {
  const added = after.filter((step) => !before.some((one) => same(one, step)));
  const kept = before.filter((step) => after.some((one) => same(one, step)));
  return [...kept, ...added.sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1))];
}

/** As answers show them: without the secrets among their arguments. */
export const masked = (steps: readonly StepRecord[]): readonly object[] => steps.map((step) => ({ ...step, args: maskSecrets(step.args) }));
