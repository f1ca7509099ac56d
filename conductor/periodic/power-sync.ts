/** Synchronises the power states in the database with those of the machines. */
import { systemSignals } from '../../drivers/common/health-signals';
import { Fault, reasonOf } from '../../model/errors';
import { outageOf, ownMaintenance } from '../../model/rules/out-of-service';
import type { NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import type { Context } from '../core/context';
import { beginHealthRound, observeHealth } from '../core/health';
import { differsFromRow, saveReading, readMachine, type MachineReading } from '../core/machine-reading';
import { notifyCorrected } from '../core/notify';
import { forgetAgent } from '../core/power';
import { ownNodesOf } from '../core/on-nodes';
import { inParallel } from '../runtime/parallel';
import { sharedTaskOf, withTask } from '../core/task';
import { isDeferred, type InternalChanges } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { validateInterface } from '../core/validate';

/** A node that is out of service with a power failure waits for the recovery. */
const allowsSync = (node: NodeRecord): boolean => !node.maintenance || (outageOf(node) !== undefined && node.fault !== 'power failure');
/** Whether no other work changes the node's power, and its state allows synchronisation. */
const isSynchronised = (node: NodeRecord): boolean =>
  allowsSync(node) &&
  node.reservation === null &&
  node.target_power_state === null &&
  !stateRow(node.provision_state).skipPowerSync &&
  !isDeferred('power sync', node.driver_internal_info);

/**
 * Whether `last_error` is out of date once the BMC has answered; the node history keeps it. The error of a failed state is the reason why
 * the node is in this state, whatever the BMC says.
 */
const hasOldError = ({ options }: Context, { last_error: error, provision_state: state }: NodeRecord): boolean =>
  error !== null && options['conductor.node_history'] && !stateRow(state).failed;
/**
 * A machine that somebody switched off runs no agent any more, also when it is on again. While the agent works for a flow, the flow decides:
 * some BMCs report `off` during a reboot.
 */
const forgottenWith = (task: NodeTask, actual: NodeRecord['power_state']): InternalChanges =>
  actual === 'power off' && stateRow(task.node.provision_state).stable ? forgetAgent(task) : {};

/** Consecutive failures of each node. */
export type SyncFailures = Map<string, number>;

/** This conductor's nodes, read on demand. Nodes that failed before come first, so that their retries end soon. */
async function* nodesToCheck(context: Context, failures: SyncFailures): AsyncGenerator<NodeRecord> {
  const { nodes } = context.store;
  const all = { powerSynchronised: true, children: 'all' } as const;
  const before = new Map(failures);
  const failed = await context.ownNodes(await nodes.list({ ...all, where: { uuid: [...before.keys()] } }));
  for (const uuid of before.keys()) if (!failed.some((node) => node.uuid === uuid)) failures.delete(uuid);
  yield* [...failed].filter(isSynchronised).sort((a, b) => before.get(b.uuid)! - before.get(a.uuid)!);
  yield* ownNodesOf(context, all, (node) => !before.has(node.uuid) && isSynchronised(node));
}

/** Returns how many nodes it checked. */
export async function synchronisePower(context: Context, failures: SyncFailures): Promise<number> {
  const { options, signal } = context;
  await beginHealthRound(context);
  let count = 0;
  const nodes = nodesToCheck(context, failures);
  await inParallel(nodes, options['conductor.sync_power_state_workers'], signal, async (node) => {
    count++;
    try {
      await synchronise(context, node, failures);
    } catch (error) {
      // The node was locked or removed meanwhile.
      if (!isInterrupted(context, error) && !(error instanceof Fault && ['NodeLocked', 'NodeNotFound'].includes(error.name)))
        context.log.warn(`power synchronisation of node ${node.uuid} failed`, { reason: reasonOf(error) });
    }
  });
  return count;
}

async function synchronise(context: Context, node: NodeRecord, failures: SyncFailures): Promise<void> {
  const sharedTask = sharedTaskOf(context, node);
  if (sharedTask.driver.power.throughAgent) return;
  if (node.power_state === null && !(await isValid(sharedTask))) return;
  const count = (failures.get(node.uuid) ?? 0) + 1;
  const givesUp = count > context.options['conductor.power_state_sync_max_retries'];
  const purpose = 'power state sync';
  let observed: MachineReading;
  try {
    observed = await context.bmcTurns.alone(node.uuid, context.signal, () => readMachine(sharedTask));
  } catch (error) {
    if (context.signal.aborted) return;
    failures.set(node.uuid, count);
    // A maintenance beneath stays as it is, so that nothing but the count says that this failure is known.
    if (givesUp && outageOf(node) && count > context.options['conductor.power_state_sync_max_retries'] + 1) return;
    if (givesUp) return withTask(context, node.uuid, { purpose }, (task) => giveUp(task, null, reasonOf(error)));
    sharedTask.log.warn(`could not read the power state, attempt ${count}`, { reason: reasonOf(error) });
    return;
  }
  const { power: actual } = observed;
  if (context.options['conductor.enable_health_monitoring']) await observeHealth(context, node, systemSignals(observed));
  const isRight = actual === node.power_state;
  if (isRight) failures.delete(node.uuid);
  if (isRight && !hasOldError(context, node) && !differsFromRow(context, node, observed)) return;
  await withTask(context, node.uuid, { purpose }, async (task) => {
    if (!isSynchronised({ ...task.node, reservation: null })) return;
    await saveReading(task, observed);
    const { power_state: known, disable_power_off: stays } = task.node;
    if (actual === known) {
      failures.delete(node.uuid);
      if (hasOldError(context, task.node)) await task.save({ last_error: null });
      return;
    }
    if (known === null) {
      failures.delete(node.uuid);
      await task.write(
        { power_state: actual, ...(hasOldError(context, task.node) ? { last_error: null } : {}) },
        forgottenWith(task, actual),
      );
      notifyCorrected(task, null);
      return;
    }
    failures.set(node.uuid, count);
    if (givesUp) return giveUp(task, actual);
    // A person may work at a machine that is out of service: the server does not switch it.
    const isForced = context.options['conductor.force_power_state_during_sync'] && !outageOf(task.node);
    if (!isForced || stays || known === 'error' || actual === null) {
      task.log.warn(`the machine's power state is ${actual}, not ${known}: updated the node`);
      await task.write({ power_state: actual }, forgottenWith(task, actual));
      notifyCorrected(task, known);
      return;
    }
    task.log.warn(`the machine's power state is ${actual}, not ${known}: changing it back, attempt ${count}`);
    await task.power(known).catch((error: unknown) => task.log.error('changing the power state back failed', { reason: reasonOf(error) }));
  });
}

const isValid = (task: NodeTask): Promise<boolean> =>
  validateInterface(task, 'power').then(
    () => true,
    () => false,
  );

/** Puts the node in maintenance until its BMC answers again. */
async function giveUp(task: NodeTask, actual: NodeRecord['power_state'], why?: string): Promise<void> {
  const { uuid, power_state: known } = task.node;
  const { maintenance } = ownMaintenance(task.node);
  const shown = actual ?? 'None';
  const text =
    `During sync_power_state, max retries exceeded for node ${uuid}, node state ${shown} does not match expected state '${known ?? 'None'}'. ` +
    `Updating DB state to '${shown}' Switching node to maintenance mode.${why === undefined ? '' : ` Error: ${why}`}`;
  const fault = maintenance ? {} : { maintenance: true, maintenance_reason: text, fault: 'power failure' };
  // The reason of a failed state stays; maintenance_reason has this one.
  const kept = stateRow(task.node.provision_state).failed && task.node.last_error !== null ? { last_error: task.node.last_error } : {};
  await task.record(
    { type: 'monitoring', event: text, error: true },
    { power_state: actual, ...fault, ...kept },
    forgottenWith(task, actual),
  );
  notifyCorrected(task, known);
}

/** Checks the nodes that are in maintenance because of a power failure. An answer of the BMC ends the maintenance. */
export async function recoverPowerFailures(context: Context, failures: SyncFailures): Promise<number> {
  const { options, signal } = context;
  const filter = { where: { fault: 'power failure', maintenance: true }, reserved: false } as const;
  const nodes = ownNodesOf(context, filter, (node) => node.target_power_state === null && node.provision_state !== 'enroll');
  let count = 0;
  await inParallel(nodes, options['conductor.sync_power_state_workers'], signal, async (node) => {
    count++;
    try {
      const sharedTask = sharedTaskOf(context, node);
      await validateInterface(sharedTask, 'power');
      const actual = await sharedTask.driver.power.get(sharedTask);
      if (actual === null) return;
      await withTask(context, node.uuid, { purpose: 'power failure recovery' }, async (task) => {
        if (task.node.fault !== 'power failure') return;
        const { power_state: known } = task.node;
        await task.write({ power_state: actual, maintenance: false, maintenance_reason: null, fault: null }, forgottenWith(task, actual));
        notifyCorrected(task, known);
        failures.delete(node.uuid);
        task.log.info('the BMC answers again: maintenance ended');
      });
    } catch (error) {
      context.log.debug(`node ${node.uuid} is still not reachable`, { reason: reasonOf(error) });
    }
  });
  return count;
}
