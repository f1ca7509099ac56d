/**
 * Nodes that a conductor left in the middle of its work: gone on with where that is safe, failed where it is not. What a flow was
 * about to do is on the node (state, list of steps, index), so that any conductor can tell.
 */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { STATES, stateRow, type ProvisionState } from '../../model/states';
import type { NodeFilter } from '../../store/store';
import type { Context } from '../core/context';
import { FLOWS } from '../flows';
import { UNFINISHED_ABORT } from '../flows/flow';
import { applyOutcome } from '../flows/outcome';
import { finishAbort } from './abort';
import { RESUMABLE_STATES, resumeIntrospection } from '../introspection/unfinished';
import { OWNERSHIP_COLUMNS } from '../core/ownership';
import { startTask, withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

const WORKING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).working);

/**
 * Power changes that nobody goes on with: their conductor went, or it could not write while the database was away. What a flow was about
 * shows in the node's state, and is resumed; only what a client asked for ends here.
 */
async function endPowerChanges(context: Context): Promise<void> {
  const { store, locks, log } = context;
  const pending = await store.nodes.list({ where: { target_power_state: ['power on', 'power off'] }, reserved: false, children: 'all' });
  for (const { uuid } of await context.ownNodes(pending.filter((node) => !locks.has(node.uuid)))) {
    const event = 'Pending power operation was aborted due to conductor restart';
    await withTask(context, uuid, { purpose: 'power state clean up' }, async (task) => {
      const { provision_state: state, target_power_state: target } = task.node;
      if (target === null) return;
      if (stateRow(state).working) await task.save({ target_power_state: null });
      else await task.record({ type: 'startup failure', event, error: true }, { target_power_state: null });
    }).catch((error: unknown) => log.warn(`node ${uuid} after its host went`, { reason: reasonOf(error) }));
  }
}

/** Takes from a host what it holds, unless it gave a sign of life lately. */
async function takeFrom(context: Context, host: string): Promise<void> {
  const { store, options, log } = context;
  const released = await store.transaction(async ({ conductors, nodes }) =>
    (await conductors.declareDead(host, options['conductor.heartbeat_timeout'])) ? nodes.releaseAll(host) : undefined,
  );
  if (!released) return;
  log.warn(`conductor ${host} is gone: its nodes are taken over`, { nodes: released.length });
}

/** Goes on with nodes that nobody holds: their conductor is gone. `rest`: what is left to do, looked at under the lock. */
async function resume(context: Context, filter: NodeFilter, rest: (task: NodeTask) => (() => Promise<void>) | undefined): Promise<void> {
  const { store, locks, log } = context;
  const nodes = await store.nodes.pick(OWNERSHIP_COLUMNS, { ...filter, reserved: false, children: 'all' });
  for (const node of await context.ownNodes(nodes.filter(({ uuid }) => !locks.has(uuid)))) {
    try {
      await startTask(context, node.uuid, { purpose: 'recovery' }, async (task) => rest(task));
    } catch (error) {
      if (!(error instanceof Fault && error.name === 'NodeLocked')) log.warn(`recovery of node ${node.uuid}`, { reason: reasonOf(error) });
    }
  }
}
/** In a working state. */
const resumeFlows = (context: Context): Promise<void> =>
  resume(context, { where: { provision_state: WORKING } }, (task) => {
    const row = stateRow(task.node.provision_state);
    if (!row.working) return undefined;
    const flow = FLOWS[row.flow!];
    task.log.warn(`${task.node.provision_state} was left by its conductor`, { step: positionsOf(task.node) });
    return () => applyOutcome(task, flow, () => (flow.resume ?? flow.begin)(task));
  });
/** Aborted, and not cleaned up to the end. */
const resumeAborts = (context: Context): Promise<void> =>
  resume(context, { internal: UNFINISHED_ABORT }, (task) => () => finishAbort(task));
