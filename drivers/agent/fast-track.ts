/** Fast track: whether an agent already runs on the machine, so that a flow can use it without a boot. */
import type { Options } from '../../config/options';
import { instantOf } from '../../model/clock';
import { Fault } from '../../model/errors';
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

/** Whether the agent's last heartbeat or inspection is no older than [deploy]fast_track_timeout. */
export function agentIsAlive(node: NodeRecord, options: Pick<Options, 'deploy.fast_track_timeout'>, now: number): boolean {
  const recent = (time: unknown): boolean =>
    typeof time === 'string' && now - instantOf(time) <= options['deploy.fast_track_timeout'] * 1000;
  if (node.power_state === 'power on' && recent(node.inspection_finished_at)) return true;
  const { agent_url: url, agent_last_heartbeat: heartbeat } = node.driver_internal_info;
  // Without agent_url, the machine was powered off after the heartbeat. During inspection agent_url is not set yet.
  return (Boolean(url) || ['inspecting', 'inspect wait'].includes(node.provision_state)) && recent(heartbeat);
}

/** In these states the machine belongs to a deployed instance: an agent that runs there cannot be used for a new flow. */
const SERVICED: readonly ProvisionState[] = ['servicing', 'service wait', 'service hold', 'service failed'];
/** A firmware update in progress reboots the machine at its end, which ends the running agent. */
const UPDATES = ['redfish_fw_updates', 'firmware_updates'];

/** Whether a running agent may be used without a boot: not after an error. */
export const mayFastTrack = (
  node: Pick<NodeRecord, 'driver_info' | 'driver_internal_info' | 'last_error' | 'provision_state'>,
  options: Pick<Options, 'deploy.fast_track'>,
): boolean =>
  fastTracked(node, options) &&
  node.last_error === null &&
  !SERVICED.includes(node.provision_state) &&
  UPDATES.every((key) => node.driver_internal_info[key] === undefined);

/** Whether the flow can use an agent that runs now, on a machine that is powered on. Then the flow boots nothing. */
export async function isFastTrack(task: Task): Promise<boolean> {
  const { node, options, clock, driver } = task;
  if (!mayFastTrack(node, options) || !(await driver.storage.shouldWriteImage(task))) return false;
  return (await driver.power.get(task)) === 'power on' && agentIsAlive(node, options, clock.now());
}
