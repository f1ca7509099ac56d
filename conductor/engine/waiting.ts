/** How a node goes on that waits for its machine: an agent spoke, the running step is asked for again, or a hold was ended. */
import { failed, type Outcome, type PlannedStep } from '../../drivers/interfaces';
import { bareTimestamp, timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { ProvisionState } from '../../model/states';
import { agentStepsOf } from '../steps/agent-steps';
import { finishAbort, unfinished } from '../flows/after-abort';
import { clean, startCleanSteps } from '../flows/clean';
import { deploy, takeAgentSteps } from '../flows/deploy';
import { applyOutcome, type Flow, type SteppedFlow } from '../flows/flow';
import { inspect } from '../flows/inspect';
import { finishRescue, rescue } from '../flows/rescue';
import { service, startServiceSteps } from '../flows/service';
import { reservedStep, type StepOutcome } from '../steps/reserved-steps';
import { positionOf, savedList } from '../steps/running';
import { findStep, stepId } from '../steps/steps';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

/** `silence`: the agent is asked, since it was not heard of for too long. */
export type WakeReason = 'heartbeat' | 'poll' | 'unhold' | 'silence';
interface Waiting {
  readonly flow: Flow;
  /** Why the flow fails when maintenance was switched on and must not be waited in. */
  readonly maintained: string;
  readonly goOn: (task: NodeTask, why: WakeReason, said?: Outcome) => Promise<void>;
}
const inSteps = (flow: SteppedFlow, maintained: string): Waiting => ({
  flow,
  maintained,
  goOn: (task, why, said) => advanceSteps(task, flow, why, said),
});
/** Waiting state → how it goes on. */
const WAITING: Partial<Record<ProvisionState, Waiting>> = {
  'clean wait': inSteps(clean, 'Cleaning aborted as node is in maintenance mode'),
  'wait call-back': inSteps(deploy, 'Deploy aborted as node is in maintenance mode'),
  'service wait': inSteps(service, 'Service aborted as node is in maintenance mode'),
  // Where a service inspects, which is over when the service says so.
  'inspect wait': {
    flow: inspect,
    maintained: 'Inspection aborted as node is in maintenance mode',
    goOn: async (task, _, said) => {
      if (said && said.kind !== 'wait') await applyOutcome(task, inspect, async () => said);
    },
  },
  'rescue wait': {
    flow: rescue,
    maintained: 'Rescue aborted as node is in maintenance mode',
    goOn: async (task) => {
      await task.fire('resume');
      await applyOutcome(task, rescue, () => finishRescue(task));
    },
  },
};

/** @param said how the running step stands, where that is known already */
export async function wake(task: NodeTask, why: WakeReason, said?: Outcome): Promise<void> {
  const waiting = WAITING[task.node.provision_state];
  if (!waiting) return;
  if (task.node.maintenance) {
    if (task.context.options['conductor.allow_provisioning_in_maintenance'])
      task.log.warn('heartbeat of a node in maintenance mode; not taking any action');
    else await waiting.flow.fail(task, waiting.maintained);
    return;
  }
  // The agent's time too: most looks end with the step as it was, and then this is all that there is to write. What is only asked for,
  // shall not make the wait longer, unless it says so.
  const now = task.clock.now();
  if (why === 'heartbeat' || why === 'unhold')
    task.note({ provision_updated_at: timestamp(now) }, why === 'heartbeat' ? { agent_last_heartbeat: bareTimestamp(now) } : {});
  await waiting.goOn(task, why, said);
}

/** What makes a list of the agent's steps and runs it. In a deployment, they join a list that runs. */
const START: Partial<Record<SteppedFlow['kind'], (task: NodeTask, steps: readonly PlannedStep[]) => Promise<StepOutcome>>> = {
  clean: startCleanSteps,
  service: startServiceSteps,
};

async function advanceSteps(task: NodeTask, flow: SteppedFlow, why: WakeReason, said?: Outcome): Promise<void> {
  if (why === 'heartbeat' && needsAgentSteps(task, flow)) {
    const steps = await agentStepsOf(task, flow.kind).catch((error: unknown) => {
      if (isInterrupted(task.context, error)) throw error;
      return `${flow.cannotLoad}: ${reasonOf(error)}`;
    });
    // Undefined: the agent is busy, the next heartbeat asks again.
    if (steps === undefined) return;
    if (typeof steps === 'string') return flow.fail(task, steps);
    const start = START[flow.kind];
    if (start) {
      await task.fire('resume');
      return applyOutcome(task, flow, () => start(task, steps));
    }
    const refused = await takeAgentSteps(task, steps).then(
      () => undefined,
      (error: unknown) => {
        if (isInterrupted(task.context, error)) throw error;
        return reasonOf(error);
      },
    );
    if (refused !== undefined) return flow.fail(task, refused);
  }
  await afterStep(task, flow, why, said);
}

const needsAgentSteps = (task: NodeTask, { kind }: SteppedFlow): boolean =>
  kind === 'deploy'
    ? task.driver.deploy.agentSteps !== undefined && task.node.driver_internal_info.steps_validated !== true
    : positionOf(task, kind).running === undefined;

/** How the running step stands, as the driver sees it (a failure in whole sentences); one that asks nobody is over with the first sign of life. */
async function standing(task: NodeTask, flow: SteppedFlow, running: PlannedStep, why: WakeReason): Promise<Outcome> {
  // A wait of some seconds is over after them; every other, and a hold, when somebody calls.
  if (reservedStep(running)) {
    const waits = why === 'silence' || (running.args?.seconds !== undefined && why === 'heartbeat');
    return { kind: waits ? 'wait' : 'done' };
  }
  const own = findStep(task.driver, flow.kind, running);
  if (own?.poll && why !== 'poll' && !(why === 'heartbeat' && own.pollAtHeartbeat)) return { kind: 'wait' };
  try {
    if (own?.poll) return await own.poll(task, running.args ?? {});
    return (await task.driver.deploy.onHeartbeat?.(task, flow.kind, running)) ?? { kind: 'done' };
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (why === 'silence') return { kind: 'wait' };
    if (!(error instanceof Fault)) task.log.warn(`asking for step ${stepId(running)} threw`, { error });
    return failed(flow.stepFailure(task, reasonOf(error)));
  }
}

async function afterStep(task: NodeTask, flow: SteppedFlow, why: WakeReason, known?: Outcome): Promise<void> {
  const { kind } = flow;
  const { steps, index = 0, running } = positionOf(task, kind);
  if (running) {
    const said = known ?? (await standing(task, flow, running, why));
    if (said.kind === 'wait') {
      task.context.heartbeats.seen(task.node.uuid);
      if (why === 'poll' && !said.quiet) task.note({ provision_updated_at: timestamp(task.clock.now()) });
      const again = said.pollEvery ?? (task.node.driver_internal_info.step_poll_every as number | undefined);
      if (why === 'poll' && again !== undefined) task.context.askLater(task.node.uuid, again);
      return;
    }
    if (said.kind === 'failed') return flow.fail(task, said.reason);
    if ((running as { abort_after?: boolean }).abort_after) return abortNow(task, flow);
  }
  const from = running ? index + 1 : index;
  // What ended by a heartbeat shall not be asked for any more: the answer would be another step's.
  task.context.askNoMore(task.node.uuid);
  await task.fire('resume', { [`${kind}_step`]: {} }, { ...savedList(kind, steps, from), step_poll_every: undefined });
  await applyOutcome(task, flow, () => flow.proceed(task, from));
}

/** The step that could not be aborted is over. */
async function abortNow(task: NodeTask, flow: SteppedFlow): Promise<void> {
  await task.fire('fail', {}, unfinished(flow.kind));
  await finishAbort(task);
}
