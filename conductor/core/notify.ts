/** The notifications of a conductor about its work on nodes. */
import { announceNode, announceSensors, type Status } from '../../model/notifications';
import type { JsonObject, NodeRecord } from '../../model/records';
import { newUuid } from '../../model/idents';
import { bareTimestamp } from '../../model/clock';
import { stateRow, type Event, type ProvisionState } from '../../model/states';
import type { Context } from './context';
import type { NodeTask } from './node-task';

/** States that a node leaves by itself. A held node waits for a client. */
const isUnstable = (state: ProvisionState): boolean => stateRow(state).flow !== undefined && !state.endsWith(' hold');

/** @param before the node as it was when the event came */
export function notifyProvision({ notifier, origin }: Context, before: NodeRecord, node: NodeRecord, event: Event): void {
  const [was, is] = [isUnstable(before.provision_state), isUnstable(node.provision_state)];
  const status: Status = event === 'fail' ? 'error' : was === is ? 'success' : is ? 'start' : 'end';
  const also = {
    event,
    previous_provision_state: before.provision_state,
    previous_target_provision_state: before.target_provision_state,
  };
  announceNode(notifier, 'ironic-conductor', 'provision_set', status, node, also, origin);
}

/** @param wanted the requested order, not the power state to which it leads */
export const notifyPower = ({ context, node }: NodeTask, status: 'start' | 'end' | 'error', wanted: string): void =>
  announceNode(context.notifier, 'ironic-conductor', 'power_set', status, node, { to_power: wanted }, context.origin);

/** Tells Nova the new power state of an instance's machine. */
export function notifyNova({ nova, origin }: Context, { instance_uuid: instance, power_state: power }: NodeRecord): void {
  if (instance !== null && (power === 'power on' || power === 'power off')) nova.powerUpdate(instance, power, origin?.globalRequestId);
}

/** For a node whose power state was corrected, because it differed from the machine's. */
export function notifyCorrected({ context, node }: NodeTask, before: NodeRecord['power_state']): void {
  if (node.power_state === before) return;
  notifyNova(context, node);
  announceNode(context.notifier, 'ironic-conductor', 'power_state_corrected', 'success', node, { from_power: before }, context.origin);
}

export const notifyConsole = (
  { context, node }: NodeTask,
  action: 'console_set' | 'console_restore' | 'console_stop',
  status: 'start' | 'end' | 'error',
): void => announceNode(context.notifier, 'ironic-conductor', action, status, node, {}, context.origin);

/** In Ironic's format, with the readings under `payload`. */
export const notifySensors = ({ notifier }: Context, { driver }: NodeRecord, message: JsonObject): void =>
  announceSensors(notifier, `hardware.${driver}.metrics`, message);

/** The conductor's own metrics. */
export async function notifyMeasures({ notifier, metrics, random, clock, host }: Context): Promise<void> {
  const payload = await metrics.totals();
  if (Object.keys(payload).length === 0) return;
  announceSensors(notifier, 'ironic.metrics', {
    message_id: newUuid(random),
    timestamp: bareTimestamp(clock.now()),
    hostname: host,
    event_type: 'ironic.metrics.update',
    payload,
  });
}
