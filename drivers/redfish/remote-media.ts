/**
 * AMI's switch for remote media. While it is off, the BMC has no virtual drives, or refuses media. Its action answers before the drives are
 * there. Fact from Ansible's and Confluent's use of it.
 */
import { isStatus, member, textOf } from '../../wire/redfish';
import type { Task } from '../interfaces';
import { managersOf } from './managers';
import type { SystemView } from './target';

const ACTION = '#AMIVirtualMedia.EnableRMedia';
const targetIn = (body: unknown): string | undefined =>
  textOf(member(body, 'Actions', 'Oem', ACTION, 'target')) ?? textOf(member(body, 'Oem', 'Ami', 'Actions', ACTION, 'target'));
const isOn = (body: unknown): boolean => textOf(member(body, 'Oem', 'Ami', 'VirtualMedia', 'RMediaStatus')) === 'Enabled';

/** The path of the action that switches remote media on. Undefined: there is none, or they are on. Throws RedfishError. */
export async function remoteMediaSwitch(system: SystemView): Promise<string | undefined> {
  const bodies = (await managersOf(system)).map(({ body }) => body);
  if (bodies.some(isOn)) return undefined;
  return [...bodies, system.body].map(targetIn).find((target) => target !== undefined);
}
/** Switches remote media on where they are off. @returns whether it did. Throws RedfishError. */
export async function switchRemoteMediaOn(task: Task, system: SystemView): Promise<boolean> {
  const action = await remoteMediaSwitch(system);
  if (action === undefined) return false;
  task.log.info('The BMC has its remote media switched off; they are switched on');
  try {
    await system.ask('POST', action, { body: { RMediaState: 'Enable' }, repeatable: true });
    return true;
  } catch (error) {
    if (!isStatus(error)) throw error;
    task.log.warn('The BMC does not switch its remote media on', { reason: error.message });
    return false;
  }
}