/** Introspections of the service that their conductor left, or whose node was held. */
async function resumeIntrospections(context: Context): Promise<void> {
  const left = await context.store.introspections.nodesIn(RESUMABLE_STATES);
  if (left.length > 0) await resume(context, { where: { uuid: left } }, (task) => () => resumeIntrospection(task));
}
/** What a conductor left that went, or that could not write: nobody holds it, and it is not at rest. */
export async function resumeAbandoned(context: Context): Promise<void> {
  await endPowerChanges(context);
  await resumeFlows(context);
  await resumeAborts(context);
  await resumeIntrospections(context);
}
const positionsOf = ({ clean_step: clean, deploy_step: deploy, service_step: service }: NodeRecord): string | undefined =>
  (clean.step ?? deploy.step ?? service.step) as string | undefined;

/**
 * Waiting nodes whose running step is asked for from time to time: asked by the conductor whose share they are, and by no other. Looked
 * at again and again, since a question is lost when the database is away at the wrong moment.
 */
export async function askWaiting(context: Context): Promise<void> {
  const waiting = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');
  const nodes = await context.store.nodes.pick([...OWNERSHIP_COLUMNS, 'driver_internal_info'], {
    where: { provision_state: waiting },
    children: 'all',
  });
  const mine = new Set(await context.ownNodes(nodes));
  for (const node of nodes) {
    const { uuid, driver_internal_info: internal } = node;
    if (!mine.has(node)) context.stopPolling(uuid);
    else if (typeof internal.step_poll_every === 'number' && !context.isPolling(uuid)) context.pollLater(uuid, internal.step_poll_every);
  }
}

/** Consoles run beside the conductor that opened them: they are opened again by the one that the node belongs to now. */
async function openConsoles(context: Context): Promise<void> {
  const open = await context.store.nodes.pick(OWNERSHIP_COLUMNS, {
    where: { console_enabled: true, maintenance: false },
    reserved: false,
    children: 'all',
  });
  for (const { uuid } of await context.ownNodes(open)) {
    await withTask(context, uuid, { purpose: 'start console' }, async (task) => {
      try {
        await task.driver.console.start(task);
      } catch (error) {
        if (isInterrupted(context, error)) throw error;
        const event = `Failed to start console while taking over the node ${uuid}: ${reasonOf(error)}`;
        await task.record({ type: 'console', event, error: true }, { console_enabled: false });
      }
    }).catch((error: unknown) => context.log.warn(`console of node ${uuid}`, { reason: reasonOf(error) }));
  }
}

/** What must be done for nodes that were another conductor's share before: at the start, and whenever there are other conductors. */
export const takeShare = (context: Context): Promise<void> =>
  context.whenConductorsChange(async () => {
    await askWaiting(context);
    await openConsoles(context);
  });

/** Rows of conductors that will not come back. */
export async function removeSilent({ store, options, log }: Context): Promise<void> {
  // Not one that others might still wait for.
  const seconds = Math.max(options['conductor.conductor_cleanup_timeout'], 3 * options['conductor.heartbeat_timeout']);
  const gone = await store.conductors.removeSilent(seconds, options['conductor.conductor_cleanup_batch_size']);
  if (gone.length > 0) log.info(`conductors were forgotten: ${gone.join(', ')}`);
}

/**
 * From time to time: reservations of this host that no task holds (they could not be ended when the database was away), those of
 * hosts that are gone, and the nodes that both leave behind.
 */
export async function endStrayReservations(context: Context): Promise<void> {
  const { store, host, locks, options, lease } = context;
  // Held ones are noted before they are reserved, so that what is listed here and not noted is nobody's.
  const reserved = await store.nodes.pick(['uuid', 'reservation', 'lock_fence'], { reserved: true, children: 'all' });
  for (const { uuid, reservation, lock_fence: fence } of reserved)
    if (reservation === host && !locks.has(uuid)) await store.nodes.release(uuid, fence);
  const others = new Set(reserved.map(({ reservation }) => reservation!).filter((name) => name !== host));
  if (others.size > 0 && lease.secondsUnbroken() >= 2 * options['conductor.heartbeat_interval']) {
    const holding = new Set(
      (await store.conductors.list(options['conductor.heartbeat_timeout'])).filter(({ holds }) => holds).map(({ hostname }) => hostname),
    );
    for (const name of others) if (!holding.has(name)) await takeFrom(context, name);
  }
  await resumeAbandoned(context);
}
