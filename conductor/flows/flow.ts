/**
 * A flow as one record: all that the engine needs of it. `index.ts` lists the flows. The engine finds the flow by the row of a node's
 * state, or by an event.
 */
import type { Outcome, SavedKind } from '../../drivers/interfaces';
import type { NodeChanges, NodeRecord } from '../../model/records';
import type { Event, FlowName, ProvisionState } from '../../model/states';
import type { ProvisionArgs } from '../core/call-types';
import type { ConcurrencyLimit } from '../core/concurrency';
import { attempt, reduced } from '../core/attempt';
import type { InternalChanges, InternalKey } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import type { StepOutcome } from '../steps/reserved-steps';

/** What is written together with the event that begins a flow. */
export interface Admitted {
  readonly changes: NodeChanges;
  readonly internal?: InternalChanges;
}
export interface Admission {
  /** Over this limit the request is refused before the node is held. */
  readonly limit?: ConcurrencyLimit;
  /** Checks the request before the response. Throws the Fault that the client gets. */
  check(task: NodeTask, args: ProvisionArgs): Promise<Admitted>;
}

/** `silence`: the agent missed its heartbeats, and the conductor asks it. */
export type WakeReason = 'heartbeat' | 'poll' | 'unhold' | 'silence';
/** `late`: the wait for the machine timed out. */
export interface Failure {
  readonly late?: true;
  /** Lines about the failure (failure-report.ts), which follow the reason. */
  readonly report?: readonly string[];
}
/** `last_error`: the reason, and what the report adds. */
export const reported = (reason: string, how: Failure | undefined): string => [reason, ...(how?.report ?? [])].join('\n');

/** How a flow waits for its machine. The node's state row names the option that limits the wait. */
interface Waiting {
  /** Why the flow fails when the node goes into maintenance while it waits. */
  readonly inMaintenance: string;
  /** @param outcome of the running step, when the caller knows it already */
  readonly wake: (task: NodeTask, why: WakeReason, outcome?: Outcome) => Promise<void>;
  readonly timeout: {
    /** `last_error` of a node that waited too long. */
    readonly text: (node: NodeRecord) => string;
    /** How often the conductor checks; default: [conductor]check_provision_state_interval. */
    readonly interval?: 'conductor.check_rescue_state_interval';
  };
}

/** Cleans up after an abort, which the node's state shows already. Another conductor may repeat the clean-up from its beginning. */
export interface AfterAbort {
  /** The states to which the abort leads. In any other state a client has used the node since, and nothing is left to do. */
  readonly states: readonly ProvisionState[];
  /** @param variant as given to `unfinishedAbort` */
  work(task: NodeTask, variant?: string): Promise<void>;
}

export interface Flow {
  /** The type of the flow's errors in the node's history, in Ironic's words. */
  readonly errorType: string;
  /** By the event of the verb that begins the flow. */
  readonly admit: Readonly<Partial<Record<Event, Admission>>>;
  /** The work, under the lock, after the event. */
  begin(task: NodeTask): Promise<StepOutcome>;
  /** All work is done: fires the event that ends the flow. An error that it throws fails the flow. */
  finish(task: NodeTask): Promise<void>;
  /** Cleans up as far as possible, and fires `fail` with the reason and the report as `last_error`. */
  fail(task: NodeTask, reason: string, how?: Failure): Promise<void>;
  /** The flow works through the deploy interface: `autodetect` chooses one before. */
  readonly usesDeploy?: true;
  /** The node's agent works for the flow, and is asked after a failure. */
  readonly asksAgent?: true;
  /** Absent: the flow has no waiting state. */
  readonly waiting?: Waiting;
  /** By the state in which the client aborts: fires `abort`, or only marks the running step. */
  readonly abort?: Readonly<Partial<Record<ProvisionState, (task: NodeTask) => Promise<void>>>>;
  readonly afterAbort?: AfterAbort;
  /** How a conductor continues a node that another one left in the working state; absent: it begins again. */
  resume?(task: NodeTask): Promise<StepOutcome>;
  /** The kind of the flow's steps; absent: it has none. */
  readonly kind?: SavedKind;
  /** The end of a hold continues the flow at once, without waiting for the agent's next heartbeat. */
  readonly wakeAtUnhold?: true;
  /** Whether the periodic work of the interface reads the node as soon as the lock is free. */
  lookWhenReleased?(task: NodeTask): boolean;
}

/** The name of the flow's step that runs on the node, if any. An earlier flow may have left its own step there. */
export const runningStep = (node: NodeRecord, { kind }: Flow): string | undefined =>
  kind && (node[`${kind}_step`].step as string | undefined);

/** Key of driver_internal_info: the flow whose abort is not cleaned up yet, with its variant. */
export const UNFINISHED_ABORT = 'abort_unfinished' satisfies InternalKey;
/** Written with the event of the abort. Stays on the node until the clean-up is over. */
export const unfinishedAbort = (flow: FlowName, variant?: string): InternalChanges => ({
  [UNFINISHED_ABORT]: variant === undefined ? flow : `${flow}, ${variant}`,
});
/** Runs the clean-up, unless a client has used the node since. A clean-up that fails is over too: the node has the reason. */
export async function completeAbort(task: NodeTask, { afterAbort }: Flow, variant?: string): Promise<void> {
  if (afterAbort?.states.includes(task.node.provision_state)) {
    const problem = await attempt(task, 'cleaning up after an abort', () => afterAbort.work(task, variant));
    if (problem !== undefined) {
      await task.discardNotes();
      task.note({ last_error: `Cleaning up after the abort failed: ${reduced(problem)}` });
    }
  }
  task.note({}, { [UNFINISHED_ABORT]: undefined });
}
