/** Holds a node: makes a reservation, which ends whatever happens, and adds its fencing number to every write. */
import type { Driver, Power } from '../../drivers/interfaces';
import { retry, timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { applyWrite, isEmptyWrite, EMPTY_WRITE, mergeWrites, withQuotesBounded, type NodeWrite } from '../../model/node-write';
import type { InternalChanges } from '../../model/internal-info';
import { beneath } from '../../model/rules/out-of-service';
import { callerOf } from '../../model/origin';
import { INTERFACE_KINDS, type JsonObject, type NodeChanges, type NodeRecord, type PortRecord } from '../../model/records';
import { isWaiting, nextState, stateRow, type Event, type ProvisionState } from '../../model/states';
import { isDatabaseDown, retryingStore, retryWhileDatabaseDown } from '../../store/database-retry';
import type { Store } from '../../store/store';
import { volumesOf } from '../../store/volumes';
import { replaceBiosSettings } from './bios-settings';
import type { Context } from './context';
import { putFirmwareComponents } from './firmware-components';
import { certifyErasure } from './erasures';
import { entryOf, failureOf } from './history';
import type { NodeTask, TaskRequest } from './node-task';
import { recordTransitionMetrics } from './measures';
import { fencedConnections, type Holding } from '../hardware/fenced';
import { notifyProvision } from './notify';
import { portWrites } from './port-writes';
import { changePower } from './power';
import { recordBoot } from './boot-record';
import { recorderData } from './recorders';
import type { ReservedWorker } from '../runtime/workers';
import { LockLost, isInterrupted } from './interruption';

/**
 * Where an event leads, and the node's target there. A stable state has no target. A failed state, and the states of one flow, keep the
 * target (manual cleaning keeps `manageable`).
 * @internal
 */
export function transition(node: NodeRecord, event: Event): { readonly to: ProvisionState; readonly target: ProvisionState | null } {
  const from = node.provision_state;
  const to = nextState(from, event);
  if (!to) throw new Fault('InvalidStateRequested', { action: event, node: node.uuid, state: from });
  const [was, will] = [stateRow(from), stateRow(to)];
  if (will.stable) return { to, target: null };
  const keeps = will.failed === true || (was.flow !== undefined && was.flow === will.flow);
  return { to, target: (keeps && node.target_provision_state) || (will.target as ProvisionState) };
}

const DRIVER_FIELDS = ['driver', ...INTERFACE_KINDS.map((kind) => `${kind}_interface` as const)] as const;
const sameDriver = (a: NodeRecord, b: NodeRecord): boolean => a === b || DRIVER_FIELDS.every((field) => a[field] === b[field]);

/**
 * A task of a node that is reserved already, or that is only read.
 * @param term the lease's term when the node was reserved
 */
export const taskOf = async (context: Context, reserved: NodeRecord, exclusive = true, term = context.lease.term): Promise<NodeTask> =>
  taskWith(context, reserved, await context.store.ports.ofNode(reserved.uuid), exclusive ? 'reserved' : 'read', term);

/** A task that only reads the node, without its ports. */
export const sharedTaskOf = (context: Context, node: NodeRecord): NodeTask => taskWith(context, node, [], 'read', context.lease.term);

/** The node is reserved by other work, or has changed: the task, which has not reserved it, cannot write it. */
class NotUnchanged extends LockLost {}
/** `free`: not reserved yet; the first write reserves the node if it is unchanged. `ended`: the last write ended the reservation. */
type Hold = 'read' | 'free' | 'reserved' | 'ended';

/** The members of a task that come from the conductor. The connections of an exclusive task are fenced. */
const surroundings = (context: Context, uuid: string, holding: Holding | undefined) => ({
  context,
  ...holding,
  globalRequestId: context.origin?.globalRequestId,
  clock: context.clock,
  options: context.options,
  connections: holding ? fencedConnections(context.connections, holding) : context.connections,
  signal: context.signal,
  boots: context.store.boots,
  media: context.store.media,
  volumes: volumesOf(context.store),
  snapshots: context.store.snapshots,
  random: context.random,
  log: context.log.child({ node: uuid }),
  metrics: context.metrics,
});

const progressOf = (
  { driver_internal_info: info }: NodeRecord,
  ...[kind, { interface: owner, step }, percent, bytes]: Parameters<NonNullable<NodeTask['reportProgress']>>
): JsonObject => {
  const { [`${kind}_step_index` as const]: place = 0, [`${kind}_steps` as const]: steps } = info;
  const written = bytes ? { bytes: bytes.done, bytes_of: bytes.of } : {};
  return { flow: kind, done: place, of: Array.isArray(steps) ? steps.length : 0, step: `${owner}.${step}`, percent, ...written };
};

const STATE_COLUMNS: readonly string[] = ['provision_state', 'target_provision_state', 'provision_updated_at'];
/** The state of noted events, which cannot be too large. */
const stateOnly = ({ changes }: NodeWrite): NodeWrite => ({
  ...EMPTY_WRITE,
  changes: Object.fromEntries(Object.entries(changes).filter(([name]) => STATE_COLUMNS.includes(name))),
});
const isStateOnly = ({ changes, internal, history }: NodeWrite): boolean =>
  isEmptyWrite({ changes: {}, internal, history }) && Object.keys(changes).every((name) => STATE_COLUMNS.includes(name));

type Retry = <T>(work: () => Promise<T>) => Promise<T>;
/** @param retryOf repeats calls to the database; undefined: they are not repeated */
const heldDuring =
  ({ lease }: Context, uuid: string, term: number, retryOf: () => Retry | undefined) =>
  (): true | Promise<void> => {
    const holds = lease.holds(term);
    if (holds === true) return true;
    return holds.then(async (sure) => {
      if (sure) return;
      // Nobody else can have taken the node while the database was unreachable.
      const repeated = retryOf();
      await repeated?.(() => lease.renew());
      if (!repeated || !(await lease.holds(term))) throw new LockLost(uuid);
    });
  };

const withMaintenanceBeneath = (node: NodeRecord, write: NodeWrite): NodeWrite => {
  const changes = beneath(node, write.changes);
  return changes === write.changes ? write : { ...write, changes };
};

/** The record of a node, what is noted for it, and whether it is reserved. */
interface HeldNode {
  node: NodeRecord;
  /** Writes the node and what is noted, and reserves it if it is not reserved yet. */
  readonly put: (write: NodeWrite, also?: (store: Store) => Promise<void>, release?: boolean) => Promise<void>;
  /** @param announce called when the write is done */
  note(write: NodeWrite, announce?: () => void): void;
  /** Drops what is noted, and reads the node again. */
  readonly discardNotes: () => Promise<void>;
  readonly checks: Required<Holding>;
}
function heldNode(
  context: Context,
  found: NodeRecord,
  held: Hold,
  isHeld: () => true | Promise<void>,
  log: () => NodeTask['log'],
): HeldNode {
  const { store, host, metrics } = context;
  const { uuid } = found;
  let hold = held;
  let fence = found.lock_fence;
  let noted = EMPTY_WRITE;
  let unannounced: readonly (() => void)[] = [];
  /** A statement that reserves the node failed without an answer of the database, which may have run it. */
  let mayBeReserved = false;
  const writeHeld = async ({ nodes }: Store, write: NodeWrite, release: boolean): Promise<NodeRecord> => {
    if (hold !== 'free') return nodes.writeLocked(self.node, fence, write, release);
    const now = await nodes.reserveUnchanged(self.node, host, write, release).catch((error: unknown) => {
      mayBeReserved ||= isDatabaseDown(error);
      throw error;
    });
    if (!now) throw new NotUnchanged(uuid);
    return now;
  };
  const written = (now: NodeRecord, release: boolean): void => {
    self.node = now;
    fence = now.lock_fence;
    hold = release ? 'ended' : 'reserved';
  };
  const beforeCall = (): true | Promise<void> => {
    if (hold === 'ended') return Promise.reject(new LockLost(uuid));
    if (unannounced.length === 0) return isHeld();
    return self.put(EMPTY_WRITE).then(async () => void (await isHeld()));
  };
  let reserving: Promise<void> | undefined;
  const stillHeld = (): true | Promise<void> => {
    if (hold !== 'free') return beforeCall();
    reserving ??= writeHeld(store, EMPTY_WRITE, false).then((now) => written(now, false));
    return reserving.then(async () => void (await beforeCall()));
  };
  const self: HeldNode = {
    node: found,
    checks: { stillHeld, beforeCall },
    note: (given, announce) => {
      const write = withMaintenanceBeneath(self.node, given);
      noted = mergeWrites(noted, write);
      self.node = applyWrite(self.node, write);
      if (announce) unannounced = [...unannounced, announce];
    },
    discardNotes: async () => {
      noted = EMPTY_WRITE;
      unannounced = [];
      self.node = await store.nodes.find(uuid);
    },
    put: async (write, also, release = false) => {
      if (hold === 'read') throw new Error('a shared task may not write');
      // The process holds the node in memory, so that no other work of this host has made this reservation.
      if (release && hold === 'free' && mayBeReserved) return store.nodes.release(uuid, fence + 1, host);
      const whole = withQuotesBounded(mergeWrites(noted, withMaintenanceBeneath(self.node, write)));
      if (isEmptyWrite(whole) && !also && (!release || hold !== 'reserved')) return;
      if (hold === 'ended') throw new Error('the reservation of the node has ended: nothing can be written');
      try {
        const now = await (also
          ? store.transaction(async (inner) => {
              await also(inner);
              return writeHeld(inner, whole, release);
            })
          : writeHeld(store, whole, release));
        written(now, release);
        noted = EMPTY_WRITE;
        const announced = unannounced;
        unannounced = [];
        for (const announce of announced) announce();
      } catch (error) {
        if (error instanceof Fault && error.name === 'TooLarge' && !isStateOnly(noted)) {
          // They must not prevent the writes after them: that of a failure, and the end of the reservation.
          log().error('noted values of the node are dropped: they are too large', { reason: error.message });
          noted = stateOnly(noted);
          self.node = applyWrite(await store.nodes.find(uuid), noted);
          return self.put(write, also, release);
        }
        if (error instanceof NotUnchanged || !(error instanceof Fault && error.name === 'NodeLocked')) throw error;
        metrics.count('bloomery_locks_lost_total', {});
        throw new LockLost(uuid);
      }
    },
  };
  return self;
}

/** The step that a failure ends; undefined: no step runs. */
const runningStep = ({ clean_step: clean, deploy_step: deploy, service_step: service }: NodeRecord): string | undefined =>
  [clean, deploy, service].find((step) => typeof step?.['step'] === 'string')?.['step'] as string | undefined;
/** Where an event leads: what to write, and what to call with the node when it is written. */
function moveOf({ context, node, log }: NodeTask, event: Event, changes: NodeChanges, internal: InternalChanges) {
  const { uuid, provision_state: from } = node;
  const { to, target } = transition(node, event);
  const entry = event === 'fail' && changes.last_error ? entryOf(context, node, failureOf(context, node, changes.last_error)) : undefined;
  const moved = { provision_state: to, target_provision_state: target, provision_updated_at: timestamp(context.clock.now()) };
  const isOver = stateRow(to).flow === undefined && node.driver_internal_info.flow_requester !== undefined;
  const left = isOver ? { flow_requester: undefined, ...internal } : internal;
  const write: NodeWrite = { changes: { ...moved, ...changes }, internal: left, history: entry ? [entry] : [] };
  const announce = (after: NodeRecord): void => {
    // Otherwise the check would reserve the node in vain.
    if (!isWaiting(to) && stateRow(to).working !== true) context.heartbeats.forget(uuid);
    recordTransitionMetrics(context, uuid, from, event, to);
    notifyProvision(context, node, after, event);
    const said = `node ${after.name ?? uuid}: ${from} → ${to} (${event})`;
    if (event === 'fail') log.error(said, { step: runningStep(node), last_error: after.last_error });
    else log.info(said, { last_error: after.last_error });
  };
  return { write, announce };
}

function taskWith(given: Context, found: NodeRecord, itsPorts: readonly PortRecord[], held: Hold, term: number): NodeTask {
  let retriesDatabase = false;
  const store = retryingStore(given.store, (ask) => (retriesDatabase ? retryWhileDatabaseDown(task, ask) : ask()));
  const context: Context = { ...given, store };
  const { uuid } = found;
  let ports = itsPorts;
  let driver: { readonly of: NodeRecord; readonly made: Driver } | undefined;
  const isHeld = heldDuring(context, uuid, term, () => (retriesDatabase ? (work) => retryWhileDatabaseDown(task, work) : undefined));
  const own = heldNode(context, found, held, isHeld, () => task.log);
  const { put } = own;
  const fire = async (release: boolean, ...[event, changes = {}, internal = {}, also]: Parameters<NodeTask['fire']>): Promise<void> => {
    const { write, announce } = moveOf(task, event, changes, internal);
    await put(write, also, release);
    announce(own.node);
  };
  const task: NodeTask = {
    ...surroundings(context, uuid, held === 'read' ? undefined : own.checks),
    get node() {
      return own.node;
    },
    get ports() {
      return ports;
    },
    get caller() {
      return callerOf(context.origin, own.node.driver_internal_info.flow_requester);
    },
    get driver() {
      // Made at first use: requests that need no driver work on a node whose driver is disabled.
      if (!driver || !sameDriver(driver.of, own.node)) driver = { of: own.node, made: context.hardware.driverOf(own.node) };
      return driver.made;
    },
    save: (changes) => put({ ...EMPTY_WRITE, changes }),
    portgroups: () => store.portgroups.list({ where: { node_uuid: uuid } }),
    ...portWrites(uuid, { put: (also) => put(EMPTY_WRITE, also), ports: () => ports, keep: (changed) => (ports = changed) }),
    saveInternal: async (internal, when = 'now') => (when === 'now' ? put({ ...EMPTY_WRITE, internal }) : task.note({}, internal)),
    reportProgress: (kind, step, percent, bytes) =>
      store.events.add(own.node, 'progress', progressOf(own.node, kind, step, percent, bytes)),
    note: (changes, internal = {}, history = []) => own.note({ changes, internal, history }),
    write: (changes, internal, also) => put({ changes, internal, history: [] }, also),
    saveBiosSettings: (settings) => task.write({}, {}, (inner) => replaceBiosSettings(inner, uuid, settings)),
    saveFirmwareComponents: (components) => task.write({}, {}, (inner) => putFirmwareComponents(inner, uuid, components)),
    recorderData: () => recorderData(context, own.node),
    residentAgent: () => store.residentAgents.find(uuid),
    recordBoot: (boot) => recordBoot(task, boot),
    fire: (...event) => fire(false, ...event),
    end: (...event) => fire(true, ...event),
    fireWithNext: (event, changes = {}, internal = {}) => {
      const { write, announce } = moveOf(task, event, changes, internal);
      const moved = applyWrite(own.node, write);
      own.note(write, () => announce(moved));
    },
    record: ({ type, event, error }, changes = {}, internal = {}) => {
      const entry = entryOf(context, own.node, { type, event, error });
      if (error) task.log.error(event);
      return put({ changes: error ? { last_error: event, ...changes } : changes, internal, history: entry ? [entry] : [] });
    },
    discardNotes: own.discardNotes,
    release: () => put(EMPTY_WRITE, undefined, true),
    enableDatabaseRetries: () => {
      retriesDatabase = true;
    },
    refresh: async () => {
      await put(EMPTY_WRITE);
      own.node = await store.nodes.find(uuid);
      ports = await store.ports.ofNode(uuid);
    },
    certifyErasure: (report) => certifyErasure(task, report),
    withNode: (other, request, work) => withTask(context, other, request, work),
    power: (target: Power, timeoutSeconds?: number) => changePower(task, target, timeoutSeconds),
  };
  return task;
}

/** Retries work that throws NodeLocked, as the options say. */
async function whenFree<T>(context: Context, uuid: string, isRetried: boolean, work: () => Promise<T>): Promise<T> {
  const { locks, options, host, signal, caller, metrics } = context;
  const until = caller ? AbortSignal.any([signal, caller]) : signal;
  const tries = isRetried ? Math.max(1, options['conductor.node_locked_retry_attempts']) : 1;
  const took = metrics.timer();
  const attempt = async (tried: number): Promise<T> => {
    if (signal.aborted) throw new Fault('TemporaryFailure', { message: 'The conductor is stopping.' });
    // The caller may have sent the request to another conductor since: it must not run late.
    if (caller?.aborted) throw new Fault('TemporaryFailure', { message: 'The caller is gone.' });
    if (locks.has(uuid)) throw new Fault('NodeLocked', { node: uuid, host });
    const had = await work();
    if (tried > 1) metrics.observe('bloomery_lock_wait_seconds', { outcome: 'had' }, took());
    return had;
  };
  const clock = { sleep: (milliseconds: number) => locks.wait(uuid, milliseconds, until) };
  return retry({ clock }, attempt, (error, tried) => {
    if (!(error instanceof Fault) || error.name !== 'NodeLocked') return undefined;
    metrics.count('bloomery_lock_conflicts_total', {});
    if (tried < tries) return options['conductor.node_locked_retry_interval'] * 1000;
    if (isRetried) metrics.observe('bloomery_lock_wait_seconds', { outcome: 'refused' }, took());
    return undefined;
  });
}

/** The context of work that runs to its end even if its caller does not wait any more. */
const withoutCaller = (context: Context): Context => (context.caller ? { ...context, caller: undefined } : context);

const reserve = (context: Context, uuid: string, { retry: isRetried = false, unreserved, internal }: TaskRequest): Promise<NodeTask> =>
  whenFree(context, uuid, isRetried, async () => {
    const { locks, host, store } = context;
    locks.add(uuid);
    // Read before the reservation, so that a lease that ends in between ends the task.
    const { term } = context.lease;
    try {
      const found = unreserved && (unreserved.read ?? (await store.nodes.find(uuid)));
      if (found?.reservation === null) return taskWith(withoutCaller(context), found, await store.ports.ofNode(found.uuid), 'free', term);
      const reserved = await store.nodes.reserve(uuid, host, internal);
      try {
        return await taskOf(withoutCaller(context), reserved, true, term);
      } catch (error) {
        await store.nodes.release(uuid, reserved.lock_fence).catch(() => {});
        throw error;
      }
    } catch (error) {
      locks.remove(uuid);
      throw error;
    }
  });

/** Attempts at a change. An attempt fails if other work writes the node between the read and the write. */
const CHANGE_TRIES = 10;
/**
 * Changes a node without a reservation, in one conditional statement: the row must be as `decide` read it, and not reserved. For changes
 * that need no machine. Retried like a reservation. Throws NodeLocked, NodeNotFound.
 * @param also writes more in the same transaction
 * @param read the node as the request has read it, for the first attempt
 */
export const changeUnlocked = (
  context: Context,
  uuid: string,
  decide: (node: NodeRecord) => Promise<NodeChanges>,
  {
    also,
    read,
  }: {
    readonly also?: (node: NodeRecord, changes: NodeChanges) => ((store: Store) => Promise<void>) | undefined;
    readonly read?: NodeRecord | undefined;
  } = {},
): Promise<NodeRecord> => {
  let known = read?.reservation === null ? read : undefined;
  return whenFree(context, uuid, true, async () => {
    const { store } = context;
    for (let tried = 0; tried < CHANGE_TRIES; tried++) {
      const node = known ?? (await store.nodes.find(uuid));
      known = undefined;
      if (node.reservation !== null) throw new Fault('NodeLocked', { node: uuid, host: node.reservation });
      const changes = beneath(node, await decide(node));
      const write = ({ nodes }: Store) => nodes.updateUnlocked(uuid, changes, node.revision);
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
};

const isGone = (error: unknown): boolean => error instanceof LockLost || (error instanceof Fault && error.name === 'NodeNotFound');
/** Ends the reservation. Noted changes that cannot be written are dropped, and the log says so: they must not keep the node reserved. */
async function releaseWithNotes(context: Context, task: NodeTask): Promise<void> {
  try {
    await task.release();
  } catch (error) {
    if (isGone(error) || isInterrupted(context, error)) throw error;
    const { uuid, name } = task.node;
    task.log.error(`changes of node ${name ?? uuid} are dropped, since they cannot be written`, { reason: reasonOf(error) });
    await task.discardNotes();
    await task.release();
  }
}

/** If the database is unreachable, the reservation ends in the background: the caller does not wait for it. */
async function release(context: Context, task: NodeTask): Promise<void> {
  const { uuid } = task.node;
  const ended = (): void => context.locks.remove(uuid);
  const failed = (error: unknown): void => {
    // The periodic check of stray reservations (recovery.ts) ends the reservation.
    if (!isGone(error)) task.log.error('the reservation could not be ended', { reason: reasonOf(error) });
  };
  try {
    await releaseWithNotes(context, task);
  } catch (error) {
    if (isDatabaseDown(error) && !context.signal.aborted) {
      void retryWhileDatabaseDown(task, () => releaseWithNotes(context, task))
        .catch(failed)
        .finally(ended);
      return;
    }
    failed(error);
  }
  ended();
}

/** Holds the node while `work` runs. Throws NodeLocked, NodeNotFound. */
export async function withTask<T>(context: Context, uuid: string, request: TaskRequest, work: (task: NodeTask) => Promise<T>): Promise<T> {
  if (request.lock === 'shared') return work(await taskOf(context, await context.store.nodes.find(uuid), false));
  const task = await reserve(context, uuid, request);
  try {
    return await work(task);
  } finally {
    await release(context, task);
  }
}

/** Reserves the node and runs `first`. */
async function begin<T>(
  context: Context,
  uuid: string,
  request: TaskRequest,
  first: (task: NodeTask) => Promise<T>,
): Promise<{ readonly task: NodeTask; readonly work: T }> {
  const task = await reserve(context, uuid, request);
  try {
    return { task, work: await first(task) };
  } catch (error) {
    // A node that changed since it was read may be worth another error, or none.
    const again =
      error instanceof NotUnchanged ||
      (request.unreserved !== undefined &&
        task.node.reservation === null &&
        // The event may have been written all the same.
        !isDatabaseDown(error) &&
        (await hasChanged(context, task)));
    await release(context, task);
    if (!again) throw error;
    return begin(context, uuid, { ...request, unreserved: undefined }, first);
  }
}
const hasChanged = ({ store }: Context, { node: { uuid, revision } }: NodeTask): Promise<boolean> =>
  store.nodes.find(uuid).then(
    (now) => now.revision !== revision || now.reservation !== null,
    () => true,
  );

/**
 * Returns when `first` is over (the API answers 202). The work that `first` returned runs afterwards, under the same lock.
 * Throws NoFreeConductorWorker before anything is changed.
 */
export async function startTask(
  context: Context,
  uuid: string,
  request: TaskRequest,
  first: (task: NodeTask) => Promise<(() => Promise<void>) | undefined>,
): Promise<void> {
  const worker: ReservedWorker = context.workers.take(request.ordinary);
  try {
    const { task, work } = await begin(context, uuid, request, first);
    if (!work) {
      await release(context, task);
      return;
    }
    const rest = work;
    task.enableDatabaseRetries();
    worker.run(async () => {
      try {
        await rest();
      } catch (error) {
        if (isInterrupted(context, error)) task.log.warn(`${request.purpose}: the node is left as it is`, { reason: reasonOf(error) });
        else task.log.error(`${request.purpose} of node ${task.node.name ?? uuid} failed`, { reason: reasonOf(error), error });
      } finally {
        await release(context, task);
      }
    });
  } finally {
    worker.giveBack();
  }
}
