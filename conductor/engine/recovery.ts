/**
 * Nodes that a conductor left in the middle of its work: their flow continues where that is safe, and fails where it is not. The node's row
 * has the position of the flow (state, list of steps, index), so any conductor can continue it.
 */
import { Fault, reasonOf } from '../../model/errors';
import { STATES, stateRow, type ProvisionState } from '../../model/states';
import type { NodeFilter } from '../../store/store';
import type { Context } from '../core/context';
import { FLOWS } from '../flows';
import { runningStep, UNFINISHED_ABORT } from '../flows/flow';
import { applyOutcome } from '../flows/outcome';
import { finishAbort } from './abort';
import { RESUMABLE_STATES, resumeIntrospection } from '../introspection/unfinished';
import { OWNERSHIP_COLUMNS } from '../runtime/ownership';
import { startTask, withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

const WORKING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).working);

/**
 * Power changes whose conductor is gone, or could not write while the database was unreachable. A client's power request fails here. In a
 * working state only the target is cleared, because the flow is resumed.
 */
async function endPowerChanges(context: Context): Promise<void> {
  const { store, locks, log } = context;
  const pending = await store.nodes.listColumns(['uuid', 'driver', 'conductor_group'], {
    where: { target_power_state: ['power on', 'power off'] },
    reserved: false,
    children: 'all',
  });
  for (const { uuid } of await context.ownNodes(pending.filter((node) => !locks.has(node.uuid)))) {
    const event = 'Pending power operation was aborted due to conductor restart';
    await withTask(context, uuid, { purpose: 'power state clean up' }, async (task) => {
      const { provision_state: state, target_power_state: target } = task.node;
      if (target === null) return;
      if (stateRow(state).working) await task.save({ target_power_state: null });
      else await task.record({ type: 'startup failure', event, error: true }, { target_power_state: null });
    }).catch((error: unknown) => log.warn(`power state clean up of node ${uuid} failed`, { reason: reasonOf(error) }));
  }
}

/** Ends the reservations of a host, unless it renewed its lease lately. */
async function takeFrom(context: Context, host: string): Promise<void> {
  const { store, options, log } = context;
  const released = await store.transaction(async ({ conductors, nodes }) =>
    (await conductors.declareDead(host, options['conductor.heartbeat_timeout'])) ? nodes.releaseAll(host) : undefined,
  );
  if (!released) return;
  log.warn(`conductor ${host} is gone: its nodes are taken over`, { nodes: released.length });
}

/** Continues nodes that nobody holds: their conductor is gone. `remaining` decides under the lock what is left to do. */
async function resume(
  context: Context,
  filter: NodeFilter,
  remaining: (task: NodeTask) => (() => Promise<void>) | undefined,
): Promise<void> {
  const { store, locks, log } = context;
  const nodes = await store.nodes.listColumns(OWNERSHIP_COLUMNS, { ...filter, reserved: false, children: 'all' });
  for (const node of await context.ownNodes(nodes.filter(({ uuid }) => !locks.has(uuid)))) {
    try {
      await startTask(context, node.uuid, { purpose: 'recovery' }, async (task) => remaining(task));
    } catch (error) {
      if (!(error instanceof Fault && error.name === 'NodeLocked'))
        log.warn(`recovery of node ${node.uuid} failed`, { reason: reasonOf(error) });
    }
  }
}
/** Nodes in a working state. */
const resumeFlows = (context: Context): Promise<void> =>
  resume(context, { where: { provision_state: WORKING } }, (task) => {
    const row = stateRow(task.node.provision_state);
    if (!row.working) return undefined;
    const flow = FLOWS[row.flow!];
    task.log.warn(`a conductor left the node in the state ${task.node.provision_state}: its flow resumes here`, {
      step: runningStep(task.node, flow),
    });
    return () => applyOutcome(task, flow, () => (flow.resume ? flow.resume(task) : flow.begin(task)));
  });
