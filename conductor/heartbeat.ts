/**
 * An agent's sign of life: checked, recorded, and what it sets going. It never waits for a lock: met on a held node, it is
 * remembered and acted on when the node is let go, since an agent that has finished may not speak again for minutes.
 */
import { failed, type Outcome, type PlannedStep } from '../drivers/interfaces';
import { timestamp } from '../model/clock';
import { Fault, reasonOf } from '../model/errors';
import type { Heartbeat, NodeRecord } from '../model/records';
import { stateRow } from '../model/states';
import type { Context } from './context';
import { afterCleanAbort, clean, cleanAborted, cleanStepFailure, continueClean, startCleanSteps } from './flows/clean';
import { afterDeployAbort, continueDeploy, deploy, deployAborted, deployStepFailure, takeAgentSteps } from './flows/deploy';
import { settle, type Flow } from './flows/flow';
import { positionOf, savedList, stepId, type SavedKind } from './steps';
import { mustLeave, startTask, type Held } from './task';
import { tokenIsRight } from './token';

const AGENT_STATUSES = ['start', 'end', 'error'];

/** Throws what the agent gets for a beat that is not its node's; in the order of Ironic's checks. */
export function checkBeat(node: NodeRecord, beat: Heartbeat, requireTls: boolean): void {
  const internal = node.driver_internal_info;
  const refuse = (message: string): never => {
    throw new Fault('InvalidParameterValue', { message });
  };
  const known = internal.agent_url;
  if (known !== undefined && known !== null && known !== beat.callbackUrl) refuse('Detected change in ramdisk provided "callback_url"');
  if (beat.agentToken === undefined) refuse('Agent token is required for heartbeat processing.');
  if (beat.agentStatus !== undefined && !AGENT_STATUSES.includes(beat.agentStatus))
    refuse(`Agent status is invalid. Valid states are ${AGENT_STATUSES.join(',')}.`);
  if (beat.agentVersion === undefined && beat.agentStatus === undefined)
    refuse('Agent did not transmit a version, and a version is required. Please update the agent being used.');
  if (!tokenIsRight(node, beat.agentToken)) refuse('Invalid or missing agent token received.');
  if (requireTls && beat.callbackUrl !== '' && !beat.callbackUrl.startsWith('https://')) refuse('TLS is required by configuration');
  const certificate = internal.agent_verify_ca;
  if (beat.agentVerifyCa !== undefined && typeof certificate === 'string' && certificate.trim() !== beat.agentVerifyCa.trim())
    refuse('Detected change in ramdisk provided "agent_verify_ca"');
}

/** Throws NodeNotFound, InvalidParameterValue (not this node's agent), NodeLocked (another host holds the node). */
export async function heartbeat(context: Context, ident: string, beat: Heartbeat): Promise<void> {
  const { store, clock, options, log } = context;
  const node = await store.nodes.find(ident);
  const { uuid } = node;
  checkBeat(node, beat, options['agent.require_tls']);
  const { heartbeat: meaning, working } = stateRow(node.provision_state);
  if (meaning === undefined) {
    log.debug(`heartbeat of node ${uuid} in state ${node.provision_state}: nothing to do`);
    return;
  }
  if (node.reservation !== null && node.reservation !== context.host && node.driver_internal_info.agent_url === undefined)
    throw new Fault('NodeLocked', { node: uuid, host: node.reservation });
  const recorded = await store.nodes.mergeInternal(uuid, {
    agent_url: beat.callbackUrl,
    agent_last_heartbeat: timestamp(clock.now()),
    ...(beat.agentVersion === undefined ? {} : { agent_version: beat.agentVersion }),
    ...(beat.agentVerifyCa === undefined ? {} : { agent_verify_ca: beat.agentVerifyCa }),
    ...(beat.agentStatus === undefined ? {} : { agent_status: beat.agentStatus }),
    ...(beat.agentStatusMessage === undefined ? {} : { agent_status_message: beat.agentStatusMessage }),
  });
  if (!tokenIsRight(recorded, beat.agentToken)) {
    // The machine was powered off, or its flow begun anew, between the check and the write: the next agent must not meet this URL.
    await store.nodes.mergeInternal(uuid, Object.fromEntries(['agent_url', 'agent_verify_ca'].map((key) => [key, null])));
    return;
  }
  // Whether the node is held is for `goOn` to find out: a working state that was read above may be a waiting one by now.
  if (meaning === 'resume' || working) await goOn(context, uuid, 'heartbeat');
}

/**
 * Goes on with a waiting node, now or when this process lets it go. Throws NoFreeConductorWorker; a node that another host holds is left to
 * that host.
 */
