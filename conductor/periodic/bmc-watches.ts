/** Keeps the subscriptions to the events of BMCs ([health]event_address), and reads their logs ([health]log_interval). */
import { EVENT_SECRET, eventKey, eventOwner, eventPath } from '../../model/rules/bmc-events';
import { reasonOf } from '../../model/errors';
import { newSecret } from '../../model/masks';
import type { NodeRecord } from '../../model/records';
import { withoutEndSlashes } from '../../wire/urls';
import { onMachine, readLogs, readOrigins, readSensorsNow } from '../core/bmc-watch';
import type { Context } from '../core/context';
import type { NodeTask } from '../core/node-task';
import { ownNodesOf } from '../core/on-nodes';
import { inParallel } from '../runtime/parallel';
import { areSensorsRead } from './sensors';

/** Machines at once: a slow BMC must not keep the others waiting. */
const WIDTH = 8;
/** By node: why it has no subscription, so that the log says it once. */
export type WatchProblems = Map<string, string>;

/** States before the server knows that it can reach the BMC. */
const UNKNOWN: readonly string[] = ['enroll', 'verifying'];
const isWatched = ({ provision_state: state, maintenance }: NodeRecord): boolean => !maintenance && !UNKNOWN.includes(state);

/** Those that had a problem the last time come last: a BMC that does not answer takes a minute, and others must not wait for it. */
async function* troubledLast(
  nodes: AsyncIterable<NodeRecord> | Iterable<NodeRecord>,
  problems: WatchProblems,
): AsyncGenerator<NodeRecord, void, undefined> {
  const last: NodeRecord[] = [];
  for await (const node of nodes)
    if (problems.has(node.uuid)) last.push(node);
    else yield node;
  yield* last;
}
/** Runs the work on each of these machines. Returns how many there are. */
async function onEach(
  context: Context,
  nodes: AsyncIterable<NodeRecord> | Iterable<NodeRecord>,
  problems: WatchProblems,
  what: string,
  work: (task: NodeTask) => Promise<void>,
): Promise<number> {
  let count = 0;
  await inParallel(troubledLast(nodes, problems), WIDTH, context.signal, async (node) => {
    count++;
    try {
      await onMachine(context, node, work);
      problems.delete(node.uuid);
    } catch (error) {
      if (context.signal.aborted) return;
      const reason = reasonOf(error);
      if (problems.get(node.uuid) !== reason) context.log.warn(`node ${node.uuid}: ${what}`, { reason });
      problems.set(node.uuid, reason);
    }
  });
  return count;
}

/** Where the BMC of a node sends its events. */
const destinationOf = async ({ store, options, random }: Context, uuid: string): Promise<string> => {
  const secret = await store.secrets.shared(EVENT_SECRET, () => newSecret(random));
  return `${withoutEndSlashes(options['health.event_address']!)}${eventPath(uuid, eventKey(secret, uuid))}`;
};

async function keepSubscription(context: Context, task: NodeTask, hasAlerts: (uuid: string) => boolean): Promise<void> {
  const { store, options } = context;
  const { node } = task;
  const { events } = task.driver.management;
  const known = await store.bmcWatches.find(node.uuid);
  const path = events && (await events.keep(task, eventOwner(node.uuid), await destinationOf(context, node.uuid)));
  if ((known?.subscription ?? null) !== (path ?? null)) {
    await store.bmcWatches.put(node.uuid, { subscription: path ?? null });
    task.log.info(path === undefined ? 'the BMC sends no events' : 'subscribed to the events of the BMC', { subscription: path });
  }
  if (known?.origins?.length) await readOrigins(context, task, []);
  // Alerts that an event raised end here, if no other reading would end them.
  if (!areSensorsRead(options, node) && hasAlerts(node.uuid)) await readSensorsNow(context, task);
}
async function endSubscription({ store }: Context, task: NodeTask): Promise<void> {
  const { uuid } = task.node;
  await task.driver.management.events?.end(task, eventOwner(uuid));
  await store.bmcWatches.put(uuid, { subscription: null, origins: [] });
  task.log.info('the subscription to the events of the BMC has ended');
}

/** Returns how many machines it asked. */
export async function tendSubscriptions(context: Context, problems: WatchProblems): Promise<number> {
  const { store, options } = context;
  if (options['health.event_address'] === null || !options['health.enabled']) {
    const uuids = await store.bmcWatches.subscribed();
    if (uuids.length === 0) return 0;
    const nodes = ownNodesOf(context, { where: { uuid: [...uuids] } });
    return onEach(context, nodes, problems, 'the subscription to its events cannot be ended', (task) => endSubscription(context, task));
  }
  const alerts = new Set((await store.healthAlerts.open(['sensor'])).map(({ node_uuid: uuid }) => uuid));
  const there = new Set<string>();
  const nodes = ownNodesOf(context, {}, (node) => {
    there.add(node.uuid);
    return isWatched(node);
  });
  const count = await onEach(context, nodes, problems, 'its events cannot be subscribed to', (task) =>
    keepSubscription(context, task, (uuid) => alerts.has(uuid)),
  );
  for (const uuid of problems.keys()) if (!there.has(uuid)) problems.delete(uuid);
  return count;
}
/** Returns how many machines it asked. */
export async function tendLogs(context: Context, problems: WatchProblems): Promise<number> {
  const nodes = ownNodesOf(context, { where: { maintenance: false } }, isWatched);
  return onEach(context, nodes, problems, 'its logs cannot be read', (task) => readLogs(context, task));
}