/** Nodes whose flow was aborted, and whose clean-up is not over. */
const resumeAborts = (context: Context): Promise<void> =>
  resume(context, { internal: UNFINISHED_ABORT }, (task) => () => finishAbort(task));
/** Introspections of the service whose conductor is gone, or whose node was held. */
async function resumeIntrospections(context: Context): Promise<void> {
  const left = await context.store.introspections.nodesIn(RESUMABLE_STATES);
  if (left.length > 0) await resume(context, { where: { uuid: left } }, (task) => () => resumeIntrospection(task));
}
/** Everything that a conductor left when it stopped or could not write: nobody holds the node, and its work is not over. */
export async function resumeAbandoned(context: Context): Promise<void> {
  await endPowerChanges(context);
  await resumeFlows(context);
  await resumeAborts(context);
  await resumeIntrospections(context);
}

/**
 * Waiting nodes whose running step is polled: only the conductor that they belong to polls them. Repeated, since a poll is lost when the
 * database is unreachable at the wrong moment.
 */
export async function pollWaiting(context: Context): Promise<void> {
  const waiting = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');
  const nodes = await context.store.nodes.listColumns([...OWNERSHIP_COLUMNS, 'driver_internal_info'], {
    where: { provision_state: waiting },
    children: 'all',
  });
  const own = new Set(await context.ownNodes(nodes));
  for (const node of nodes) {
    const { uuid, driver_internal_info: internal } = node;
    if (!own.has(node)) context.stopPolling(uuid);
    else if (typeof internal.step_poll_every === 'number' && !context.isPolling(uuid)) context.pollLater(uuid, internal.step_poll_every);
  }
}

/** Consoles run on the conductor that opened them: the conductor that the node belongs to now opens them again. */
async function openConsoles(context: Context): Promise<void> {
  const open = await context.store.nodes.listColumns(OWNERSHIP_COLUMNS, {
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
    }).catch((error: unknown) => context.log.warn(`could not open the console of node ${uuid}`, { reason: reasonOf(error) }));
  }
}

/** Takes over nodes that belonged to another conductor: at the start, and whenever the set of conductors changes. */
export const takeOverNodes = (context: Context): Promise<void> =>
  context.whenConductorsChange(async () => {
    await pollWaiting(context);
    await openConsoles(context);
  });

/** Deletes the rows of conductors that are gone for good. */
export async function removeDeadConductors({ store, options, log }: Context): Promise<void> {
  // Rows whose expiry other conductors may still wait for must stay.
  const seconds = Math.max(options['conductor.conductor_cleanup_timeout'], 3 * options['conductor.heartbeat_timeout']);
  const gone = await store.conductors.removeExpired(seconds, options['conductor.conductor_cleanup_batch_size']);
  if (gone.length > 0) log.info(`the rows of dead conductors were deleted: ${gone.join(', ')}`);
}

/**
 * Periodic: ends reservations of this host without a task (the database was unreachable at their end) and those of dead hosts, and
 * continues the nodes of both.
 */
export async function releaseOrphanedReservations(context: Context): Promise<void> {
  const { store, host, locks, options, lease } = context;
  // The process adds a node to `locks` before it reserves the node. So a listed node of this host that is not in `locks` has no task.
  const reserved = await store.nodes.listColumns(['uuid', 'reservation', 'lock_fence'], { reserved: true, children: 'all' });
  for (const { uuid, reservation, lock_fence: fence } of reserved)
    if (reservation === host && !locks.has(uuid)) await store.nodes.release(uuid, fence);
  const others = new Set(reserved.map(({ reservation }) => reservation!).filter((name) => name !== host));
  if (others.size > 0 && lease.secondsUnbroken() >= 2 * options['conductor.heartbeat_interval']) {
    const holding = new Set(
      (await store.conductors.list(options['conductor.heartbeat_timeout']))
        .filter(({ locks_valid: holds }) => holds)
        .map(({ hostname }) => hostname),
    );
    for (const name of others) if (!holding.has(name)) await takeFrom(context, name);
  }
  await resumeAbandoned(context);
}
