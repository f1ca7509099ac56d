/** Fast track: whether an agent already runs on the machine, so that a flow can use it without a boot. */
import type { Options } from '../../config/options';
import { instantOf } from '../../model/clock';
import { Fault } from '../../model/errors';
import { isDeferred } from '../../model/internal-info';
import { BOOLEAN_WORDS, str, toBoolean } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Task } from '../interfaces';

/** driver_info.fast_track, otherwise [deploy]fast_track. Throws InvalidParameterValue unless it is a boolean. */
export function fastTracked({ driver_info: info }: Pick<NodeRecord, 'driver_info'>, options: Pick<Options, 'deploy.fast_track'>): boolean {
  const own = info['fast_track'];
  if (own === undefined || own === null) return options['deploy.fast_track'];
  const value = toBoolean(own);
  if (value !== undefined) return value;
  throw new Fault('InvalidParameterValue', {
    message: `Invalid value of fast_track: Unrecognized value '${str(own)}', acceptable values are: ${BOOLEAN_WORDS}`,
  });
}

/** While the node is inspected, the report of the ramdisk shows that its agent runs: the first heartbeat comes later. */
const reportsAfterBoot = (node: NodeRecord, heartbeat: string): boolean =>
  ['inspecting', 'inspect wait'].includes(node.provision_state) &&
  node.inspection_started_at !== null &&
  instantOf(heartbeat) >= instantOf(node.inspection_started_at);

/**
 * Whether an agent runs that the server can use: it holds its token and URL, and the last heartbeat is no older than
 * [deploy]fast_track_timeout. A recent inspection alone says nothing: a flow since then may have ended or forgotten the agent, and then all
 * its heartbeats are refused.
 */
export function agentIsAlive(node: NodeRecord, options: Pick<Options, 'deploy.fast_track_timeout'>, now: number): boolean {
  const { agent_url: url, agent_secret_token: token, agent_last_heartbeat: heartbeat } = node.driver_internal_info;
  if (typeof heartbeat !== 'string' || now - instantOf(heartbeat) > options['deploy.fast_track_timeout'] * 1000) return false;
  return (Boolean(url) && Boolean(token)) || reportsAfterBoot(node, heartbeat);
}

/** In these states the machine belongs to a deployed instance: an agent that runs there cannot be used for a new flow. */
const SERVICED: readonly ProvisionState[] = ['servicing', 'service wait', 'service hold', 'service failed'];

/** Whether a running agent may be used without a boot: not after an error. */
export const mayFastTrack = (
  node: Pick<NodeRecord, 'driver_info' | 'driver_internal_info' | 'last_error' | 'provision_state'>,
  options: Pick<Options, 'deploy.fast_track'>,
): boolean =>
  fastTracked(node, options) &&
  node.last_error === null &&
  !SERVICED.includes(node.provision_state) &&
  !isDeferred('fast track', node.driver_internal_info);

/** Whether the flow can use an agent that runs now, on a machine that is powered on. Then the flow boots nothing. */
export async function isFastTrack(task: Task): Promise<boolean> {
  const { node, options, clock, driver } = task;
  if (!mayFastTrack(node, options) || !(await driver.storage.shouldWriteImage(task))) return false;
  return (await driver.power.get(task)) === 'power on' && agentIsAlive(node, options, clock.now());
}
