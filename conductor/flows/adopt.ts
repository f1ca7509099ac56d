/** manageable, adopt failed → active: an instance that is on the machine already. Neither its disk nor its power is touched. */
import { done } from '../../drivers/interfaces';
import { attempt, withFailureText, withoutFullStop } from '../core/attempt';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { restoreConsole } from '../requests/console';
import { imageType } from './deploy';
import { restoredInterface } from '../hardware/deploy-interface';
import type { Flow } from './flow';

/**
 * An instance in memory boots its image at each start of the machine. What is missing for that does not matter now: the instance runs, and
 * a client must be able to adopt it, if only to remove it. The node's validation names it too.
 */
async function recordObstacles(task: NodeTask): Promise<void> {
  const reason = await attempt(task, 'the check whether an adopted instance can boot again', () => validateInterface(task, 'boot'));
  if (reason === undefined) return;
  const event = `Adopted an instance that the server cannot boot again: ${reason}`;
  await task.record({ type: 'adoption', event, error: false });
}

export const adopt: Flow = {
  errorType: 'adoption',
  usesDeploy: true,
  admit: {
    adopt: {
      check: async (task) => {
        const { changes, internal } = imageType(task.node);
        return { changes: { last_error: null, ...changes }, internal };
      },
    },
  },
  begin: (task) =>
    withFailureText(
      task,
      (reason) => `Error while attempting to adopt node ${task.node.uuid}: ${withoutFullStop(reason)}.`,
      async () => {
        if (task.driver.deploy.inMemory) await recordObstacles(task);
        await task.driver.deploy.prepare?.(task);
        await restoreConsole(task, 'taking over', 'takeover');
        return done;
      },
    ),
  finish: (task) => task.end('done'),
  // The stored power state may be wrong. Null, as in Ironic: power synchronisation reads the machine's state anew.
  fail: (task, reason) => {
    const { changes, internal } = restoredInterface(task.node);
    return task.end('fail', { ...changes, last_error: reason, power_state: null }, internal);
  },
};
