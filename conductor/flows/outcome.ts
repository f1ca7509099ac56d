/** How the outcome of a flow's work becomes an event. Drivers never change a node's state; this file does. */
import { Fault, reasonOf } from '../../model/errors';
import { nextState } from '../../model/states';
import { attempt, FlowFailure, reduced } from '../core/attempt';
import { isInterrupted } from '../core/interruption';
import type { NodeTask } from '../core/node-task';
import type { StepOutcome } from '../steps/reserved-steps';
import { failureReport } from './failure-report';
import type { Flow } from './flow';

/** Runs `work` and turns its outcome into an event. An error of `work` fails the flow. */
export async function applyOutcome(task: NodeTask, flow: Flow, work: () => Promise<StepOutcome>): Promise<void> {
  let reason: string;
  try {
    const outcome = await work();
    if (outcome.kind === 'failed') ({ reason } = outcome);
    else {
      await {
        done: () => flow.finish(task),
        hold: () => task.end('hold'),
        wait: () => startWaiting(task, 'pollEvery' in outcome ? outcome.pollEvery : undefined),
      }[outcome.kind]();
      return;
    }
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault || error instanceof FlowFailure)) task.log.error('a flow ended unexpectedly', { error });
    reason = reasonOf(error);
  }
  await failFlow(task, flow, reason);
}

/**
 * Fails the flow. If its failure cannot be written, the log says so, and the flow ends with a reduced reason and without its other changes:
 * otherwise recovery would resume the flow again and again.
 */
export async function failFlow(task: NodeTask, flow: Flow, reason: string, how: { readonly late?: true } = {}): Promise<void> {
  try {
    await flow.fail(task, reason, { ...how, report: await failureReport(task, flow, reason, how) });
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    const { uuid, name } = task.node;
    task.log.error(`the failure of node ${name ?? uuid} cannot be written`, { failure: reduced(reason), reason: reasonOf(error), error });
    await task.discardNotes();
    if (nextState(task.node.provision_state, 'fail') === undefined) return;
    await task.end('fail', { last_error: `${reduced(reason)} (The rest of this failure cannot be written: ${reduced(reasonOf(error))})` });
  }
}

async function startWaiting(task: NodeTask, pollEvery: number | undefined): Promise<void> {
  await task.end('wait', {}, { step_poll_every: pollEvery });
  if (pollEvery !== undefined) task.context.pollLater(task.node.uuid, pollEvery);
}

/** Powers the machine off after a failure, if the option says so. An error of the power-off is only logged. */
export async function powerOffAfter(
  task: NodeTask,
  option: `conductor.poweroff_in_${'clean' | 'service'}fail` | 'deploy.power_off_after_deploy_failure',
): Promise<void> {
  if (task.context.options[option] && !task.node.disable_power_off)
    await attempt(task, 'powering off after a failure', () => task.power('power off'));
}
