/**
 * Allocations: assigns a node to each, or records why none was found. The work may run twice (after a restart, on two conductors). So the
 * result is only written while the allocation is in `allocating`.
 */
import { waitUntil } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { repr } from '../../model/python';
import type { AllocationRecord, NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import type { Store } from '../../store/store';
import type { NewAllocation } from '../core/call-types';
import type { Context } from '../core/context';
import { inParallel } from '../runtime/parallel';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { LockLost } from '../core/interruption';

const isFault = (error: unknown, ...names: readonly string[]): boolean => error instanceof Fault && names.includes(error.name);
const allocationFailed = (uuid: string, error: string): Fault => new Fault('AllocationFailed', { uuid, error });
const hasTraits = (node: Pick<NodeRecord, 'traits'>, { traits }: Pick<AllocationRecord, 'traits'>): boolean =>
  traits.every((trait) => node.traits.includes(trait));

/** In random order, so that concurrent allocations do not compete for the same nodes. */
function shuffled<T>(items: readonly T[], random: (bytes: number) => Buffer): T[] {
  const mixed = [...items];
  for (let index = mixed.length - 1; index > 0; index--) {
    const other = random(4).readUInt32BE() % (index + 1);
    [mixed[index], mixed[other]] = [mixed[other]!, mixed[index]!];
  }
  return mixed;
}

/** Throws AllocationFailed. A node with the allocation's name comes first. */
async function candidates({ store, random }: Context, allocation: AllocationRecord): Promise<readonly Pick<NodeRecord, 'uuid'>[]> {
  const { uuid, name, resource_class: resourceClass, candidate_nodes: named, traits, owner } = allocation;
  const free = await store.nodes.listColumns(['uuid', 'name', 'power_state', 'traits'], {
    where: {
      resource_class: resourceClass,
      provision_state: 'available',
      maintenance: false,
      ...(named.length > 0 ? { uuid: named } : {}),
    },
    associated: false,
    project: owner || undefined,
  });
  const available = free.filter(({ power_state: power }) => power !== null);
  const match = `match the resource class ${resourceClass}`;
  if (available.length === 0)
    throw allocationFailed(
      uuid,
      named.length > 0 ? `none of the requested nodes are available and ${match}` : `no available nodes ${match}`,
    );
  const suitable = available.filter((node) => hasTraits(node, allocation));
  if (suitable.length === 0) throw allocationFailed(uuid, `no suitable nodes have the requested traits ${[...new Set(traits)].join(', ')}`);
  const mixed = shuffled(suitable, random);
  return name ? [...mixed.filter((node) => node.name === name), ...mixed.filter((node) => node.name !== name)] : mixed;
}

/** Changes to the node that gets the allocation. */
const nodeChangesOf = (node: NodeRecord, { uuid, traits }: Pick<AllocationRecord, 'uuid' | 'traits'>) => ({
  instance_uuid: uuid,
  allocation_uuid: uuid,
  instance_info: { ...node.instance_info, traits },
});

/** Assigns the node, unless it is locked or does not match any more. */
async function tryNode(context: Context, allocation: AllocationRecord, uuid: string): Promise<'taken' | 'locked' | 'changed'> {
  try {
    return await withTask(context, uuid, { purpose: 'allocating' }, async (task) => {
      const { node } = task;
      const fits =
        !node.maintenance &&
        node.instance_uuid === null &&
        node.provision_state === 'available' &&
        node.resource_class === allocation.resource_class &&
        hasTraits(node, allocation);
      if (!fits) return 'changed';
      await task.write(nodeChangesOf(node, allocation), {}, async ({ allocations }) => {
        await allocations.update(allocation.uuid, { node_uuid: uuid, state: 'active' }, { state: 'allocating' });
      });
      return 'taken';
    });
  } catch (error) {
    if (isFault(error, 'NodeLocked') || error instanceof LockLost) return 'locked';
    if (isFault(error, 'NodeNotFound')) return 'changed';
    throw error;
  }
}

/** Tries the nodes in order, and the locked ones again after a pause. Throws AllocationFailed. */
async function assignNode(context: Context, allocation: AllocationRecord): Promise<void> {
  const { options, clock, signal } = context;
  const attempts = Math.max(1, options['conductor.node_locked_retry_attempts']);
  let nodes = (await candidates(context, allocation)).map(({ uuid }) => uuid);
  const isAssigned = async (): Promise<boolean> => {
    const locked: string[] = [];
    for (const uuid of nodes) {
      const result = await tryNode(context, allocation, uuid);
      if (result === 'taken') return true;
      if (result === 'locked') locked.push(uuid);
    }
    if (locked.length === 0) throw allocationFailed(allocation.uuid, 'all nodes were filtered out during reservation');
    nodes = locked;
    return false;
  };
  const pauseAfter = (tries: number): number | undefined =>
    tries < attempts ? options['conductor.node_locked_retry_interval'] * 1000 : undefined;
  if (!(await waitUntil({ clock, signal }, isAssigned, pauseAfter)))
    throw allocationFailed(allocation.uuid, `could not reserve any of ${nodes.length} suitable nodes`);
}

/** Runs until the allocation is active or has failed. */
async function allocate(context: Context, allocation: AllocationRecord): Promise<void> {
  const { store, log, signal } = context;
  const { uuid } = allocation;
  try {
    await assignNode(context, allocation);
    log.info(`allocation ${uuid} is active`);
  } catch (error) {
    // The allocation was removed or finished elsewhere, or a later run continues with it.
    if (signal.aborted || isFault(error, 'TemporaryFailure', 'AllocationNotFound')) return;
    const reason = isFault(error, 'AllocationFailed') ? reasonOf(error) : `Unexpected exception during allocation: ${reasonOf(error)}`;
    log.warn(`allocation ${uuid} failed`, { reason });
    await store.allocations
      .update(uuid, { node_uuid: null, state: 'error', last_error: reason }, { state: 'allocating' })
      .catch((failure: unknown) => {
        if (!isFault(failure, 'TemporaryFailure', 'AllocationNotFound')) throw failure;
      });
  }
}

/** Allocations that wait for a node. @param older minimum age in seconds; younger ones are still being processed */
export async function unfinishedAllocations(context: Context, older: number): Promise<readonly AllocationRecord[]> {
  const waiting = await context.store.allocations.list({ where: { state: 'allocating' } });
  const old = waiting.filter(({ created_at: created }) => context.clock.now() - Date.parse(created) >= older * 1000);
  const mine = await Promise.all(old.map(({ uuid }) => context.isOwnWork(uuid)));
  return old.filter((_, index) => mine[index]);
}
const PARALLEL = 4;
export const finishAllocations = (context: Context, unfinished: readonly AllocationRecord[]): Promise<void> =>
  inParallel(unfinished, PARALLEL, context.signal, (allocation) => allocate(context, allocation));

/** Assigns a node that is in use already, after checking that it matches. Both rows are written in one transaction. */
async function backfill(context: Context, allocation: NewAllocation, uuid: string): Promise<AllocationRecord> {
  return withTask(context, uuid, { purpose: 'allocation backfilling', retry: true }, async (task) => {
    const { node } = task;
    const { traits = [], resource_class: wanted, candidate_nodes: named = [] } = allocation;
    const errors = [
      node.provision_state !== 'active' && `Node must be in the "active" state, but the current state is "${node.provision_state}"`,
      wanted &&
        node.resource_class !== wanted &&
        `Resource class ${node.resource_class} does not match the requested resource class ${wanted}`,
      !hasTraits(node, { traits }) && `List of traits ${repr(node.traits)} does not match the requested traits ${repr(traits)}`,
      named.length > 0 && !named.includes(node.uuid) && `Candidate nodes must be empty or contain the target node, but got ${repr(named)}`,
    ].filter((error) => typeof error === 'string');
    if (errors.length > 0)
      throw allocationFailed(allocation.uuid, `Cannot backfill an allocation for node ${node.uuid}: ${errors.join('; ')}`);
    if (node.instance_uuid !== null && node.instance_uuid !== allocation.uuid)
      throw new Fault('NodeAssociated', { node: node.uuid, instance: node.instance_uuid });
    let made: AllocationRecord | undefined;
    await task.write(nodeChangesOf(node, { traits, uuid: allocation.uuid }), {}, async ({ allocations }) => {
      await allocations.create({ ...allocation, state: 'allocating' });
      made = await allocations.update(allocation.uuid, { node_uuid: node.uuid, state: 'active' });
    });
    return made!;
  });
}

/**
 * Throws AllocationAlreadyExists, AllocationDuplicateName, NoFreeConductorWorker; with a node also AllocationFailed, NodeAssociated,
 * NodeLocked.
 */
export async function createAllocation(context: Context, allocation: NewAllocation, node?: string): Promise<AllocationRecord> {
  if (node !== undefined) return backfill(context, allocation, node);
  const worker = context.workers.take();
  try {
    const made = await context.store.allocations.create({ ...allocation, state: 'allocating' });
    worker.run(() => allocate(context, made));
    return made;
  } finally {
    worker.giveBack();
  }
}

/** Returns the additional write for a node that loses its instance: it removes the allocation. */
export const endAllocation = ({ allocation_uuid: uuid }: NodeRecord) =>
  uuid === null
    ? undefined
    : async ({ allocations }: Store): Promise<void> => {
        await allocations.remove(uuid).catch((error: unknown) => {
          if (!isFault(error, 'AllocationNotFound')) throw error;
        });
      };

function checkFree({ node }: NodeTask, uuid: string): void {
  if (node.maintenance) return;
  const because = `Cannot remove allocation ${uuid} for node ${node.uuid}, because the node is`;
  const { provision_state: state, target_provision_state: target } = node;
  if (target !== null && !stateRow(state).changeable)
    throw new Fault('InvalidState', {
      message: `${because} in state ${state} where updates are not allowed (and maintenance mode is off)`,
    });
  if (state === 'active') throw new Fault('InvalidState', { message: `${because} active (and maintenance mode is off)` });
}

/** Throws AllocationNotFound, NodeLocked, InvalidState. */
export async function deleteAllocation(context: Context, uuid: string): Promise<void> {
  const { allocations } = context.store;
  const { node_uuid: node } = await allocations.find(uuid);
  if (node === null) {
    const gone = await allocations.remove(uuid, { node_uuid: null }).then(
      () => true,
      (error: unknown) => {
        if (isFault(error, 'AllocationNotFound')) return false;
        throw error;
      },
    );
    // It just got a node, or was removed: try again.
    return gone ? undefined : deleteAllocation(context, uuid);
  }
  return withTask(context, node, { purpose: 'allocation deletion', retry: true }, async (task) => {
    checkFree(task, uuid);
    await task.write({ allocation_uuid: null, instance_uuid: null }, {}, (inner) => inner.allocations.remove(uuid));
  });
}
