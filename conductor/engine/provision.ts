/** PUT …/states/provision: checks the verb, fires its event, and runs its flow under the same lock after the response. */
import { Fault } from '../../model/errors';
import { outageOf } from '../../model/rules/out-of-service';
import type { InternalChanges } from '../../model/internal-info';
import { VERBS, VERBS_OUT_OF_SERVICE, nextState, stateRow, type Event } from '../../model/states';
import type { NodeRecord } from '../../model/records';
import { type AlreadyRead, type ProvisionArgs, recordOf } from '../core/call-types';
import { countTowards } from '../core/concurrency';
import type { Context } from '../core/context';
import type { NodeTask } from '../core/node-task';
import { startTask } from '../core/task';
import { FLOWS } from '../flows';
import { chooseInterface } from '../hardware/deploy-interface';
import type { Admitted, Flow } from '../flows/flow';
import { applyOutcome } from '../flows/outcome';
import { abort, unhold } from './abort';
import { startInterfaceChecks } from './interface-periodics';

/** Throws ConcurrentActionLimit (503) over the limit, for every client: a mistake must not take down, or erase, all machines at once. */
async function checkLimit(context: Context, event: Event): Promise<void> {
  const limits = Object.values(FLOWS).flatMap(({ admit }) => admit[event]?.limit ?? []);
  for (const limit of limits) {
    const { count, limit: most } = await countTowards(context, limit);
    if (count >= most) throw new Fault('ConcurrentActionLimit', { task_type: limit.action });
  }
}

/** What is checked, and chosen, before the event. A refused request changes nothing. */
async function check(task: NodeTask, flow: Flow, event: Event, args: ProvisionArgs): Promise<Partial<Admitted>> {
  try {
    if (flow.usesDeploy) await chooseInterface(task);
    return (await flow.admit[event]?.check(task, args)) ?? {};
  } catch (error) {
    await task.discardNotes();
    throw error;
  }
}

/** Steps that wait check the images of Glance after the request has ended: whether its caller may use them. */
function requesterOf({ node, context: { origin, connections } }: NodeTask): InternalChanges {
  const known = node.driver_internal_info.flow_requester !== undefined;
  if (origin !== undefined && connections.services.glance.isConfigured) {
    const { admin = false, service = false, project } = origin;
    return { flow_requester: { admin, service, project } };
  }
  return known ? { flow_requester: undefined } : {};
}

/** Fires the event. Returns the work that follows the response to the client, if any. */
async function admit(task: NodeTask, event: Event, args: ProvisionArgs): Promise<(() => Promise<void>) | undefined> {
  const { uuid, provision_state: from } = task.node;
  const name = stateRow(nextState(from, event)!).flow;
  if (name === undefined) {
    await task.end(event);
    return undefined;
  }
  const flow = FLOWS[name];
  const { changes = {}, internal = {} } = await check(task, flow, event, args);
  await task.fire(event, changes, { ...internal, ...requesterOf(task) });
  if (flow.lookWhenReleased?.(task)) task.context.locks.remember(uuid, () => startInterfaceChecks(task.context, uuid));
  return () => applyOutcome(task, flow, () => flow.begin(task));
}

/** Returns when the work has started. Throws before anything has changed: 400, 403, 409 (NodeLocked) or 503, as Ironic does. */
export async function provision(
  context: Context,
  uuid: string,
  verb: string,
  args: ProvisionArgs,
  read?: AlreadyRead<NodeRecord>,
): Promise<void> {
  const event = Object.hasOwn(VERBS, verb) ? VERBS[verb]!.event : undefined;
  if (event) await checkLimit(context, event);
  // The API checked the node's state already; the state under the lock counts.
  // These act on the machine, or on work that waits.
  const unreserved = event === 'abort' || event === 'unhold' ? undefined : { read: recordOf(read) };
  await startTask(context, uuid, { purpose: `provision action ${verb}`, retry: true, unreserved }, async (task) => {
    const { provision_state: state } = task.node;
    if (event === undefined || nextState(state, event) === undefined)
      throw new Fault('InvalidStateRequested', { action: verb, node: uuid, state });
    if (outageOf(task.node) && !VERBS_OUT_OF_SERVICE.includes(verb)) throw new Fault('NodeInMaintenance', { op: verb, node: uuid });
    if (event === 'abort') return abort(task);
    if (event === 'unhold') return unhold(task);
    return admit(task, event, args);
  });
}
