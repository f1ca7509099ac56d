/**
 * An agent's sign of life: checked, recorded, and what it sets going. It never waits for a lock: met on a held node, it is
 * remembered and acted on when the node is let go, since an agent that has finished may not speak again for minutes.
 */
import { fastTracked, mayFastTrack } from '../../drivers/agent/fast-track';
import { bareTimestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { Heartbeat } from '../../model/records';
import { FAST_TRACK_STATES, stateRow } from '../../model/states';
import type { AgentNode } from '../../store/store';
import type { Context } from '../core/context';
import { isDatabaseDown, retryWhileDatabaseDown } from '../core/database-retry';
import { startTask } from '../core/task';
import { tokenIsRight } from '../core/token';
import type { WakeReason } from '../flows/flow';
import { wake } from './waiting';

const AGENT_STATUSES = ['start', 'end', 'error'];

/** Throws what the agent gets for a beat that is not its node's; in the order of Ironic's checks. */
function checkBeat(node: AgentNode, beat: Heartbeat, requireTls: boolean): void {
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
  const { store, clock, options, log, metrics } = context;
  const node = await store.nodes.findAgent(ident);
  const { uuid } = node;
  const count = (outcome: string): void => metrics.count('bloomery_heartbeats_total', { state: node.provision_state, outcome });
  try {
    checkBeat(node, beat, options['agent.require_tls']);
  } catch (error) {
    count('refused');
    throw error;
  }
  const { heartbeat: always, working } = stateRow(node.provision_state);
  // With fast track an agent may be there in any state, for the next flow; not where the last one went wrong.
  const early = fastTracked(node, options) && (FAST_TRACK_STATES.includes(node.provision_state) || mayFastTrack(node, options));
  const meaning = always ?? (early ? 'record' : undefined);
  if (meaning === undefined) {
    count('ignored');
    log.debug(`heartbeat of node ${uuid} in state ${node.provision_state}: nothing to do`);
    return;
  }
  if (node.reservation !== null && node.reservation !== context.host && node.driver_internal_info.agent_url === undefined)
    throw new Fault('NodeLocked', { node: uuid, host: node.reservation });
  const said = {
    agent_url: beat.callbackUrl,
    ...(beat.agentVersion === undefined ? {} : { agent_version: beat.agentVersion }),
    ...(beat.agentVerifyCa === undefined ? {} : { agent_verify_ca: beat.agentVerifyCa }),
    ...(beat.agentStatus === undefined ? {} : { agent_status: beat.agentStatus }),
    ...(beat.agentStatusMessage === undefined ? {} : { agent_status_message: beat.agentStatusMessage }),
  };
  const isNews = Object.entries(said).some(([key, value]) => node.driver_internal_info[key] !== value);
  if (isNews) {
    const recorded = await store.nodes.mergeInternal(uuid, { ...said, agent_last_heartbeat: bareTimestamp(clock.now()) });
    if (!tokenIsRight(recorded, beat.agentToken)) {
      // The machine was powered off, or its flow begun anew, between the check and the write: the next agent must not meet this URL.
      await store.nodes.mergeInternal(uuid, { agent_url: undefined, agent_verify_ca: undefined });
      return;
    }
  }
  count(meaning === 'resume' ? 'resumed' : 'recorded');
  // Whether the node is held is for `goOn` to find out: a working state that was read above may be a waiting one by now.
  const looked = (meaning === 'resume' || working) && (await wakeNode(context, uuid, 'heartbeat'));
  // A look writes the time itself.
  if (!isNews && !looked) context.heartbeats.stamp(uuid, beat.callbackUrl);
}

/** A database that is away, and workers that are all busy. */
const mayPass = (error: unknown): boolean => isDatabaseDown(error) || (error instanceof Fault && error.name === 'NoFreeConductorWorker');

/**
 * Goes on with a waiting node, now or when this process lets it go, and a heartbeat not sooner than a moment after the last look. Throws
 * NoFreeConductorWorker. Answers whether it was now.
 */
export async function wakeNode(context: Context, uuid: string, why: WakeReason): Promise<boolean> {
  // The agent was told that its sign of life was taken, and may not speak again for minutes: what passes is waited for.
  const again = (): void => {
    retryWhileDatabaseDown(context, () => wakeNode(context, uuid, why), mayPass).catch((error: unknown) => {
      if (!context.signal.aborted) context.log.warn(`node ${uuid} does not go on`, { reason: reasonOf(error) });
    });
  };
  const later = (): void => context.locks.remember(uuid, again);
  if (why === 'heartbeat' && context.heartbeats.postpone(uuid, again)) return false;
  if (context.locks.has(uuid)) {
    later();
    return false;
  }
  try {
    await startTask(context, uuid, { purpose: why, ordinary: true }, async (task) => {
      const { provision_state: state, driver_internal_info: internal } = task.node;
      if (stateRow(state).heartbeat !== 'resume') return undefined;
      // Without a URL the agent that spoke was given up meanwhile.
      if (why === 'heartbeat' && internal.agent_url === undefined) return undefined;
      if (why === 'poll' && internal.step_poll_every === undefined) return undefined;
      return () => wake(task, why);
    });
    return true;
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'NodeLocked') throw error;
    if (context.locks.has(uuid)) later();
    else if (why === 'heartbeat') {
      // Another host is at it, or nobody: a reservation that could not be ended when the database went away stands until the next look at
      // those (recovery.ts). In a moment again.
      context.heartbeats.stepChecked(uuid);
      context.heartbeats.postpone(uuid, again);
    } else context.log.info(`node ${uuid} is held by another host, which goes on with it`);
    return false;
  }
}
