/** Work on a machine that runs after the response. Its failure is stored in `last_error`. */
import { reasonOf } from '../../model/errors';
import type { Context } from '../core/context';
import { startTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';

interface Background {
  readonly purpose: string;
  /** Throws the client's error before anything has changed. */
  readonly check: (task: NodeTask) => Promise<void>;
  readonly work: (task: NodeTask) => Promise<void>;
  /** The message in `last_error`. */
  readonly failed: (reason: string) => string;
  /** The type of a failure in the node history; absent: no entry. */
  readonly recordedAs?: string;
  /** Called after a failure was stored. */
  readonly after?: (task: NodeTask) => void;
}

/** Throws NodeLocked, NoFreeConductorWorker, and what `check` throws. */
export async function inBackground(
  context: Context,
  uuid: string,
  { purpose, check, work, failed, recordedAs, after }: Background,
): Promise<void> {
  await startTask(context, uuid, { purpose, retry: true }, async (task) => {
    await check(task);
    await task.save({ last_error: null });
    return async () => {
      try {
        await work(task);
      } catch (error) {
        if (isInterrupted(context, error)) throw error;
        const event = failed(reasonOf(error));
        if (recordedAs !== undefined) await task.record({ type: recordedAs, event, error: true });
        else {
          task.log.error(event);
          await task.save({ last_error: event });
        }
        after?.(task);
      }
    };
  });
}
