/** manageable, adopt failed → active: an instance that is on the machine already. Neither its disk nor its power is touched. */
import { done, type Outcome } from '../../drivers/interfaces';
import { restoreConsole } from '../requests/console';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import type { Flow } from './flow';
import { withoutFullStop, failingWith } from '../core/attempt';

export const beginAdopt = (task: NodeTask): Promise<Outcome> =>
  failingWith(
    task,
    (reason) => `Error while attempting to adopt node ${task.node.uuid}: ${withoutFullStop(reason)}.`,
    async () => {
      // What boots over the network each time must be told to be able to.
      if (task.driver.deploy.inMemory) await validateInterface(task, 'boot');
      await task.driver.deploy.prepare?.(task);
      await restoreConsole(task, 'taking over', 'takeover');
      return done;
    },
  );

export const adopt: Flow = {
  finish: (task) => task.fire('done'),
  // The power state was read while the machine was somebody else's.
  fail: (task, reason) => task.fire('fail', { last_error: reason, power_state: null }),
};
