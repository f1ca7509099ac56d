/** GET and PUT …/states/console. */
import type { Screen } from '../../drivers/interfaces';
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { ConsoleLogPart } from '../core/call-types';
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

/** Bytes that belong to a character of UTF-8 whose end is missing. */
function incomplete(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0;
    if (length > 0) return back < length ? back : 0;
  }
  return 0;
}
/** What the machine said on its serial line, as far as the conductor has saved it. Throws Fault. @param offset null: the last bytes */
export async function readConsoleLog(context: Context, uuid: string, offset: number | null, limit: number): Promise<ConsoleLogPart> {
  return withTask(context, uuid, { purpose: 'reading the console log', lock: 'shared' }, async ({ connections }) => {
    const logs = connections.consoleLogs;
    if (!logs) throw new Fault('NotFound', { message: 'This conductor saves no console logs.' });
    const part = await logs.read(uuid, offset ?? undefined, limit);
    const cut = part.next < part.end || offset !== null ? incomplete(part.bytes) : 0;
    // A character that the next answer has whole; unless there is nothing else, which is no character then.
    const bytes = cut < part.bytes.length ? part.bytes.subarray(0, part.bytes.length - cut) : part.bytes;
    return { start: part.start, offset: part.offset, next_offset: part.offset + bytes.length, end: part.end, text: bytes.toString() };
  });
}
/** Before a node is deleted. An error, such as a driver that is not enabled any more, prevents no deletion, as in Ironic. */
export async function endConsole(task: NodeTask): Promise<void> {
  if (!task.node.console_enabled) return;
  await stopConsole(task).catch((error: unknown) => task.log.warn('the console of a deleted node could not be stopped', { error }));
}
/** After a node is deleted, or has another owner. The file of a deleted node that cannot be removed now is removed later. */
export async function removeConsoleLog({ connections, log }: Context, uuid: string): Promise<void> {
  await connections.consoleLogs
    ?.remove(uuid)
    .catch((error: unknown) => log.warn(`the console log of node ${uuid} cannot be removed`, { reason: reasonOf(error) }));
}
/** Nodes that are looked up at a time. */
const MANY = 500;
/** Removes the logs of nodes that no longer exist: another conductor had them when they were deleted. */
export async function removeStrayConsoleLogs(context: Context): Promise<number> {
  const left = [...((await context.connections.consoleLogs?.nodes()) ?? [])];
  let removed = 0;
  while (left.length > 0) {
    const some = left.splice(0, MANY);
    const known = await context.store.nodes.list({ where: { uuid: some }, children: 'all' });
    const there = new Set(known.map(({ uuid }) => uuid));
    for (const uuid of some) {
      if (there.has(uuid)) continue;
      await removeConsoleLog(context, uuid);
      removed++;
    }
  }
  return removed;
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
