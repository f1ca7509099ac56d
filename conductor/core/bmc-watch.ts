/** What events and logs of BMCs say of the health of machines: reads what they name, and writes the alerts (docs/health.md). */
import { recordSignal } from '../../drivers/common/health-records';
import type { LogPosition } from '../../drivers/interfaces';
import { eventOwner, type BmcEvent } from '../../model/rules/bmc-events';
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import { judged, type Signal } from '../../model/rules/health-rules';
import { timeoutSignal } from '../../wire/timeout-signal';
import type { Context } from './context';
import { inHistoryOf, noteJudged, observeHealthNow } from './health';
import type { NodeTask } from './node-task';
import { readParts } from './parts-reading';
import { sharedTaskOf } from './task';
import { validateInterface } from './validate';

/** Milliseconds that the server spends on one machine at a time. */
const MACHINE_MS = 60_000;
/** Parts of one machine that are watched because events named them. */
const MAX_ORIGINS = 64;
/** Alerts of one node. */
const MAX_OPEN = 1000;
/** An alert of an event without a part that can be read ends after this time, unless the BMC says before that it is over. */
const EVENT_MS = 86_400_000;

/** Runs the work on a machine, alone and for a limited time. Rejects with the reason if the time is over. */
export async function onMachine<T>(context: Context, node: NodeRecord, work: (task: NodeTask) => Promise<T>): Promise<T> {
  const signal = timeoutSignal(MACHINE_MS, context.signal);
  const run = (): Promise<T> => work(sharedTaskOf({ ...context, signal }, node));
  const bmc = context.hardware.bmcOf(node);
  return context.bmcTurns.alone(bmc, signal, () => context.bmcTurns.alone(node.uuid, signal, run));
}

/** Reads all sensors of a machine now. Returns whether they could be read. */
export async function readSensorsNow(context: Context, task: NodeTask): Promise<boolean> {
  if (!task.driver.management.sensors) return false;
  await validateInterface(task, 'management');
  const parts = await readParts(task, () => true);
  if (!parts) return false;
  await observeHealthNow(context, task.node, parts.signals, parts.found);
  return true;
}

/** Reads the parts that events named, and those that were not well before. What is well again is forgotten. */
export async function readOrigins(context: Context, task: NodeTask, named: readonly string[]): Promise<ReadonlySet<string>> {
  const { events } = task.driver.management;
  const { uuid } = task.node;
  const { store } = context;
  const before = (await store.bmcWatches.find(uuid))?.origins ?? [];
  // First those that were not well: nothing else would end their alerts. What an event says of a part that is not read ends after a time.
  const paths = [...new Set([...before, ...named])].slice(0, MAX_ORIGINS);
  const signals: Signal[] = [];
  const bad: string[] = [];
  const read = new Set<string>();
  if (events)
    for (const path of paths) {
      const found = await events.origin(task, path).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error;
        // What was not well stays so until it can be read.
        if (before.includes(path)) bad.push(path);
        return undefined;
      });
      if (found === undefined) continue;
      read.add(path);
      if (found === 'sensors') continue;
      signals.push(found);
      if (found.states.length > 0) bad.push(path);
    }
  await noteJudged(context, store, uuid, signals);
  if (bad.join() !== before.join()) await store.bmcWatches.put(uuid, { origins: bad });
  return read;
}

/** Reads a machine whose BMC has sent events. What they say counts only where nothing can be read. */
export async function readAfterEvents(context: Context, uuid: string, events: readonly BmcEvent[]): Promise<void> {
  const { store, clock, random } = context;
  const node = await store.nodes.find(uuid).catch((error: unknown) => {
    if (error instanceof Fault && error.name === 'NodeNotFound') return undefined;
    throw error;
  });
  if (!node || node.maintenance) return;
  await onMachine(context, node, async (task) => {
    await readSensorsNow(context, task).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error;
      task.log.warn('the sensors cannot be read after an event', { reason: error.message });
    });
    const named = events.flatMap(({ OriginOfCondition: path }) => path ?? []);
    const read = await readOrigins(context, task, named);
    const unread = events.filter(({ OriginOfCondition: path }) => path === undefined || !read.has(path));
    const { raised, cleared } = judged(
      context.healthRules,
      uuid,
      unread.flatMap((event) => recordSignal('event', event) ?? []),
    );
    const until = timestamp(clock.now() + EVENT_MS);
    const changes = { raised: raised.map((alert) => ({ ...alert, until })), cleared };
    await store.healthAlerts.putChanges(changes, () => newUuid(random), inHistoryOf(context));
    await readLogs(context, task);
  });
}

/** Reads the new entries of a machine's logs, if [health]log_interval says so. */
export async function readLogs(context: Context, task: NodeTask): Promise<void> {
  const { store, options, random } = context;
  const { management } = task.driver;
  const { uuid } = task.node;
  if (!management.logs || options['health.log_interval'] === 0) return;
  const before = (await store.bmcWatches.find(uuid))?.logs ?? {};
  const { signals, positions, wasCleared } = await management.logs(task, before as Readonly<Record<string, LogPosition>>);
  if (wasCleared) {
    const open = await store.healthAlerts.list({ nodeUuid: uuid, sources: ['log'], limit: MAX_OPEN });
    const ended = open.map((alert) => ({
      node_uuid: uuid,
      source: alert.source,
      rule: alert.rule,
      subject: alert.subject,
      reason: 'the log was cleared',
    }));
    await store.healthAlerts.setCleared(ended, inHistoryOf(context));
  }
  const changes = judged(context.healthRules, uuid, signals);
  await store.healthAlerts.putChanges(changes, () => newUuid(random), inHistoryOf(context));
  // After the alerts, so that entries are read again if they cannot be written.
  if (JSON.stringify(positions) !== JSON.stringify(before)) await store.bmcWatches.put(uuid, { logs: positions });
}

/** Ends the subscription of a node that is removed: in the background, once, since the server forgets the node. */
export function endOfRemoved(context: Context, node: NodeRecord): void {
  const { log } = context;
  const end = onMachine(context, node, async (task) => task.driver.management.events?.end(task, eventOwner(node.uuid)));
  void context.track(
    end.catch((error: unknown) => {
      if (!context.signal.aborted)
        log.warn(`the BMC of the removed node ${node.uuid} may still send events here`, {
          reason: error instanceof Fault ? error.message : reasonOf(error),
        });
    }),
  );
}
