/** How an introspection ends without a report of its machine: aborted, late, or left by its conductor. */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { IntrospectionRecord, IntrospectionState } from '../../model/introspection';
import type { Context } from '../core/context';
import { OWNERSHIP_COLUMNS } from '../core/ownership';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { cached, end, isPossible, move, powerOff, unprepare } from './cache';
import { processAgain, reapplyAgain } from './continue';
import { beginAgain } from './start';

/** The machine is only told to go off while its node is still where it could be introspected. */
async function finishAbort(task: NodeTask, record: IntrospectionRecord): Promise<void> {
  const { context, node } = task;
  if (record.manage_boot && isPossible(node))
    await powerOff(task).catch((error: unknown) => {
      if (isInterrupted(context, error)) throw error;
      task.log.warn('the machine cannot be powered off', { reason: reasonOf(error) });
    });
  await unprepare(task, record);
  await end(context, node.uuid, 'Canceled by operator', ['aborting']);
}
/** State → how it goes on at a conductor that holds the node, so that nobody else is at it. */
const GO_ON: Readonly<Partial<Record<IntrospectionState, (task: NodeTask, record: IntrospectionRecord) => Promise<void>>>> = {
  starting: beginAgain,
  processing: processAgain,
  reapplying: reapplyAgain,
  aborting: finishAbort,
};
/** States in which somebody is at it, or has left it. */
export const BUSY = Object.keys(GO_ON) as IntrospectionState[];

export async function goOn(task: NodeTask): Promise<void> {
  const record = await cached(task.context, task.node.uuid);
  await GO_ON[record.state]?.(task, record);
}

/**
 * Returns when accepted: where there is nothing to abort, nothing is done. The machine is put to rest when the node is free, which who
 * aborts may hold: as soon as it can be had here, else when what was left is looked for (recovery.ts). Throws NotFound, Conflict.
 */
export async function abortIntrospection(context: Context, uuid: string): Promise<void> {
  await cached(context, uuid);
  const place = context.workers.take();
  try {
    if (!(await move(context, uuid, 'abort', { state: 'aborting', finished_at: null }))) {
      const { state } = await cached(context, uuid);
      if (state === 'processing' || state === 'reapplying') throw new Fault('Conflict', { message: 'Node is locked, please, retry later' });
      return;
    }
    place.run(() =>
      withTask(context, uuid, { purpose: 'abort of an introspection', retry: true }, goOn).catch((error: unknown) =>
        context.log.info('the introspection of a node is aborted, and its machine later put to rest', {
          node: uuid,
          reason: reasonOf(error),
        }),
      ),
    );
  } finally {
    place.giveBack();
  }
}

/** [DEFAULT]timeout; a node that somebody holds is looked at again in the next round. Answers how many are late. */
export async function endLateIntrospections(context: Context): Promise<number> {
  const { store, clock, options, log } = context;
  const limit = options['DEFAULT.timeout'];
  if (limit <= 0) return 0;
  const moment = timestamp(clock.now() - limit * 1000);
  const began = new Map((await store.introspections.startedBefore(moment)).map((record) => [record.node_uuid, record.started_at]));
  if (began.size === 0) return 0;
  const late = await context.ownNodes(await store.nodes.pick(OWNERSHIP_COLUMNS, { where: { uuid: [...began.keys()] }, children: 'all' }));
  for (const { uuid } of late) {
    try {
      await withTask(context, uuid, { purpose: 'timeout of an introspection' }, async (task) => {
        const now = await store.introspections.find(uuid);
        if (!now || now.finished_at !== null || now.started_at !== began.get(uuid)) return;
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
