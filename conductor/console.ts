/** GET and PUT …/states/console. */
import type { JsonObject } from '../model/records';
import type { Context } from './context';
import { inBackground } from './in-background';
import { withTask } from './task';
import { validateInterface } from './validate';

/** Where the console is; null: it is off. */
export async function consoleInfo(context: Context, uuid: string): Promise<JsonObject | null> {
  return withTask(context, uuid, { purpose: 'getting console information', lock: 'shared' }, async (task) => {
    if (!task.node.console_enabled) return null;
    await validateInterface(task, 'console');
    return task.driver.console.get(task);
  });
}

/** A console that is so already is left alone. */
export async function setConsole(context: Context, uuid: string, on: boolean): Promise<void> {
  const isSo = await withTask(context, uuid, { purpose: 'setting console mode', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'console');
    return task.node.console_enabled === on;
  });
  if (isSo) return;
  await inBackground(context, uuid, {
    purpose: 'setting console mode',
    check: (task) => validateInterface(task, 'console'),
    work: async (task) => {
      await (on ? task.driver.console.start(task) : task.driver.console.stop(task));
      await task.save({ console_enabled: on });
    },
    recordedAs: 'console',
    failed: (reason) => `Error ${on ? 'enabling' : 'disabling'} the console on node ${uuid}. Reason: ${reason}`,
  });
}
