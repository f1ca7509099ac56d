/** Where a node is in its saved list of steps. */
import type { PlannedStep } from '../../drivers/interfaces';
import { setting, type InternalChanges, type InternalKey } from '../../model/internal-info';
import type { NodeChanges } from '../../model/records';
import type { NodeTask } from '../core/node-task';
import { shaped, type SavedKind } from './steps';

/** The column of the running step, and the keys of the saved list and position. */
export const KEYS = {
  clean: { column: 'clean_step', list: 'clean_steps', index: 'clean_step_index' },
  deploy: { column: 'deploy_step', list: 'deploy_steps', index: 'deploy_step_index' },
  service: { column: 'service_step', list: 'service_steps', index: 'service_step_index' },
} as const satisfies Record<SavedKind, { column: keyof NodeChanges; list: InternalKey; index: InternalKey }>;

interface Position {
  readonly steps: readonly PlannedStep[];
  /** The step that runs, or the next one to run; undefined before the list is made. */
  readonly index: number | undefined;
  readonly running: PlannedStep | undefined;
}
export function positionOf(task: NodeTask, kind: SavedKind): Position {
  const { column, list, index } = KEYS[kind];
  const internal = task.node.driver_internal_info;
  const steps = Array.isArray(internal[list]) ? (internal[list] as PlannedStep[]).map(shaped) : [];
  const running = task.node[column] as unknown as Partial<PlannedStep>;
  return {
    steps,
    index: typeof internal[index] === 'number' ? internal[index] : undefined,
    running: running.step === undefined ? undefined : (running as PlannedStep),
  };
}
function savedStep(step: PlannedStep): PlannedStep {
  const { addedArguments, ...rest } = step;
  return addedArguments ? rest : step;
}
/** The list as keys of driver_internal_info; `index` absent: no step has begun. */
export const savedList = (kind: SavedKind, steps: readonly PlannedStep[], index?: number): InternalChanges => ({
  ...setting(KEYS[kind].list, steps.map(savedStep)),
  ...setting(KEYS[kind].index, index),
});
