/** What the flows with a list of steps share: how they wait for a step, continue after it, end early, and are resumed. */
import { failed, type Outcome, type PlannedStep, type SavedKind } from '../../drivers/interfaces';
import { instantOf, timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { isInterrupted } from '../core/interruption';
import type { InternalChanges } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { agentStepsOf } from '../steps/agent-steps';
import { reservedStep, type StepOutcome } from '../steps/reserved-steps';
import { runSteps, type StepHooks } from '../steps/running';
import { afterFailure, lateText, progressIn, progressOf, secondsLeft, type StepProgress } from '../steps/step-controls';
import { positionOf, savedList } from '../steps/step-position';
import { findStep, stepId } from '../steps/steps';
import { completeAbort, unfinishedAbort, type Flow, type WakeReason } from './flow';
import { applyOutcome, failFlow } from './outcome';

/** The parts in which these flows differ. */
export interface StepsFlowParts extends Omit<Flow, 'waiting' | 'resume'> {
  readonly kind: SavedKind;
  /** Prefix of the reason when the agent's steps cannot be read. */
  readonly cannotLoad: string;
  readonly inMaintenance: string;
  readonly timeoutText: (node: NodeRecord) => string;
  /** The reason of a failure, with the step that failed. */
  stepFailure(task: NodeTask, reason: string): string;
  /** Whether the list does not have the agent's steps yet. */
  lacksAgentSteps(task: NodeTask): boolean;
  /** Takes the steps that the agent reported after a heartbeat. Returns whether this heartbeat needs no further work. */
  takeAgentSteps(task: NodeTask, steps: readonly PlannedStep[]): Promise<boolean>;
  readonly hooks: StepHooks;
}
export interface StepsFlow extends Flow, Pick<StepsFlowParts, 'stepFailure'> {
  readonly kind: SavedKind;
  /** Runs the saved list from this position on. @param begun of the first step, if it has begun before */
  proceed(task: NodeTask, from: number, begun?: StepProgress): Promise<StepOutcome>;
}

export function stepsFlow(parts: StepsFlowParts): StepsFlow {
  const { kind } = parts;
  const flow: StepsFlow & StepsFlowParts = {
    ...parts,
    asksAgent: true,
    usesDeploy: true,
    waiting: {
      inMaintenance: parts.inMaintenance,
      wake: (task, why, outcome) => wakeSteps(task, flow, why, outcome),
      timeout: { text: parts.timeoutText },
    },
    proceed: async (task, from, begun) => {
      const outcome = await runSteps(task, kind, from, parts.hooks, begun);
      return outcome.kind === 'failed' ? failed(parts.stepFailure(task, outcome.reason)) : outcome;
    },
    resume: (task) => resumeSteps(task, flow),
  };
  return flow;
}

const notResumable = (task: NodeTask): Outcome =>
  failed(`The ${task.node.provision_state} state can't be resumed by conductor ${task.context.host}. Moving to fail state.`);

/** Runs the running step again only if the step allows it. A step of the agent is not started again: the node waits for its result. */
async function resumeSteps(task: NodeTask, flow: StepsFlow): Promise<StepOutcome> {
  const { index, running } = positionOf(task, flow.kind);
  if (index === undefined) return flow.begin(task);
  if (!running) return flow.proceed(task, index);
  const progress = progressOf(running);
  if (progress.waits_for !== undefined) return flow.proceed(task, index, progressIn(progress));
  if (running.execute_on_child_nodes) return notResumable(task);
  const own = findStep(task.driver, flow.kind, running) ?? reservedStep(running);
  if (!own) return { kind: 'wait' };
  return own.resumable ? flow.proceed(task, index, progressIn(progress)) : notResumable(task);
}

async function wakeSteps(task: NodeTask, flow: StepsFlow & StepsFlowParts, why: WakeReason, outcome?: Outcome): Promise<void> {
  // The node is in service again.
  if (task.node.driver_internal_info.cleaning_held) {
    task.context.stopPolling(task.node.uuid);
    task.fireWithNext('resume', {}, { cleaning_held: undefined, step_poll_every: undefined });
    return applyOutcome(task, flow, () => flow.begin(task));
  }
  if (why === 'heartbeat' && flow.lacksAgentSteps(task)) {
    const steps = await agentStepsOf(task, flow.kind).catch((error: unknown) => {
      if (isInterrupted(task.context, error)) throw error;
      return `${flow.cannotLoad}: ${reasonOf(error)}`;
    });
    // Undefined: the agent is busy, and is asked again at its next heartbeat.
    if (steps === undefined) return;
    if (typeof steps === 'string') return failFlow(task, flow, steps);
    if (await flow.takeAgentSteps(task, steps)) return;
  }
  await continueSteps(task, flow, why, outcome);
}

/**
 * Whether the machine has asked for a boot file since its agent was last heard of. Anybody can send such a request, so it counts only for an
 * agent that has been silent for long, and does not answer. DHCP does not count: agents renew their leases.
 */
async function hasBootedAgain({ node, context }: NodeTask): Promise<boolean> {
  const { agent_last_heartbeat: last } = node.driver_internal_info;
  if (typeof last !== 'string') return false;
  const { HTTP: http, TFTP: tftp } = (await context.store.boots.requestsOf(node.uuid)) ?? {};
  return [http, tftp].some((at) => at !== undefined && instantOf(at) > instantOf(last));
}

/** The outcome of the running step, as its driver reports it. The reason of a failure is a whole sentence. */
async function outcomeOf(task: NodeTask, flow: StepsFlow, running: PlannedStep, why: WakeReason): Promise<Outcome> {
  // A `wait` with seconds ends by its poll. Every other reserved step ends with the first heartbeat, or the end of the hold.
  if (reservedStep(running)) {
    const waits = why === 'silence' || (running.args?.seconds !== undefined && why === 'heartbeat');
    return { kind: waits ? 'wait' : 'done' };
  }
  const own = findStep(task.driver, flow.kind, running);
  // The step has no poll of its own: its time may be over, and the agent is asked before.
  const isOnlyTimed = why === 'poll' && !own?.poll;
  if (own?.poll && why !== 'poll' && !(why === 'heartbeat' && own.pollAtHeartbeat)) return { kind: 'wait' };
  try {
    if (own?.poll) return await own.poll(task, running.args ?? {});
    const outcome = (await task.driver.deploy.onHeartbeat?.(task, flow.kind, running)) ?? { kind: 'done' };
    return isOnlyTimed && outcome.kind === 'wait' ? { ...outcome, quiet: true } : outcome;
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (why === 'silence' && (await hasBootedAgain(task)))
      return failed(flow.stepFailure(task, 'The machine booted again while the step ran, and its agent does not answer'));
    if (why === 'silence' || isOnlyTimed) return { kind: 'wait', quiet: true };
    if (!(error instanceof Fault)) task.log.warn(`the outcome of step ${stepId(running)} cannot be read`, { error });
    return failed(flow.stepFailure(task, reasonOf(error)));
  }
}

/** The running step failed. Returns whether the flow goes on with the next step. */
async function goesOnAfter(task: NodeTask, flow: StepsFlow, at: number, running: PlannedStep, reason: string): Promise<boolean> {
  const next = isAbortDeferred(running) ? failed(reason) : await afterFailure(task, flow.kind, at, running, reason);
  if (next.kind === 'failed') await failFlow(task, flow, next.reason);
  if (next.kind === 'wait') task.context.pollLater(task.node.uuid, next.pollEvery!);
  return next.kind === 'done';
}
/** Begins an attempt for which the step has waited. */
async function beginAttempt(task: NodeTask, flow: StepsFlow, at: number, { waits_for: waits, ...progress }: StepProgress): Promise<void> {
  task.context.stopPolling(task.node.uuid);
  task.fireWithNext('resume', {}, { step_poll_every: undefined });
  const begun: StepProgress = { ...progressIn(progress), ...(waits === 'operator' ? { confirmed: true } : {}) };
  await applyOutcome(task, flow, () => flow.proceed(task, at, begun));
}

/** Continues with the list if the running step is over. */
async function continueSteps(task: NodeTask, flow: StepsFlow, why: WakeReason, known?: Outcome): Promise<void> {
  const { kind } = flow;
  const { steps, index = 0, running } = positionOf(task, kind);
  if (running) {
    const progress = progressOf(running);
    if (progress.waits_for !== undefined) {
      // A node leaves its hold only when the operator agrees. A pause ends with its poll.
      const isOver = progress.waits_for === 'operator' ? why !== 'silence' : why === 'poll';
      if (isOver) return beginAttempt(task, flow, index, progress);
      task.context.heartbeats.stepChecked(task.node.uuid);
      return;
    }
    const outcome = known ?? (await outcomeOf(task, flow, running, why));
    const left = secondsLeft(task, progress);
    // Nothing can stop a step that runs in the machine, so no other step may run after it.
    if (outcome.kind === 'wait' && left === 0)
      return failFlow(task, flow, flow.stepFailure(task, `${lateText(running)}, and may still run`));
    if (outcome.kind === 'wait') {
      keepWaiting(task, why, outcome, left);
      return;
    }
    if (outcome.kind === 'failed' && !(await goesOnAfter(task, flow, index, running, outcome.reason))) return;
    if (isAbortDeferred(running)) return abortAfterStep(task, flow);
  }
  const from = running ? index + 1 : index;
  // A poll that was scheduled for the finished step would count as a poll of the next step.
  task.context.stopPolling(task.node.uuid);
  // The list may say since now that the step failed.
  const list = running ? positionOf(task, kind).steps : steps;
  const position = { ...savedList(kind, list, from), step_poll_every: undefined };
  // The end of a step is an event of its own (docs/reference/events.md), which a write together with the next step would not cause.
  if (running) await task.fire('resume', { [`${kind}_step`]: {} }, position);
  else task.fireWithNext('resume', {}, position);
  await applyOutcome(task, flow, () => flow.proceed(task, from));
}
/** @param left seconds until the time of the step is over */
function keepWaiting(task: NodeTask, why: WakeReason, { quiet, pollEvery }: Extract<Outcome, { kind: 'wait' }>, left = Infinity): void {
  const { node, context, clock } = task;
  context.heartbeats.stepChecked(node.uuid);
  if (why !== 'poll') return;
  if (!quiet) task.note({ provision_updated_at: timestamp(clock.now()) });
  const again = pollEvery ?? node.driver_internal_info.step_poll_every;
  if (again !== undefined) context.pollLater(node.uuid, Math.min(again, left));
}

/** `last_error` of a flow that a client aborted. */
export function abortedText(task: NodeTask, kind: SavedKind): string {
  const { running } = positionOf(task, kind);
  const during = running ? ` during or after the completion of step "${stepId(running)}"` : '';
  return `By request, the ${kind} operation was aborted${during}`;
}
const isAbortDeferred = (running: PlannedStep): boolean => (running as { abort_after?: boolean }).abort_after === true;
/** Marks a running step that cannot be aborted: the abort follows when the step is over. Returns whether a step was marked. */
export async function deferAbort(task: NodeTask, kind: SavedKind): Promise<boolean> {
  const { running } = positionOf(task, kind);
  // A step that waits for its next attempt, or for an operator, does not run.
  if (!running || running.abortable || progressOf(running).waits_for !== undefined) return false;
  await task.save({ [`${kind}_step`]: { ...running, abort_after: true } });
  return true;
}
export const abortSteps =
  (kind: SavedKind, internal: InternalChanges = {}) =>
  async (task: NodeTask): Promise<void> => {
    if (await deferAbort(task, kind)) return;
    await task.fire('abort', { last_error: abortedText(task, kind) }, { ...internal, ...unfinishedAbort(kind) });
  };
async function abortAfterStep(task: NodeTask, flow: StepsFlow): Promise<void> {
  await task.fire('fail', {}, unfinishedAbort(flow.kind));
  await completeAbort(task, flow);
}
