/** Holding a node: reserved once, every write carrying the fencing number of that reservation, let go whatever happens. */
import type { Driver, Power } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { applied, isNothing, NOTHING, together, type NodeWrite } from '../../model/node-write';
import { INTERFACE_KINDS, type NodeChanges, type NodeRecord, type PortRecord } from '../../model/records';
import { next, stateRow, type Event, type ProvisionState } from '../../model/states';
import type { Store } from '../../store/store';
import { replaceBiosSettings } from './bios-settings';
import type { Context } from './context';
import { putFirmwareComponents } from './firmware-components';
import { entryOf, failureOf } from './history';
import type { NodeTask, TaskRequest } from './node-task';
import { measureMove } from './measures';
import { fencedPool } from './fenced';
import { notifyProvision } from './notify';
import { retryingStore, isDatabaseDown, retryWhileDatabaseDown } from './database-retry';
import { changePower } from './power';
import { recorderData } from './recorders';
import type { Place } from './workers';
import { LockLost, isInterrupted } from './interruption';

/**
 * Where an event leads and what the node is bound for there. A stable state is bound for nothing; a failure, and the states of one flow
 * among each other, keep what was wanted (manual cleaning stays bound for `manageable`).
 */
export function transition(node: NodeRecord, event: Event): { readonly to: ProvisionState; readonly target: ProvisionState | null } {
  const from = node.provision_state;
  const to = next(from, event);
  if (!to) throw new Fault('InvalidStateRequested', { action: event, node: node.uuid, state: from });
  const [was, will] = [stateRow(from), stateRow(to)];
  if (will.stable) return { to, target: null };
  const keeps = will.failed === true || (was.flow !== undefined && was.flow === will.flow);
  return { to, target: (keeps && node.target_provision_state) || (will.target as ProvisionState) };
}

const DRIVER_FIELDS = ['driver', ...INTERFACE_KINDS.map((kind) => `${kind}_interface` as const)] as const;
const sameDriver = (a: NodeRecord, b: NodeRecord): boolean => a === b || DRIVER_FIELDS.every((field) => a[field] === b[field]);

/**
 * A task of a node that is reserved already, or that looks only.
 * @param term that of the lease when the node was reserved
 */
export const taskOf = async (context: Context, reserved: NodeRecord, exclusive = true, term = context.lease.term): Promise<NodeTask> =>
  taskWith(context, reserved, await context.store.ports.ofNode(reserved.uuid), exclusive, term);

/** One that looks only and has no use for the node's ports: they are not read. */
export const sharedTaskOf = (context: Context, node: NodeRecord): NodeTask => taskWith(context, node, [], false, context.lease.term);

