/** Introspections without a report: aborted, late, or left by their conductor. */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { IntrospectionRecord, IntrospectionState } from '../../model/introspection';
import type { Context } from '../core/context';
import { OWNERSHIP_COLUMNS } from '../runtime/ownership';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { findIntrospection, endIntrospection, canBeIntrospected, transition, powerOff, cleanUpBoot } from './record';
import { resumeProcessing, resumeReapply } from './continue';
import { resumeStart } from './start';

/** Powers the machine off only if its node is in a state that allows introspection. */
async function finishAbort(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  if (record.manage_boot && canBeIntrospected(node))
    await powerOff(task).catch((error: unknown) => {
      if (isInterrupted(context, error)) throw error;
      task.log.warn('could not power off the machine', { reason: reasonOf(error) });
    });
  await cleanUpBoot(task, record);
  await endIntrospection(context, node.uuid, 'Canceled by operator', ['aborting']);
}
/** State → how a conductor that holds the node's lock resumes it. */
const RESUME: Readonly<Partial<Record<IntrospectionState, (task: NodeTask, record: IntrospectionRecord) => Promise<void>>>> = {
  starting: resumeStart,
  processing: resumeProcessing,
  reapplying: resumeReapply,
  aborting: finishAbort,
};
/** States in which a conductor works on the introspection, or stopped before it was done. */
export const RESUMABLE_STATES = Object.keys(RESUME) as IntrospectionState[];

export async function resumeIntrospection(task: NodeTask): Promise<void> {
  const record = await findIntrospection(task.context, task.node.uuid);
  await RESUME[record.state]?.(task, record);
}

/**
 * Returns when accepted; nothing happens if there is nothing to abort. The machine is powered off when the node's lock is free, because
 * the caller may hold it. If this conductor does not get the lock, recovery (recovery.ts) does it. Throws NotFound, Conflict.
 */
export async function abortIntrospection(context: Context, uuid: string): Promise<void> {
  await findIntrospection(context, uuid);
  const worker = context.workers.take();
  try {
    if (!(await transition(context, uuid, 'abort', { state: 'aborting', finished_at: null }))) {
      const { state } = await findIntrospection(context, uuid);
      if (state === 'processing' || state === 'reapplying') throw new Fault('Conflict', { message: 'Node is locked, please, retry later' });
      return;
    }
    worker.run(() =>
      withTask(context, uuid, { purpose: 'abort of an introspection', retry: true }, resumeIntrospection).catch((error: unknown) =>
        context.log.info('the introspection is aborted; its machine is powered off later', {
          node: uuid,
          reason: reasonOf(error),
        }),
      ),
    );
  } finally {
    worker.giveBack();
  }
}

/** [DEFAULT]timeout. A locked node is tried again in the next round. Returns how many introspections are late. */
export async function endLateIntrospections(context: Context): Promise<number> {
  const { store, clock, options, log } = context;
  const limit = options['DEFAULT.timeout'];
  if (limit <= 0) return 0;
  const moment = timestamp(clock.now() - limit * 1000);
  const began = new Map((await store.introspections.startedBefore(moment)).map((record) => [record.node_uuid, record.started_at]));
  if (began.size === 0) return 0;
  const late = await context.ownNodes(
    await store.nodes.listColumns(OWNERSHIP_COLUMNS, { where: { uuid: [...began.keys()] }, children: 'all' }),
  );
  for (const { uuid } of late) {
    try {
      await withTask(context, uuid, { purpose: 'timeout of an introspection' }, async (task) => {
        const now = await store.introspections.find(uuid);
        if (!now || now.finished_at !== null || now.started_at !== began.get(uuid)) return;
        await cleanUpBoot(task, now);
        await endIntrospection(context, uuid, 'Introspection timeout');
      });
    } catch (error) {
      if (context.signal.aborted) throw error;
      log.warn('the introspection timed out, but its node is locked', { node: uuid, reason: reasonOf(error) });
    }
  }
  return late.length;
}
