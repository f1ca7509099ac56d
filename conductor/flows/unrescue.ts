/** rescue → active: the instance boots again. */
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { withFailureText } from '../core/attempt';
import { refuseInMaintenance } from './admission';
import type { Flow } from './flow';
import { validateForRescue } from './rescue';

export const unrescue: Flow = {
  errorType: 'rescue',
  // Whether the instance runs from memory decides how it boots again.
  usesDeploy: true,
  admit: {
    unrescue: {
      check: async (task) => {
        refuseInMaintenance(task, 'unrescuing');
        await validateForRescue(task, 'InstanceUnrescueFailure', ['power']);
        return { changes: { last_error: null }, internal: FORGET_TOKEN_AND_URL };
      },
    },
  },
  begin: (task) =>
    withFailureText(
      task,
      (reason) => `Failed to unrescue: ${reason}`,
      () => task.driver.rescue.unrescue(task),
    ),
  finish: (task) => task.end('done', {}, FORGET_TOKEN_AND_URL),
  fail: (task, reason) => task.end('fail', { last_error: reason }),
};
