/**
 * The controls of steps (model/rules/step-controls.ts) at work: conditions, limits of time, and what follows a failure. Where a step is, is saved
 * in the column of the running step, and what became of a step in the saved list, so that any conductor can go on.
 */
import { failed, type PlannedStep, type SavedKind } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { JsonObject, StepControls } from '../../model/records';
import { failurePolicy, missingField, needsInventory, unmetCondition, type ConditionFacts } from '../../model/rules/step-controls';
import type { NodeTask } from '../core/node-task';
import type { StepOutcome } from './reserved-steps';
import { recordStep } from './step-history';
import { savedList, KEYS, positionOf } from './step-position';
import { stepId, type RequestedStep } from './steps';

/** Members of the running step. Only steps with controls have them. */
export interface StepProgress {
  /** Absent: 1. */
  readonly attempt?: number;
  /** An operator agreed. */
  readonly confirmed?: true;
  /** The step does not run: it waits for an operator, or for its next attempt. */
  readonly waits_for?: 'operator' | 'retry';
  /** When the attempt is over its limit. */
  readonly ends_at?: string;
}
/** What the next attempt needs of the running step. */
export const progressIn = ({ attempt, confirmed }: StepProgress): StepProgress => ({
  ...(attempt === undefined ? {} : { attempt }),
  ...(confirmed === undefined ? {} : { confirmed }),
});
export const progressOf = (running: PlannedStep): StepProgress => running as StepProgress;

async function factsFor({ node, context }: NodeTask, steps: readonly StepControls[]): Promise<ConditionFacts> {
  const found = steps.some(needsInventory) ? await context.store.inventories.find(node.uuid) : undefined;
  return { node, inventory: found?.inventory };
}
/** Refuses conditions on fields that the node does not have. Throws InvalidParameterValue. */
export async function checkConditions(task: NodeTask, kind: SavedKind, asked: readonly RequestedStep[]): Promise<void> {
  const steps = asked.filter(({ when }) => when !== undefined);
  if (steps.length === 0) return;
  const facts = await factsFor(task, steps);
  const errors = steps.flatMap((step) => {
    const missing = missingField(step, facts);
    return missing ? [`${kind} step ${stepId(step)}: ${missing.field}: ${missing.problem}`] : [];
  });
  if (errors.length > 0) throw new Fault('InvalidParameterValue', { message: errors.join('; ') });
}
/** Whether a step runs by its conditions: `skip` with the condition that does not hold, or a failure. */
export async function conditionsOf(
  task: NodeTask,
  step: PlannedStep,
): Promise<{ readonly skip?: string; readonly failure?: string } | undefined> {
  if (step.when === undefined) return undefined;
  const facts = await factsFor(task, [step]);
  const missing = missingField(step, facts);
  if (missing) return { failure: `${stepId(step)}: ${missing.field}: ${missing.problem}` };
  const skip = unmetCondition(step, facts);
  return skip === undefined ? undefined : { skip };
}

/** What became of a step that did not succeed although the list went on. Clients see it in the saved list. */
interface StepResult {
  readonly result: 'skipped' | 'failed';
  readonly reason: string;
}
const withResult = (steps: readonly PlannedStep[], at: number, result: StepResult): readonly PlannedStep[] =>
  steps.map((step, index) => (index === at ? { ...step, ...result } : step));
/** The event shows no reason: those who read events may not be allowed to read errors. */
const eventOf = (kind: SavedKind, steps: readonly PlannedStep[], at: number, more: JsonObject): JsonObject => ({
  flow: kind,
  done: at + (more['next'] === 'retry' ? 0 : 1),
  of: steps.length,
  step: stepId(steps[at]!),
  ...more,
});
/** The list goes on after a step that was skipped or failed. */
async function passOver(task: NodeTask, kind: SavedKind, at: number, result: StepResult, event: JsonObject): Promise<void> {
  const { steps } = positionOf(task, kind);
  const step = steps[at]!;
  recordStep(task, kind, `Step ${stepId(step)} ${result.result}, and the list goes on: ${result.reason}`);
  await task.write({}, savedList(kind, withResult(steps, at, result), at), async ({ events }) =>
    events.add(task.node, 'progress', eventOf(kind, steps, at, event)),
  );
}
export const skipStep = (task: NodeTask, kind: SavedKind, at: number, condition: string): Promise<void> =>
  passOver(task, kind, at, { result: 'skipped', reason: `${condition} does not hold` }, { result: 'skipped', condition });

