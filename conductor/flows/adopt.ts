/** manageable, adopt failed → active: an instance that is on the machine already. Neither its disk nor its power is touched. */
import { done } from '../../drivers/interfaces';
import { withFailureText, withoutFullStop } from '../core/attempt';
import { validateInterface } from '../core/validate';
import { restoreConsole } from '../requests/console';
import { imageType } from './deploy';
import type { Flow } from './flow';

export const adopt: Flow = {
  errorType: 'adoption',
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
        // With this deploy interface the machine boots over the network each time.
        if (task.driver.deploy.inMemory) await validateInterface(task, 'boot');
        await task.driver.deploy.prepare?.(task);
        await restoreConsole(task, 'taking over', 'takeover');
        return done;
      },
    ),
  finish: (task) => task.fire('done'),
  // The stored power state may be wrong. Null, as in Ironic: power synchronisation reads the machine's state anew.
  fail: (task, reason) => task.fire('fail', { last_error: reason, power_state: null }),
};
