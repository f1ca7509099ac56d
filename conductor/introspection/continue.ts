/** POST /v1/continue: a report is recognized among the introspections that are under way, looked at by hooks and rules, and kept. Reapply does it again. */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { IntrospectionRecord } from '../../model/introspection';
import { repr } from '../../model/python';
import type { JsonObject } from '../../model/records';
import type { Context } from '../core/context';
import { runHooks } from '../inspection/runner';
import { isInterrupted, startTask, type NodeTask } from '../core/task';
import { findIntrospection, checkProvisionState, endIntrospection, transition, powerOff, invalidRequest, cleanUpBoot } from './record';
import { hooksFor } from './hooks';
import { pluginDataOf, processedData, readReport, type Report } from './report';
import { applyIntrospectionRules } from './rules';

const purpose = 'introspection data';
const withFailures = (failures: readonly string[]): string =>
  `The following failures happened during running pre-processing hooks:\n${failures.join('\n')}`;
/** Also for a report that came twice: the first has it. */
const unknown = ({ macs, bmcAddresses, failures }: Report, why?: string): Fault => {
  const attributes = `{'bmc_address': ${repr(bmcAddresses)}, 'mac': ${repr(macs)}}`;
  const reason = why ?? `Could not find a node for attributes ${attributes}`;
  return new Fault('NotFound', { message: withFailures([...failures, `Look up error: ${reason}`]) });
};

/** Throws NotFound: none under way has these addresses, or several have as many of them. */
async function recognize({ store }: Context, report: Report): Promise<string> {
  const { macs, bmcAddresses } = report;
  const [best, ...others] = await store.introspections.matching(macs, bmcAddresses);
  if (!best) throw unknown(report);
  const same = others.filter(({ score }) => score === best.score);
  if (same.length === 0) return best.node_uuid;
  const attributes = `{'bmc_address': ${repr(bmcAddresses)}, 'mac': ${repr(macs)}}`;
  const found = repr([best, ...same].map(({ node_uuid: uuid }) => uuid));
  throw unknown(report, `Multiple nodes match the same number of attributes ${attributes}: ${found}`);
}

/** Written with what hooks and rules said, so that whoever goes on with it knows that they have: nobody's report is taken any more. */
const WRITTEN = { macs: [], bmc_addresses: [] } as const;
const isWritten = ({ macs, bmc_addresses: addresses }: IntrospectionRecord): boolean => macs.length + addresses.length === 0;

/** Hooks, then rules, all written at once. Throws the Fault of one that refuses: then nothing is. */
async function look(task: NodeTask, report: Report): Promise<void> {
  const { store, options } = task.context;
  const rules = await store.introspectionRules.list({});
  const { inventory } = report;
  const addPorts = options['inspector.add_ports'];
  await runHooks(
    task,
    { inventory, pluginData: pluginDataOf(report), hooks: hooksFor(options['processing.processing_hooks'], inventory) },
    {
      rules: (draft, outward) => applyIntrospectionRules(rules, draft, processedData(report, draft.pluginData), outward),
      // Without the boot interface, all that have an address are meant.
      options: {
        'inspector.overwrite_existing': options['processing.overwrite_existing'],
        ...(addPorts === 'pxe' && !report.saysBootInterface ? { 'inspector.add_ports': 'active' } : {}),
      },
      also: async (inner, pluginData) => {
        const { uuid } = task.node;
        if (options['processing.store_data'] === 'database')
          await inner.introspections.putData(uuid, 'processed', processedData(report, pluginData));
        await inner.introspections.change(uuid, ['processing'], WRITTEN);
      },
    },
  );
}
async function lookWherePossible(task: NodeTask, report: Report): Promise<void> {
  checkProvisionState(task.node);
  await look(task, report);
}
async function keepRaw({ store, options }: Context, uuid: string, { raw }: Report): Promise<void> {
  if (options['processing.store_data'] === 'database') await store.introspections.putData(uuid, 'unprocessed', raw);
}