function taskWith(given: Context, reserved: NodeRecord, itsPorts: readonly PortRecord[], exclusive: boolean, term: number): NodeTask {
  let patient = false;
  const store = retryingStore(given.store, (ask) => (patient ? retryWhileDatabaseDown(task, ask) : ask()));
  const context: Context = { ...given, store };
  const { clock, options, connections } = context;
  const { uuid, lock_fence: fence } = reserved;
  let node = reserved;
  let ports = itsPorts;
  let driver: { readonly of: NodeRecord; readonly made: Driver } | undefined;
  let noted = NOTHING;
  const put = async (write: NodeWrite, also?: (store: Store) => Promise<void>, letGo = false): Promise<void> => {
    if (!exclusive) throw new Error('a shared task may not write');
    const whole = together(noted, write);
    if (isNothing(whole) && !also && !letGo) return;
    const held = (inner: Store): Promise<NodeRecord> => inner.nodes.writeHeld(node, fence, whole, letGo);
    try {
      node = await (also
        ? store.transaction(async (inner) => {
            await also(inner);
            return held(inner);
          })
        : held(store));
      noted = NOTHING;
    } catch (error) {
      if (!(error instanceof Fault && error.name === 'NodeLocked')) throw error;
      context.metrics.count('bloomery_locks_lost_total', {});
      throw new LockLost(uuid);
    }
  };
  const stillHeld = (): true | Promise<void> => {
    const holds = context.lease.holds(term);
    if (holds === true) return true;
    return holds.then(async (sure) => {
      if (sure) return;
      // Nobody else can have taken it while the database was away for all.
      if (patient) await retryWhileDatabaseDown(task, () => context.lease.renew());
      if (!patient || !(await context.lease.holds(term))) throw new LockLost(uuid);
    });
  };
  const task: NodeTask = {
    context,
    ...(exclusive ? { stillHeld } : {}),
    ...(context.origin?.globalRequestId === undefined ? {} : { globalRequestId: context.origin.globalRequestId }),
    clock,
    options,
    connections: exclusive
      ? { ...connections, ipmi: fencedPool(connections.ipmi, { stillHeld }), redfish: fencedPool(connections.redfish, { stillHeld }) }
      : connections,
    signal: context.signal,
    boots: store.boots,
    media: store.media,
    random: context.random,
    log: context.log.child({ node: uuid }),
    metrics: context.metrics,
    get node() {
      return node;
    },
    get ports() {
      return ports;
    },
    get driver() {
      // Made at first use: what needs no driver works on a node whose driver is not enabled any more.
      if (!driver || !sameDriver(driver.of, node)) driver = { of: node, made: context.hardware.driverOf(node) };
      return driver.made;
    },
    save: (changes) => put({ ...NOTHING, changes }),
    saveInternal: (internal) => put({ ...NOTHING, internal }),
    reportProgress: (kind, { interface: owner, step }, percent) => {
      const { [`${kind}_step_index`]: place = 0, [`${kind}_steps`]: steps } = node.driver_internal_info;
      const of = Array.isArray(steps) ? steps.length : 0;
      return store.events.note(node, 'progress', { flow: kind, done: place, of, step: `${owner}.${step}`, percent });
    },
    note: (changes, internal = {}, history = []) => {
      const write: NodeWrite = { changes, internal, history };
      noted = together(noted, write);
      node = applied(node, write);
    },
    write: (changes, internal, also) => put({ changes, internal, history: [] }, also),
    saveBiosSettings: (settings) => task.write({}, {}, (inner) => replaceBiosSettings(inner, uuid, settings)),
    saveFirmwareComponents: (components) => task.write({}, {}, (inner) => putFirmwareComponents(inner, uuid, components)),
    recorderData: () => recorderData(context, node),
    fire: async (event, changes = {}, internal = {}, also) => {
      const before = node;
      const from = node.provision_state;
      const { to, target } = transition(node, event);
      const entry =
        event === 'fail' && changes.last_error ? entryOf(context, node, failureOf(context, node, changes.last_error)) : undefined;
      const moved = { provision_state: to, target_provision_state: target, provision_updated_at: timestamp(clock.now()) };
      await put({ changes: { ...moved, ...changes }, internal, history: entry ? [entry] : [] }, also);
      measureMove(context, uuid, from, event, to);
      notifyProvision(context, before, node, event);
      task.log.info(`node ${node.name ?? uuid}: ${from} → ${to} (${event})`, { last_error: node.last_error });
    },
    record: (said, changes = {}, internal = {}) => {
      const entry = entryOf(context, node, said);
      return put({ changes: said.error ? { last_error: said.event, ...changes } : changes, internal, history: entry ? [entry] : [] });
    },
    release: () => put(NOTHING, undefined, true),
    retryWhileDatabaseDown: () => {
      patient = true;
    },
    refresh: async () => {
      await put(NOTHING);
      node = await store.nodes.find(uuid);
      ports = await store.ports.ofNode(uuid);
    },
    withNode: (other, request, work) => withTask(context, other, request, work),
    power: (target: Power, timeoutSeconds?: number) => changePower(task, target, timeoutSeconds),
  };
  return task;
}

/** Tries what throws NodeLocked again, as often and as late as the options say. */
async function whenFree<T>(context: Context, uuid: string, retry: boolean, work: () => Promise<T>): Promise<T> {
  const { locks, options, host, signal, caller, metrics } = context;
  const until = caller ? AbortSignal.any([signal, caller]) : signal;
  const tries = retry ? Math.max(1, options['conductor.node_locked_retry_attempts']) : 1;
  const took = metrics.timer();
  for (let tried = 1; ; tried++) {
    if (signal.aborted) throw new Fault('TemporaryFailure', { message: 'The conductor is stopping.' });
    // What it asked for may have been asked of another meanwhile, and changed again: it must not come late.
    if (caller?.aborted) throw new Fault('TemporaryFailure', { message: 'The caller is gone.' });
    try {
      if (locks.has(uuid)) throw new Fault('NodeLocked', { node: uuid, host });
      const had = await work();
      if (tried > 1) metrics.observe('bloomery_lock_wait_seconds', { outcome: 'had' }, took());
      return had;
    } catch (error) {
      if (!(error instanceof Fault) || error.name !== 'NodeLocked') throw error;
      metrics.count('bloomery_lock_conflicts_total', {});
      if (tried >= tries) {
        if (retry) metrics.observe('bloomery_lock_wait_seconds', { outcome: 'refused' }, took());
        throw error;
      }
    }
    await locks.wait(uuid, options['conductor.node_locked_retry_interval'] * 1000, until);
  }
}

