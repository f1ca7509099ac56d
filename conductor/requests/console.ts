/** GET and PUT …/states/console. */
import type { Screen } from '../../drivers/interfaces';
import { invalidParameter } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { Context } from '../core/context';
import { withoutFullStop, attempt } from '../core/attempt';
import { inBackground } from './in-background';
import { notifyConsole } from '../core/notify';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';

/** The console's address; null if it is off. */
export async function consoleInfo(context: Context, uuid: string): Promise<JsonObject | null> {
  return withTask(context, uuid, { purpose: 'getting console information', lock: 'shared' }, async (task) => {
    if (!task.node.console_enabled) return null;
    await validateInterface(task, 'console');
    return task.driver.console.get(task);
  });
}

/**
 * Starts a console again that is enabled but not running. If that fails, it is disabled.
 * @param doing the node's operation, for the error message
 * @param recordedAs the type of the entry in the node history; absent: no entry
 */
export async function restoreConsole(task: NodeTask, doing: string, recordedAs?: string): Promise<void> {
  if (!task.node.console_enabled) return;
  notifyConsole(task, 'console_restore', 'start');
  const reason = await attempt(task, 'starting the console', () => task.driver.console.start(task));
  if (reason === undefined) {
    notifyConsole(task, 'console_restore', 'end');
    return;
  }
  const event = `Failed to start console while ${doing} the node ${task.node.uuid}: ${withoutFullStop(reason)}.`;
  if (recordedAs === undefined) await task.save({ last_error: event, console_enabled: false });
  else await task.record({ type: recordedAs, event, error: true }, { console_enabled: false });
  notifyConsole(task, 'console_restore', 'error');
}

/** `console_enabled` stays true: a later deployment starts the console again. */
export async function stopConsole(task: NodeTask): Promise<void> {
  notifyConsole(task, 'console_stop', 'start');
  try {
    await task.driver.console.stop(task);
  } catch (error) {
    notifyConsole(task, 'console_stop', 'error');
    throw error;
  }
  notifyConsole(task, 'console_stop', 'end');
}

/** Connects to the machine's screen. Throws Fault. @param signal aborted when the viewer has gone */
export async function openScreen(context: Context, uuid: string, signal: AbortSignal): Promise<Screen> {
  return withTask(context, uuid, { purpose: 'opening the screen', lock: 'shared' }, async (task) => {
    const { console } = task.driver;
    if (!task.node.console_enabled) throw invalidParameter('The console is off.');
    if (!console.screen) throw invalidParameter('The console of this node is not graphical.');
    await validateInterface(task, 'console');
    return console.screen(task, signal);
  });
}

/** Does nothing if the console is in this state already. */
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
      notifyConsole(task, 'console_set', 'start');
      await (on ? task.driver.console.start(task) : task.driver.console.stop(task));
      await task.save({ console_enabled: on });
      notifyConsole(task, 'console_set', 'end');
    },
    after: (task) => notifyConsole(task, 'console_set', 'error'),
    recordedAs: 'console',
    failed: (reason) => `Error ${on ? 'enabling' : 'disabling'} the console on node ${uuid}. Reason: ${reason}`,
  });
}
