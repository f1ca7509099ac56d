/**
 * POST /v1/continue: finds the introspection that a report belongs to, then runs hooks and rules on the report and stores it. Reapply
 * repeats this with stored data.
 */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { IntrospectionRecord } from '../../model/introspection';
import { repr } from '../../model/python';
import type { JsonObject } from '../../model/records';
import type { Context } from '../core/context';
import { runHooks } from '../inspection/runner';
import { startTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { findIntrospection, checkProvisionState, endIntrospection, transition, powerOff, invalidRequest, cleanUpBoot } from './record';
import { hooksFor } from './hooks';
import { pluginDataOf, processedData, readReport, type Report } from './report';
import { applyIntrospectionRules } from './rules';

const purpose = 'introspection data';
const withFailures = (failures: readonly string[]): string =>
  `The following failures happened during running pre-processing hooks:\n${failures.join('\n')}`;
/** Also the response to a report that was sent twice: the first one is being processed already. */
const introspectionNotFound = ({ macs, bmcAddresses, failures }: Report, why?: string): Fault => {
  const attributes = `{'bmc_address': ${repr(bmcAddresses)}, 'mac': ${repr(macs)}}`;
  const reason = why ?? `Could not find a node for attributes ${attributes}`;
  return new Fault('NotFound', { message: withFailures([...failures, `Look up error: ${reason}`]) });
};

/** Throws NotFound if no running introspection has these addresses, or if several match equally well. */
async function recognize({ store }: Context, report: Report): Promise<string> {
  const { macs, bmcAddresses } = report;
  const [best, ...others] = await store.introspections.matching(macs, bmcAddresses);
  if (!best) throw introspectionNotFound(report);
  const same = others.filter(({ score }) => score === best.score);
  if (same.length === 0) return best.node_uuid;
  const attributes = `{'bmc_address': ${repr(bmcAddresses)}, 'mac': ${repr(macs)}}`;
  const found = repr([best, ...same].map(({ node_uuid: uuid }) => uuid));
  throw introspectionNotFound(report, `Multiple nodes match the same number of attributes ${attributes}: ${found}`);
}

/**
 * Set in the transaction that writes the results of hooks and rules. A conductor that resumes then knows that they are written, and later
 * reports are not accepted.
 */
const WRITTEN = { macs: [], bmc_addresses: [] } as const;
const isWritten = ({ macs, bmc_addresses: addresses }: IntrospectionRecord): boolean => macs.length + addresses.length === 0;

/**
 * Runs the hooks, then the rules, and writes all changes in one transaction. Throws the Fault of a failing hook or rule; then nothing is
 * written.
 */
async function processReport(task: NodeTask, report: Report): Promise<void> {
  const { store, options } = task.context;
  const rules = await store.introspectionRules.list({});
  const { inventory } = report;
  const addPorts = options['inspector.add_ports'];
  await runHooks(
    task,
    { inventory, pluginData: pluginDataOf(report), hooks: hooksFor(options['processing.processing_hooks'], inventory) },
    {
      rules: (draft, outward) => applyIntrospectionRules(rules, draft, processedData(report, draft.pluginData), outward),
      // Without the boot interface, all interfaces with an address count.
      options: {
        'inspector.overwrite_existing': options['processing.overwrite_existing'],
        ...(addPorts === 'pxe' && !report.saysBootInterface ? { 'inspector.add_ports': 'active' } : {}),
      },
      writeMore: async (inner, pluginData) => {
        const { uuid } = task.node;
        if (options['processing.store_data'] === 'database')
          await inner.introspections.putData(uuid, 'processed', processedData(report, pluginData));
        await inner.introspections.change(uuid, ['processing'], WRITTEN);
      },
    },
  );
}
async function processWhereAllowed(task: NodeTask, report: Report): Promise<void> {
  checkProvisionState(task.node);
  await processReport(task, report);
}
async function storeReport({ store, options }: Context, uuid: string, { raw }: Report): Promise<void> {
  if (options['processing.store_data'] === 'database') await store.introspections.putData(uuid, 'unprocessed', raw);
}

/** A failure of `work` ends the introspection with an error. Throws Invalid with its reason. */
async function endOnFailure(task: NodeTask, record: IntrospectionRecord, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.error('introspection data cannot be processed', { error });
    await cleanUpBoot(task, record);
    await endIntrospection(task.context, task.node.uuid, reasonOf(error));
    throw invalidRequest(reasonOf(error));
  }
}

/**
 * Returns the node's UUID after hooks and rules have run; the machine is powered off afterwards. Throws NotFound, Invalid, NodeLocked.
 */