/** From here on the work is done, whether anybody waits for its answer or not. */
const begun = (context: Context): Context => (context.caller ? { ...context, caller: undefined } : context);

const reserve = (context: Context, uuid: string, { retry = false }: TaskRequest): Promise<NodeTask> =>
  whenFree(context, uuid, retry, async () => {
    const { locks, host, store } = context;
    locks.add(uuid);
    // Before it is reserved: a lease that ends in between ends the task.
    const { term } = context.lease;
    try {
      const reserved = await store.nodes.reserve(uuid, host);
      try {
        return await taskOf(begun(context), reserved, true, term);
      } catch (error) {
        await store.nodes.release(uuid, reserved.lock_fence).catch(() => {});
        throw error;
      }
    } catch (error) {
      locks.remove(uuid);
      throw error;
    }
  });

/** How often a change may find that the node was written while it was thought about. */
const CHANGE_TRIES = 10;
/**
 * Changes a node that nobody holds, in one statement and without holding it: the row is written only if it is still as `decide` saw it
 * and nobody has reserved it since. For what asks no machine. Tried again like a reservation. `also`: what is written with it, if
 * anything. Throws NodeLocked, NodeNotFound.
 */
export const changeUnlocked = (
  context: Context,
  uuid: string,
  decide: (node: NodeRecord) => Promise<NodeChanges>,
  also?: (node: NodeRecord, changes: NodeChanges) => ((store: Store) => Promise<void>) | undefined,
): Promise<NodeRecord> =>
  whenFree(context, uuid, true, async () => {
    const { store } = context;
    for (let tried = 0; tried < CHANGE_TRIES; tried++) {
      const node = await store.nodes.find(uuid);
      if (node.reservation !== null) throw new Fault('NodeLocked', { node: uuid, host: node.reservation });
      const changes = await decide(node);
      const write = ({ nodes }: Store) => nodes.updateFree(uuid, changes, node.revision);
      const more = also?.(node, changes);
      const changed = await (more
        ? store.transaction(async (inner) => {
            const written = await write(inner);
            if (written) await more(inner);
            return written;
          })
        : write(store));
      if (changed) return changed;
    }
    throw new Fault('NodeLocked', { node: uuid, host: 'another host' });
  });

/** Who waits for an answer does not wait for a database that is away: the reservation is ended behind it. */
async function release(context: Context, task: NodeTask): Promise<void> {
  const { uuid } = task.node;
  const ended = (): void => context.locks.remove(uuid);
  const failed = (error: unknown): void => {
    // The periodic look at reservations that no task holds ends it.
    if (!(error instanceof LockLost || (error instanceof Fault && error.name === 'NodeNotFound')))
      task.log.error('the reservation could not be ended', { reason: reasonOf(error) });
  };
  try {
    await task.release();
  } catch (error) {
    if (isDatabaseDown(error) && !context.signal.aborted) {
      void retryWhileDatabaseDown(task, () => task.release())
        .catch(failed)
        .finally(ended);
      return;
    }
    failed(error);
  }
  ended();
}

/** Holds the node for as long as `work` runs, whatever comes of it. Throws NodeLocked, NodeNotFound. */
export async function withTask<T>(context: Context, uuid: string, want: TaskRequest, work: (task: NodeTask) => Promise<T>): Promise<T> {
  if (want.lock === 'shared') return work(await taskOf(context, await context.store.nodes.find(uuid), false));
  const task = await reserve(context, uuid, want);
  try {
    return await work(task);
  } finally {
    await release(context, task);
  }
}

/**
 * Answers once `first` is over (the API's 202), and goes on under the same lock with the work that `first` returned, if any.
 * Throws NoFreeConductorWorker before anything is changed.
 */
export async function startTask(
  context: Context,
  uuid: string,
  want: TaskRequest,
  first: (task: NodeTask) => Promise<(() => Promise<void>) | undefined>,
): Promise<void> {
  const place: Place = context.workers.take(want.ordinary);
  try {
    const task = await reserve(context, uuid, want);
    let work: (() => Promise<void>) | undefined;
    try {
      work = await first(task);
    } catch (error) {
      await release(context, task);
      throw error;
    }
    if (!work) {
      await release(context, task);
      return;
    }
    const rest = work;
    task.retryWhileDatabaseDown();
    place.run(async () => {
      try {
        await rest();
      } catch (error) {
        if (!isInterrupted(context, error)) throw error;
        task.log.warn(`${want.purpose}: the node is left as it is`, { reason: reasonOf(error) });
      } finally {
        await release(context, task);
      }
    });
  } finally {
    place.giveBack();
  }
}