/**
 * What a failure of the running step leads to. `wait`: its next attempt, after a pause, which is saved. `done`: the list goes on. Otherwise
 * the failure.
 */
export async function afterFailure(
  task: NodeTask,
  kind: SavedKind,
  at: number,
  running: PlannedStep & StepProgress,
  reason: string,
  isRetried = true,
): Promise<StepOutcome> {
  const { retries, pause, goesOn } = failurePolicy(running);
  const { attempt = 1 } = running;
  if (isRetried && attempt <= retries) {
    const { steps } = positionOf(task, kind);
    const { ends_at: _, ...step } = running;
    recordStep(
      task,
      kind,
      `Step ${stepId(running)} failed in attempt ${attempt} of ${retries + 1}, and runs again in ${pause} s: ${reason}`,
    );
    await task.write(
      { [KEYS[kind].column]: { ...step, attempt: attempt + 1, waits_for: 'retry' } },
      { step_poll_every: pause },
      async ({ events }) => events.add(task.node, 'progress', eventOf(kind, steps, at, { result: 'failed', attempt, next: 'retry' })),
    );
    return { kind: 'wait', pollEvery: pause };
  }
  if (!goesOn) return failed(reason);
  await passOver(task, kind, at, { result: 'failed', reason }, { result: 'failed', next: 'continue' });
  return { kind: 'done' };
}

export const lateText = (step: PlannedStep): string => `it did not end within its timeout of ${step.timeout!} seconds`;
/** The members that a step gets when an attempt begins. */
export function beginning({ clock }: NodeTask, step: PlannedStep, progress: StepProgress): StepProgress {
  const { timeout } = step;
  return { ...progressIn(progress), ...(timeout === undefined ? {} : { ends_at: timestamp(clock.now() + timeout * 1000) }) };
}
/** Seconds until the attempt is over its limit, at least 0; undefined: it has none. */
export function secondsLeft({ clock }: NodeTask, { ends_at: end }: StepProgress): number | undefined {
  return end === undefined ? undefined : Math.max(0, (Date.parse(end) - clock.now()) / 1000);
}
/** The wait of a step, which ends at the latest when its time is over. */
export function limitedWait(task: NodeTask, running: StepProgress, outcome: StepOutcome): StepOutcome {
  const left = secondsLeft(task, running);
  return outcome.kind === 'wait' && left !== undefined ? { ...outcome, pollEvery: Math.min(left, outcome.pollEvery ?? left) } : outcome;
}

/**
 * Runs the conductor's part of a step within the step's timeout: then its signal is aborted, and it fails if it did not succeed. It always
 * ends before this returns, so nothing of it goes on beside the next step.
 */
export async function withinTimeout(
  task: NodeTask,
  step: PlannedStep,
  work: (task: NodeTask) => Promise<StepOutcome>,
): Promise<StepOutcome> {
  const { timeout } = step;
  if (timeout === undefined) return work(task);
  const [late, ended] = [new AbortController(), new AbortController()];
  const timer = task.clock.sleep(timeout * 1000, AbortSignal.any([ended.signal, task.signal])).then(
    () => late.abort(),
    () => {},
  );
  const limited = Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(task), signal: { value: AbortSignal.any([task.signal, late.signal]), enumerable: true } },
  ) as NodeTask;
  try {
    const outcome = await work(limited);
    return late.signal.aborted && outcome.kind === 'failed' ? failed(lateText(step)) : outcome;
  } finally {
    ended.abort();
    await timer;
  }
}
