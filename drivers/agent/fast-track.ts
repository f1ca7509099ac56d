/** Agents that run although no flow has booted them: whether a node takes them for its own, and whether one speaks now. */
import { instantOf } from '../../model/clock';
import { Fault } from '../../model/errors';
import { BOOLEAN_WORDS, str, toBoolean } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Task } from '../interfaces';
import type { DriverOptions } from '../options';

/** driver_info.fast_track, else [deploy]fast_track. Throws InvalidParameterValue for what is neither true nor false. */
export function fastTracked(
  { driver_info: info }: Pick<NodeRecord, 'driver_info'>,
  options: Pick<DriverOptions, 'deploy.fast_track'>,
): boolean {
  const own = info['fast_track'];
  if (own === undefined || own === null) return options['deploy.fast_track'];
  const value = toBoolean(own);
  if (value !== undefined) return value;
  throw new Fault('InvalidParameterValue', {
    message: `Invalid value of fast_track: Unrecognized value '${str(own)}', acceptable values are: ${BOOLEAN_WORDS}`,
  });
}

/** Whether its last sign of life, or the inspection that it made, is no older than [deploy]fast_track_timeout. */
export function agentIsAlive(node: NodeRecord, options: Pick<DriverOptions, 'deploy.fast_track_timeout'>, now: number): boolean {
  const recent = (time: unknown): boolean =>
    typeof time === 'string' && now - instantOf(time) <= options['deploy.fast_track_timeout'] * 1000;
  if (node.power_state === 'power on' && recent(node.inspection_finished_at)) return true;
  const { agent_url: url, agent_last_heartbeat: beat } = node.driver_internal_info;
  // Without a URL the machine was switched off since; while it is inspected there is none yet.
  return (Boolean(url) || ['inspecting', 'inspect wait'].includes(node.provision_state)) && recent(beat);
}

/** An agent that serves a running instance is no one to begin with. */
const SERVICED: readonly ProvisionState[] = ['servicing', 'service wait', 'service hold', 'service failed'];
/** Their ends must leave the agent's system. */
const UPDATES = ['redfish_fw_updates', 'firmware_updates'];

/** Whether an agent that is in the machine already may be gone on with: not after something went wrong there. */
export const mayFastTrack = (
  node: Pick<NodeRecord, 'driver_info' | 'driver_internal_info' | 'last_error' | 'provision_state'>,
  options: Pick<DriverOptions, 'deploy.fast_track'>,
): boolean =>
  fastTracked(node, options) &&
  node.last_error === null &&
  !SERVICED.includes(node.provision_state) &&
  UPDATES.every((key) => node.driver_internal_info[key] === undefined);

/** Whether such an agent is there, in a machine that is on: then nothing is booted. */
export async function isFastTrack(task: Task): Promise<boolean> {
  const { node, options, clock, driver } = task;
  if (!mayFastTrack(node, options) || !(await driver.storage.shouldWriteImage(task))) return false;
  return (await driver.power.get(task)) === 'power on' && agentIsAlive(node, options, clock.now());
}
