/** The record of an introspection: its transitions in the service's table, and its error messages. */
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import { INTROSPECTION_EVENTS, INTROSPECTION_STATES, type IntrospectionRecord, type IntrospectionState } from '../../model/introspection';
import type { NodeRecord } from '../../model/records';
import type { ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { attempt } from '../core/attempt';
import type { NodeTask } from '../core/node-task';

export const invalidRequest = (message: string): Fault => new Fault('Invalid', { message });

/** The error message lists them in this order. */
const STATES: readonly ProvisionState[] = ['enroll', 'manageable', 'inspecting', 'inspect wait', 'inspect failed'];
export const canBeIntrospected = ({ provision_state: state }: NodeRecord): boolean => STATES.includes(state);
/** Throws Invalid. */
export function checkProvisionState(node: NodeRecord): void {
  if (canBeIntrospected(node)) return;
  const valid = `[${STATES.map((state) => `'${state}'`).join(', ')}]`;
  throw invalidRequest(`Invalid provision state for introspection: "${node.provision_state}", valid states are "${valid}"`);
}

/** Throws NotFound. */
export async function findIntrospection({ store }: Context, uuid: string): Promise<IntrospectionRecord> {
  const record = await store.introspections.find(uuid);
  if (!record) throw new Fault('NotFound', { message: `Could not find node ${uuid} in cache` });
  return record;
}

type Event = keyof typeof INTROSPECTION_EVENTS;
/** Changes the state if the event is possible in the current one, else returns undefined. Of two concurrent callers one succeeds. */
export const transition = (
  { store }: Context,
  uuid: string,
  event: Event,
  changes: Parameters<typeof store.introspections.change>[2],
): Promise<IntrospectionRecord | undefined> => store.introspections.change(uuid, INTROSPECTION_EVENTS[event], changes);

/** Ends the introspection, so that no report is accepted any more. `from`: only in these states. */
export async function endIntrospection(
  context: Context,
  uuid: string,
  error: string | null,
  from: readonly IntrospectionState[] = INTROSPECTION_STATES,
): Promise<void> {
  const ended = await context.store.introspections.change(uuid, from, {
    state: error === null ? 'finished' : 'error',
    error,
    finished_at: timestamp(context.clock.now()),
    macs: [],
    bmc_addresses: [],
  });
  if (!ended) return;
  const log = context.log.child({ node: uuid });
  if (error === null) log.info('introspection finished');
  else log.warn('introspection failed', { reason: error });
}

/** Makes sure that the machine does not boot the ramdisk any more. Failures are only logged. */
export async function cleanUpBoot(task: NodeTask, { boots_ramdisk: boots }: IntrospectionRecord): Promise<void> {
  if (!boots) return;
  await attempt(task, 'cleaning up after introspection', () => task.driver.boot.cleanUpRamdisk(task));
  await attempt(task, 'removing the inspection network', () => task.driver.network.removeInspectionNetwork(task));
}
/** Reboots a machine that must not be powered off. Throws what the driver throws. */
export const powerOff = (task: NodeTask): Promise<void> => task.power(task.node.disable_power_off ? 'rebooting' : 'power off');
