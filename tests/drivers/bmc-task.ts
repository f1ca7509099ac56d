/** The task of tests/support with BMC connections and power of the test's own. */
import type { Connections, Task } from '../../drivers/interfaces';
import { testTask, type TestTask } from '../support/task';

export function bmcTask(
  given: Parameters<typeof testTask>[0] & { readonly connections: Partial<Connections> },
): TestTask & { readonly slept: number[] } {
  const made = testTask(given);
  const slept: number[] = [];
  // The task's `node` is a getter. A copy would keep the first node, so this object inherits from the task.
  const task = Object.create(made.task, {
    connections: { value: { ...made.task.connections, ...given.connections } },
    clock: {
      value: {
        now: () => made.task.clock.now(),
        sleep: async (milliseconds: number, signal?: AbortSignal) => {
          slept.push(milliseconds);
          await made.task.clock.sleep(milliseconds, signal);
        },
      },
    },
  }) as Task;
  return { ...made, task, slept };
}
