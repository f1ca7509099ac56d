/** POST /v1/introspection/<node>: boots the machine and waits for its report. */
import { bmcAddresses, kernelParameters } from '../../drivers/agent/inspect';
import { setBootDevice } from '../../drivers/common/boot-settings';
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { INTROSPECTION_EVENTS, type IntrospectionRecord } from '../../model/introspection';
import type { Context } from '../core/context';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { validateInterface } from '../core/validate';
import { findIntrospection, checkProvisionState, endIntrospection, transition, invalidRequest } from './record';

const purpose = 'introspection';

async function validatePower(task: NodeTask): Promise<void> {
  try {
    await validateInterface(task, 'power');
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const why = `Validation failed for required interfaces of node ${task.node.uuid}: power (${error.message})`;
    throw invalidRequest(`Failed validation of power interface: ${why}`);
  }
}

/** Whether the boot interface can boot the ramdisk. If not, the network is expected to boot a ramdisk. */
async function bootsRamdisk(task: NodeTask): Promise<boolean> {
  const { boot } = task.driver;
  if (!boot.validateInspection) return false;
  try {
    await boot.validateInspection(task);
    await task.driver.network.validateInspection?.(task);
    return true;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    task.log.debug('the boot interface cannot boot the ramdisk for introspection', { reason: error.message });
    return false;
  }
}
async function boot(task: NodeTask, { node_uuid: uuid }: IntrospectionRecord): Promise<void> {
  const { context, options } = task;
  const failing = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (isInterrupted(context, error)) throw error;
      throw invalidRequest(`${what}: ${reasonOf(error)}`);
    }
  };
  await failing('Failed to set boot device to PXE', async () => {
    if (!(await bootsRamdisk(task))) return setBootDevice(task, 'pxe', false);
    await context.store.introspections.change(uuid, ['starting'], { boots_ramdisk: true });
    await task.driver.network.addInspectionNetwork(task);
    await task.driver.boot.prepareRamdisk(task, {
      ...kernelParameters(options['inspector.extra_kernel_params']),
      'ipa-inspection-callback-url': context.options['inspector_service.callback_url'],
    });
  });
  await failing('Failed to power on the node, check its power management configuration', () => task.power('rebooting'));
}

/**
 * From `starting` to `waiting`, unless the introspection was started elsewhere or aborted meanwhile. Throws the introspection's error.
 * @param task holds the node's lock; absent if the machine is not to be booted
 */
async function begin(context: Context, uuid: string, task?: NodeTask): Promise<void> {
  const record = await findIntrospection(context, uuid);
  if (record.state !== 'starting') return;
  const { macs, bmc_addresses: addresses, manage_boot: manages } = record;
  if (macs.length + addresses.length === 0)
    throw invalidRequest(
      "No lookup attributes were found, inspector won't be able to find it after introspection, consider creating ironic ports or providing an IPMI address",
    );
  if (task && manages) {
    checkProvisionState(task.node);
    await boot(task, record);
  }
  await transition(context, uuid, 'wait', { state: 'waiting' });
}
/** Runs `work`. A failure ends the introspection with an error and is thrown. */
async function endOnFailure(context: Context, uuid: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // The conductor that takes the node over resumes it.
    if (isInterrupted(context, error)) throw error;
    await endIntrospection(context, uuid, reasonOf(error), ['starting']);
    throw error;
  }
}
/** Resumes an introspection that its conductor left in `starting`. */
export const resumeStart = (task: NodeTask): Promise<void> =>
  endOnFailure(task.context, task.node.uuid, () => begin(task.context, task.node.uuid, task));

/** Returns when accepted; without managed boot, when the introspection waits for its report. Throws Invalid. */
export async function startIntrospection(context: Context, uuid: string, manageBoot: boolean): Promise<void> {
  const { store, clock, log } = context;
  const worker = context.workers.take();
  try {
    await withTask(context, uuid, { purpose, lock: 'shared' }, async (task) => {
      checkProvisionState(task.node);
      if (manageBoot) await validatePower(task);
      const begun = {
        node_uuid: uuid,
        started_at: timestamp(clock.now()),
        manage_boot: manageBoot,
        macs: task.ports.map(({ address }) => address),
        bmc_addresses: await bmcAddresses(task.node, task),
      };
      if (await store.introspections.start(begun, INTROSPECTION_EVENTS.start)) return;
      const { state } = await findIntrospection(context, uuid);
      throw invalidRequest(`Can not transition from state '${state}' on event 'start' (no defined transition)`);
    });
    if (!manageBoot) await endOnFailure(context, uuid, () => begin(context, uuid));
    else
      worker.run(() =>
        endOnFailure(context, uuid, () => withTask(context, uuid, { purpose, retry: true }, (task) => begin(context, uuid, task))).catch(
          (error: unknown) => log.warn('introspection not started', { node: uuid, reason: reasonOf(error) }),
        ),
      );
  } finally {
    worker.giveBack();
  }
}