export async function goOn(context: Context, uuid: string, why: 'heartbeat' | 'poll'): Promise<void> {
  const later = (): void =>
    context.locks.remember(uuid, () => {
      goOn(context, uuid, why).catch((error: unknown) => {
        if (!context.signal.aborted) context.log.warn(`node ${uuid} does not go on`, { reason: reasonOf(error) });
      });
    });
  if (context.locks.has(uuid)) {
    later();
    return;
  }
  try {
    await startTask(context, uuid, { purpose: why }, async (task) => {
      const { provision_state: state, driver_internal_info: internal } = task.node;
      if (stateRow(state).heartbeat !== 'resume') return undefined;
      // Without a URL the agent that spoke was given up meanwhile.
      if (why === 'heartbeat' && internal.agent_url === undefined) return undefined;
      if (why === 'poll' && internal.step_poll_every === undefined) return undefined;
      return () => advance(task, why);
    });
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'NodeLocked') throw error;
    if (context.locks.has(uuid)) later();
    else context.log.info(`node ${uuid} is held by another host, which goes on with it`);
  }
}

/** Waiting state → which steps, which flow, and its words. */
const WAITS = {
  'clean wait': { kind: 'clean', flow: clean, maintenance: 'Cleaning aborted as node is in maintenance mode' },
  'wait call-back': { kind: 'deploy', flow: deploy, maintenance: 'Deploy aborted as node is in maintenance mode' },
} as const satisfies Record<string, { kind: SavedKind; flow: Flow; maintenance: string }>;
const WORDS = {
  clean: {
    load: 'Node failed to start the first cleaning step',
    failure: cleanStepFailure,
    proceed: continueClean,
    aborted: cleanAborted,
    afterAbort: afterCleanAbort,
  },
  deploy: {
    load: 'Failed to load in-band deploy steps',
    failure: deployStepFailure,
    proceed: continueDeploy,
    aborted: deployAborted,
    afterAbort: afterDeployAbort,
  },
} as const;

async function advance(task: Held, why: 'heartbeat' | 'poll'): Promise<void> {
  const wait = (WAITS as Partial<Record<string, (typeof WAITS)[keyof typeof WAITS]>>)[task.node.provision_state];
  if (!wait) return;
  const { kind, flow } = wait;
  if (task.node.maintenance) {
    if (task.context.options['conductor.allow_provisioning_in_maintenance'])
      task.log.warn('heartbeat of a node in maintenance mode; not taking any action');
    else await flow.fail(task, wait.maintenance);
    return;
  }
  await task.save({ provision_updated_at: timestamp(task.clock.now()) });
  if (why === 'heartbeat' && needsAgentSteps(task, kind)) {
    const steps = await agentStepsOf(task, kind).catch((error: unknown) => {
      if (mustLeave(task.context, error)) throw error;
      return `${WORDS[kind].load}: ${reasonOf(error)}`;
    });
    // Undefined: the agent is busy, the next heartbeat asks again.
    if (steps === undefined) return;
    if (typeof steps === 'string') return flow.fail(task, steps);
    if (kind === 'clean') {
      await task.fire('resume');
      return settle(task, clean, () => startCleanSteps(task, steps));
    }
    const refused = await takeAgentSteps(task, steps).then(
      () => undefined,
      (error: unknown) => {
        if (mustLeave(task.context, error)) throw error;
        return reasonOf(error);
      },
    );
    if (refused !== undefined) return flow.fail(task, refused);
  }
  await afterStep(task, kind, flow, why);
}

/** In cleaning the agent's steps make the list; in a deployment they join it, once. */
const needsAgentSteps = (task: Held, kind: SavedKind): boolean =>
  kind === 'clean'
    ? positionOf(task, 'clean').running === undefined
    : task.driver.deploy.agentSteps !== undefined && task.node.driver_internal_info.steps_validated !== true;

const agentStepsOf = async (task: Held, kind: SavedKind): Promise<readonly PlannedStep[] | undefined> => {
  const { deploy: driver } = task.driver;
  return driver.agentSteps ? driver.agentSteps(task, kind) : [];
};

/** How the running step stands, as the driver sees it (a failure in whole sentences); one that asks nobody is over with the first sign of life. */
async function standing(task: Held, kind: SavedKind, running: PlannedStep): Promise<Outcome> {
  try {
    return (await task.driver.deploy.onHeartbeat?.(task, kind, running)) ?? { kind: 'done' };
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn(`asking for step ${stepId(running)} threw`, { error });
    return failed(WORDS[kind].failure(task, reasonOf(error)));
  }
}

async function afterStep(task: Held, kind: SavedKind, flow: Flow, why: 'heartbeat' | 'poll'): Promise<void> {
  const { steps, index = 0, running } = positionOf(task, kind);
  if (running) {
    const said = await standing(task, kind, running);
    if (said.kind === 'wait') {
      const again = said.pollEvery ?? (task.node.driver_internal_info.step_poll_every as number | undefined);
      if (why === 'poll' && again !== undefined) task.context.askLater(task.node.uuid, again);
      return;
    }
    if (said.kind === 'failed') return flow.fail(task, said.reason);
    if ((running as { abort_after?: boolean }).abort_after) {
      await task.fire('fail', { last_error: WORDS[kind].aborted(task) });
      return WORDS[kind].afterAbort(task);
    }
  }
  const from = running ? index + 1 : index;
  await task.fire('resume', kind === 'clean' ? { clean_step: {} } : { deploy_step: {} }, {
    ...savedList(kind, steps, from),
    step_poll_every: undefined,
  });
  await settle(task, flow, () => WORDS[kind].proceed(task, from));
}