export async function continueIntrospection(context: Context, data: JsonObject): Promise<{ readonly uuid: string }> {
  const report = readReport(data, context.options['inspector.add_ports']);
  const uuid = await recognize(context, report);
  await startTask(context, uuid, { purpose, retry: true }, async (task) => {
    const record = await transition(context, uuid, 'process', { state: 'processing' });
    if (!record) throw introspectionNotFound(report);
    await endOnFailure(task, record, async () => {
      if (report.failures.length > 0) throw invalidRequest(report.failures.join('\n'));
      await storeReport(context, uuid, report);
      await processWhereAllowed(task, report);
    }).catch((error: unknown) => {
      throw error instanceof Fault && report.failures.length > 0 ? invalidRequest(withFailures(report.failures)) : error;
    });
    return () => finishIntrospection(task, record);
  });
  return { uuid };
}

/** Cleans up, powers the machine off and ends the introspection. A failed power-off is an error, unless the node is in enroll. */
async function finishIntrospection(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context } = task;
  const { uuid, provision_state: state } = task.node;
  await cleanUpBoot(task, record);
  let problem: string | null = null;
  if (record.manage_boot && task.options['inspector.power_off'])
    await powerOff(task).catch((error: unknown) => {
      if (isInterrupted(context, error)) throw error;
      if (state !== 'enroll') problem = `Failed to power off node ${uuid}, check its power management configuration: ${reasonOf(error)}`;
    });
  await endIntrospection(context, uuid, problem);
}

/** The stored report; undefined if there is none. */
async function storedReport({ store, options }: Context, uuid: string): Promise<Report | undefined> {
  const stored = await store.introspections.data(uuid, 'unprocessed');
  return stored && readReport(stored, options['inspector.add_ports']);
}
/** Like `endOnFailure`, for work without a waiting client. Returns whether the work succeeded. */
async function succeeds(task: NodeTask, record: IntrospectionRecord, work: () => Promise<void>): Promise<boolean> {
  try {
    await endOnFailure(task, record, work);
    return true;
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    return false;
  }
}
/**
 * Resumes a report whose conductor stopped. It is processed again unless its results were written; if it was not stored, the
 * introspection waits for another one.
 */
export async function resumeProcessing(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  if (!isWritten(record)) {
    const report = await storedReport(context, node.uuid);
    if (!report) {
      await context.store.introspections.change(node.uuid, ['processing'], { state: 'waiting' });
      return;
    }
    if (!(await succeeds(task, record, () => processWhereAllowed(task, report)))) return;
  }
  await finishIntrospection(task, record);
}
/** Processes the given or stored data again. */
async function finishReapplying(task: NodeTask, record: IntrospectionRecord, report: Report): Promise<void> {
  const done = await succeeds(task, record, async () => {
    if (report.failures.length > 0)
      throw invalidRequest(`Pre-processing failures detected reapplying introspection on stored data:\n${report.failures.join('\n')}`);
    await processReport(task, report);
  });
  if (done) await endIntrospection(task.context, task.node.uuid, null);
}
/** Resumes a reapplication whose conductor stopped. Its data is lost if it was not stored. */
export async function resumeReapply(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  const report = await storedReport(context, node.uuid);
  if (report) await finishReapplying(task, record, report);
  else await endIntrospection(context, node.uuid, 'The conductor that reapplied the introspection data is gone, and the data are not kept');
}

/**
 * Returns when accepted. If the state does not allow it, nothing happens.
 * @param data used instead of the stored data; null: the stored data
 * @throws NotFound, Conflict
 */
export async function reapplyIntrospection(context: Context, uuid: string, data: JsonObject | null): Promise<void> {
  const { store, clock, options } = context;
  const given = data !== null && Object.keys(data).length > 0 ? data : undefined;
  if (!given && options['processing.store_data'] === 'none')
    throw invalidRequest(
      'Inspector is not configured to store introspection data. Set the [processing]store_data configuration option to change this.',
    );
  const stored = given ?? (await store.introspections.data(uuid, 'unprocessed'));
  if (!stored) throw new Fault('NotFound', { message: `Introspection data not found for node ${uuid}, processed=False` });
  await findIntrospection(context, uuid);
  const report = readReport(stored, options['inspector.add_ports']);
  try {
    await startTask(context, uuid, { purpose: 'reapplying introspection' }, async (task) => {
      const record = await transition(context, uuid, 'reapply', { state: 'reapplying', started_at: timestamp(clock.now()) });
      if (!record) return undefined;
      if (given) await storeReport(context, uuid, report);
      return () => finishReapplying(task, record, report);
    });
  } catch (error) {
    if (error instanceof Fault && error.name === 'NodeLocked')
      throw new Fault('Conflict', { message: 'Node locked, please, try again later' });
    throw error;
  }
}