/** What fails makes an error of the introspection. Throws Invalid with its reason. */
async function orEnd(task: NodeTask, record: IntrospectionRecord, work: () => Promise<void>): Promise<void> {
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

/** Answers whose report it is, when hooks and rules have seen it; the machine is put to rest afterwards. Throws NotFound, Invalid, NodeLocked. */
export async function continueIntrospection(context: Context, data: JsonObject): Promise<{ readonly uuid: string }> {
  const report = readReport(data, context.options['inspector.add_ports']);
  const uuid = await recognize(context, report);
  await startTask(context, uuid, { purpose, retry: true }, async (task) => {
    const record = await transition(context, uuid, 'process', { state: 'processing' });
    if (!record) throw unknown(report);
    await orEnd(task, record, async () => {
      if (report.failures.length > 0) throw invalidRequest(report.failures.join('\n'));
      await keepRaw(context, uuid, report);
      await lookWherePossible(task, report);
    }).catch((error: unknown) => {
      throw error instanceof Fault && report.failures.length > 0 ? invalidRequest(withFailures(report.failures)) : error;
    });
    return () => rest(task, record);
  });
  return { uuid };
}

/** A machine that cannot be powered off makes an error of it, except one that is only being enrolled. */
async function rest(task: NodeTask, record: IntrospectionRecord): Promise<void> {
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

/** The report that is kept, read again; undefined: none is. */
async function keptReport({ store, options }: Context, uuid: string): Promise<Report | undefined> {
  const kept = await store.introspections.data(uuid, 'unprocessed');
  return kept && readReport(kept, options['inspector.add_ports']);
}
/** As `orEnd`, for work whose error is told as the introspection's only. Answers whether it was done. */
async function doneOrEnded(task: NodeTask, record: IntrospectionRecord, work: () => Promise<void>): Promise<boolean> {
  try {
    await orEnd(task, record, work);
    return true;
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    return false;
  }
}
/** Goes on with a report that its conductor left: looked at again if nothing of it was written; one that was not kept is waited for again. */
export async function resumeProcessing(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  if (!isWritten(record)) {
    const report = await keptReport(context, node.uuid);
    if (!report) {
      await context.store.introspections.change(node.uuid, ['processing'], { state: 'waiting' });
      return;
    }
    if (!(await doneOrEnded(task, record, () => lookWherePossible(task, report)))) return;
  }
  await rest(task, record);
}
/** Looks at the data again that were given or kept. */
async function finishReapplying(task: NodeTask, record: IntrospectionRecord, report: Report): Promise<void> {
  const done = await doneOrEnded(task, record, async () => {
    if (report.failures.length > 0)
      throw invalidRequest(`Pre-processing failures detected reapplying introspection on stored data:\n${report.failures.join('\n')}`);
    await look(task, report);
  });
  if (done) await endIntrospection(task.context, task.node.uuid, null);
}
/** Goes on with a reapplication that its conductor left; what it was given is kept, or nobody has it. */
export async function resumeReapply(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  const report = await keptReport(context, node.uuid);
  if (report) await finishReapplying(task, record, report);
  else await endIntrospection(context, node.uuid, 'The conductor that reapplied the introspection data is gone, and the data are not kept');
}

/**
 * Returns when accepted: where it is not possible, nothing is done.
 * @param data in the place of what was kept; null: that
 * @throws NotFound, Conflict
 */
export async function reapplyIntrospection(context: Context, uuid: string, data: JsonObject | null): Promise<void> {
  const { store, clock, options } = context;
  const given = data !== null && Object.keys(data).length > 0 ? data : undefined;
  if (!given && options['processing.store_data'] === 'none')
    throw invalidRequest(
      'Inspector is not configured to store introspection data. Set the [processing]store_data configuration option to change this.',
    );
  const kept = given ?? (await store.introspections.data(uuid, 'unprocessed'));
  if (!kept) throw new Fault('NotFound', { message: `Introspection data not found for node ${uuid}, processed=False` });
  await findIntrospection(context, uuid);
  const report = readReport(kept, options['inspector.add_ports']);
  try {
    await startTask(context, uuid, { purpose: 'reapplying introspection' }, async (task) => {
      const record = await transition(context, uuid, 'reapply', { state: 'reapplying', started_at: timestamp(clock.now()) });
      if (!record) return undefined;
      if (given) await keepRaw(context, uuid, report);
      return () => finishReapplying(task, record, report);
    });
  } catch (error) {
    if (error instanceof Fault && error.name === 'NodeLocked')
      throw new Fault('Conflict', { message: 'Node locked, please, try again later' });
    throw error;
  }
}
