/** POST /v1/introspection/<node>, its abort, and the end of those whose machine never reported. */
import { bmcAddresses, kernelParameters } from '../../drivers/agent-inspect';
import { setBootDevice } from '../../drivers/boot-settings';
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { INTROSPECTION_EVENTS, type IntrospectionRecord } from '../../model/introspection';
import type { Context } from '../context';
import { mustLeave, startTask, withTask, type Held } from '../task';
import { validateInterface } from '../validate';
import { cached, checkProvisionState, end, move, powerOff, refused, unprepare } from './cache';

const purpose = 'introspection';

async function validatePower(task: Held): Promise<void> {
  try {
    await validateInterface(task, 'power');
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const why = `Validation failed for required interfaces of node ${task.node.uuid}: power (${error.message})`;
    throw refused(`Failed validation of power interface: ${why}`);
  }
}

/** Whether the boot interface can boot the ramdisk; else whatever the network boots is expected to be one. */
async function bootsRamdisk(task: Held): Promise<boolean> {
  const { boot } = task.driver;
  if (!boot.validateInspection) return false;
  try {
    await boot.validateInspection(task);
    return true;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    task.log.debug('The boot interface cannot boot the ramdisk for introspection', { reason: error.message });
    return false;
  }
}
async function boot(task: Held, { node_uuid: uuid }: IntrospectionRecord): Promise<void> {
  const { context, options } = task;
  const failing = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (mustLeave(context, error)) throw error;
      throw refused(`${what}: ${reasonOf(error)}`);
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

/** From `starting` to `waiting`. Throws what made an error of it. */
async function begin(context: Context, record: IntrospectionRecord): Promise<void> {
  const { node_uuid: uuid, macs, bmc_addresses: addresses, manage_boot: manages } = record;
  try {
    if (macs.length + addresses.length === 0)
      throw refused(
        "No lookup attributes were found, inspector won't be able to find it after introspection, consider creating ironic ports or providing an IPMI address",
      );
    if (manages) await withTask(context, uuid, { purpose, retry: true }, (task) => boot(task, record));
    await move(context, uuid, 'wait', { state: 'waiting' });
  } catch (error) {
    // It ends by its timeout.
    if (mustLeave(context, error)) throw error;
    await end(context, uuid, reasonOf(error));
    throw error;
  }
}

/** Returns when accepted, and without managed boot when it waits for its report. Throws Invalid. */
export async function startIntrospection(context: Context, uuid: string, manageBoot: boolean): Promise<void> {
  const { store, clock, log } = context;
  const place = context.workers.take();
  try {
    const record = await withTask(context, uuid, { purpose, lock: 'shared' }, async (task) => {
      checkProvisionState(task.node);
      if (manageBoot) await validatePower(task);
      const begun = {
        node_uuid: uuid,
        started_at: timestamp(clock.now()),
        manage_boot: manageBoot,
        macs: task.ports.map(({ address }) => address),
        bmc_addresses: await bmcAddresses(task.node, task),
      };
      const started = await store.introspections.start(begun, INTROSPECTION_EVENTS.start);
      if (started) return started;
      const { state } = await cached(context, uuid);
      throw refused(`Can not transition from state '${state}' on event 'start' (no defined transition)`);
    });
    if (!manageBoot) await begin(context, record);
    else
      place.run(() =>
        begin(context, record).catch((error: unknown) => log.warn('introspection not started', { node: uuid, reason: reasonOf(error) })),
      );
  } finally {
    place.giveBack();
  }
}

/** Returns when accepted: where there is nothing to abort, nothing is done. Throws NotFound, Conflict. */
export async function abortIntrospection(context: Context, uuid: string): Promise<void> {
  await cached(context, uuid);
  try {
    await startTask(context, uuid, { purpose }, async (task) => {
      const record = await move(context, uuid, 'abort', { state: 'aborting' });
      if (!record) return undefined;
      return async () => {
        if (record.manage_boot)
          await powerOff(task).catch((error: unknown) => {
            if (mustLeave(context, error)) throw error;
            task.log.warn('the machine cannot be powered off', { reason: reasonOf(error) });
          });
        await unprepare(task, record);
        await end(context, uuid, 'Canceled by operator');
      };
    });
  } catch (error) {
    if (error instanceof Fault && error.name === 'NodeLocked')
      throw new Fault('Conflict', { message: 'Node is locked, please, retry later' });
    throw error;
  }
}

/** [DEFAULT]timeout; a node that somebody holds is looked at again in the next round. Answers how many ended. */
export async function endLateIntrospections(context: Context): Promise<number> {
  const { store, clock, options, log } = context;
  const limit = options['DEFAULT.timeout'];
  if (limit <= 0) return 0;
  const moment = timestamp(clock.now() - limit * 1000);
  const late = await store.introspections.startedBefore(moment);
  for (const record of late) {
    const { node_uuid: uuid } = record;
    try {
      await withTask(context, uuid, { purpose: 'timeout of an introspection' }, async (task) => {
        const now = await store.introspections.find(uuid);
        if (!now || now.finished_at !== null || now.started_at !== record.started_at) return;
        await unprepare(task, now);
        await end(context, uuid, 'Introspection timeout');
      });
    } catch (error) {
      if (context.signal.aborted) throw error;
      log.warn('the introspection of a node is late, and the node is held', { node: uuid, reason: reasonOf(error) });
    }
  }
  return late.length;
}
