/**
 * An agent's heartbeat: checks it, records it, and continues the node's flow. It never waits for a lock. A heartbeat of a held node is
 * remembered until the node is released: an agent that has finished may not send another for minutes.
 */
import { fastTracked, mayFastTrack } from '../../drivers/agent/fast-track';
import { bareTimestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { InternalChanges, InternalKey } from '../../model/internal-info';
import type { Heartbeat, NodeRecord } from '../../model/records';
import { FAST_TRACK_STATES, stateRow } from '../../model/states';
import { isDatabaseDown, retryWhileDatabaseDown } from '../../store/database-retry';
import type { AgentNode } from '../../store/store';
import { type AlreadyRead, recordOf } from '../core/call-types';
import type { Context } from '../core/context';
import { startTask } from '../core/task';
import { tokenIsRight } from '../../model/rules/agent-token';
import type { WakeReason } from '../flows/flow';
import { wake } from './waiting';

const AGENT_STATUSES = ['start', 'end', 'error'];

/** Refuses a heartbeat that is not from the node's agent. The checks are in Ironic's order. */
function checkHeartbeat(node: AgentNode, beat: Heartbeat, requireTls: boolean): void {
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
export async function heartbeat(context: Context, ident: string, beat: Heartbeat, read?: AlreadyRead<AgentNode>): Promise<void> {
  const { store, clock, options, log, metrics } = context;
  const node = recordOf(read) ?? (await store.nodes.findAgent(ident));
  const { uuid } = node;
  const count = (outcome: string): void => metrics.count('bloomery_heartbeats_total', { state: node.provision_state, outcome });
  try {
    checkHeartbeat(node, beat, options['agent.require_tls']);
  } catch (error) {
    count('refused');
    throw error;
  }
  const { heartbeat: always, working } = stateRow(node.provision_state);
  // With fast track an agent may run in any state, for the next flow; but not where the last flow failed.
  const early = fastTracked(node, options) && (FAST_TRACK_STATES.includes(node.provision_state) || mayFastTrack(node, options));
  const meaning = always ?? (early ? 'record' : undefined);
  if (meaning === undefined) {
    count('ignored');
    log.debug(`heartbeat of node ${uuid} in state ${node.provision_state}: nothing to do`);
    return;
  }
  if (node.reservation !== null && node.reservation !== context.host && node.driver_internal_info.agent_url === undefined)
    throw new Fault('NodeLocked', { node: uuid, host: node.reservation });
  const reported = {
    agent_url: beat.callbackUrl,
    ...(beat.agentVersion === undefined ? {} : { agent_version: beat.agentVersion }),
    ...(beat.agentVerifyCa === undefined ? {} : { agent_verify_ca: beat.agentVerifyCa }),
    ...(beat.agentStatus === undefined ? {} : { agent_status: beat.agentStatus }),
    ...(beat.agentStatusMessage === undefined ? {} : { agent_status_message: beat.agentStatusMessage }),
  };
  const isNews = Object.entries(reported).some(([key, value]) => node.driver_internal_info[key as InternalKey] !== value);
  const wakes = meaning === 'resume' || working === true;
  const news: News = {
    internal: { ...reported, agent_last_heartbeat: bareTimestamp(clock.now()) },
    // Otherwise the machine was powered off, or its flow began again, between the check and the write. The next agent may have another URL.
    isRight: (recorded) => tokenIsRight(recorded, beat.agentToken),
  };
  const isJoined = isNews && meaning === 'resume' && node.reservation === null && !context.locks.has(uuid);
  if (isNews && !isJoined && !(await recordNews(context, uuid, news))) return;
  count(meaning === 'resume' ? 'resumed' : 'recorded');
  // `wakeNode` finds out whether the node is held: the working state that was read above may be a waiting state by now.
  const isWoken = wakes && (await wakeNode(context, uuid, 'heartbeat', isJoined ? news : undefined));
  // The flow writes the time itself.
  if (!isNews && !isWoken) context.heartbeats.stamp(uuid, beat.callbackUrl);
}

/** What an agent reports for the first time. */
interface News {
  /** Keys of driver_internal_info. */
  readonly internal: InternalChanges;
  /** Whether they are of the node's agent, by the node as stored with them. */
  readonly isRight: (recorded: NodeRecord) => boolean;
}
const NOT_NEWS: InternalChanges = { agent_url: undefined, agent_verify_ca: undefined };
/** Returns false, and removes the news, if they are not of the node's agent. */
async function recordNews({ store }: Context, uuid: string, { internal, isRight }: News): Promise<boolean> {
  if (isRight(await store.nodes.mergeInternal(uuid, internal))) return true;
  await store.nodes.mergeInternal(uuid, NOT_NEWS);
  return false;
}

/** The database is unreachable, or all workers are busy. */
const isTemporary = (error: unknown): boolean =>
  isDatabaseDown(error) || (error instanceof Fault && error.name === 'NoFreeConductorWorker');

/**
 * Continues a waiting node: now, or when this process releases it. A heartbeat less than a second after the last check of the
 * step is postponed to the end of that second. Throws NoFreeConductorWorker. Returns whether the node continued now.
 * @param news recorded with the reservation, or before the node is continued later
 */
export async function wakeNode(context: Context, uuid: string, why: WakeReason, news?: News): Promise<boolean> {
  // The agent got its answer, and may not send another heartbeat for minutes: temporary failures are retried.
  const again = (): void => {
    retryWhileDatabaseDown(context, () => wakeNode(context, uuid, why), isTemporary).catch((error: unknown) => {
      if (!context.signal.aborted) context.log.warn(`node ${uuid} is not continued`, { reason: reasonOf(error) });
    });
  };
  const later = (): void => context.locks.remember(uuid, again);
  /** Continues the node after the news are recorded on their own. */
  const recordFirst = async (them: News): Promise<boolean> => (await recordNews(context, uuid, them)) && wakeNode(context, uuid, why);
  if (news && (context.locks.has(uuid) || context.heartbeats.isChecked(uuid))) return recordFirst(news);
  if (why === 'heartbeat' && context.heartbeats.postpone(uuid, again)) return false;
  if (context.locks.has(uuid)) {
    later();
    return false;
  }
  try {
    await startTask(context, uuid, { purpose: why, ordinary: true, internal: news?.internal }, async (task) => {
      const { provision_state: state, driver_internal_info: internal } = task.node;
      if (news && !news.isRight(task.node)) {
        task.note({}, NOT_NEWS);
        return undefined;
      }
      if (stateRow(state).heartbeat !== 'resume') return undefined;
      // The ramdisk that an agent in the instance was told to start runs.
      if (why === 'heartbeat' && internal.resident_kexec !== undefined) task.note({}, { resident_kexec: undefined });
      // The agent has its token: who gave it counts no more, and would be written with each heartbeat.
      if (why === 'heartbeat' && internal.agent_secret_token_giver !== undefined) task.note({}, { agent_secret_token_giver: undefined });
      // If the URL is gone, the node's flow has forgotten the agent since.
      if (why === 'heartbeat' && internal.agent_url === undefined) return undefined;
      if (why === 'poll' && internal.step_poll_every === undefined) return undefined;
      return () => wake(task, why);
    });
    return true;
  } catch (error) {
    const isLocked = error instanceof Fault && error.name === 'NodeLocked';
    if (news && (isLocked || (error instanceof Fault && error.name === 'NoFreeConductorWorker'))) return recordFirst(news);
    if (!isLocked) throw error;
    if (context.locks.has(uuid)) later();
    else if (why === 'heartbeat') {
      // Another host holds the node, or the reservation is stray: it could not be ended while the database was unreachable, and lasts until
      // the next check (recovery.ts). The node is tried again after a second.
      context.heartbeats.stepChecked(uuid);
      context.heartbeats.postpone(uuid, again);
    } else context.log.info(`node ${uuid} is held by another host, which continues it`);
    return false;
  }
}
