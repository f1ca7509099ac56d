/** POST /v1/continue_inspection: finds the node of an inventory, runs the hooks, and powers the machine off. */
import { done } from '../../drivers/interfaces';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newToken } from '../../model/rules/agent-token';
import { MASK } from '../../model/masks';
import type { Inventory, JsonObject, NodeRecord } from '../../model/records';
import type { Lookup } from '../core/call-types';
import type { Context } from '../core/context';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { withFailureText, attempt } from '../core/attempt';
import { startTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { discoverNode } from '../inspection/discover';
import { lookupInspected, nodeNotFound } from '../inspection/lookup';
import { storeRamdiskLogs } from '../inspection/store-ramdisk-logs';
import { runHooks } from '../inspection/runner';
import { inspect } from './inspect';
import { applyOutcome } from './outcome';

/** Returns the node, with its agent's token if `lookup` wants that. Throws Invalid, NotFound, NodeLocked, NoFreeConductorWorker. */
export async function continueInspection(
  context: Context,
  lookup: Lookup,
  inventory: Inventory,
  pluginData: JsonObject,
): Promise<NodeRecord> {
  const found = await lookupInspected(context.store, lookup, context.log);
  if (!found && !lookup.discovery) throw nodeNotFound();
  const uuid = found?.uuid ?? (await discoverNode(context, lookup, lookup.discovery!));
  let answer: NodeRecord | undefined;
  // Only the first report of a new machine counts; later ones do not wait for it.
  await startTask(context, uuid, { purpose: 'continue inspection', retry: found !== undefined }, async (task) => {
    const isNew = !found && task.node.provision_state === 'enroll' && !(await isProcessed(task));
    const isAwaited = task.node.provision_state === 'inspect wait' && !task.driver.inspect.byService;
    if (!isAwaited && !isNew) throw nodeNotFound();
    const { node: waiting } = task;
    const internal = lookup.wantsToken === true ? { agent_secret_token: await giveToken(context, uuid) } : {};
    const heartbeat = { agent_last_heartbeat: bareTimestamp(task.clock.now()) };
    // The node as it was while it waited: a lookup by the agent would have returned the same.
    answer = { ...waiting, driver_internal_info: { ...waiting.driver_internal_info, ...internal } };
    if (isNew) {
      await task.write({ last_error: null }, heartbeat);
      return () => processDiscovered(task, inventory, pluginData);
    }
    await task.fire('resume', {}, heartbeat);
    return () => applyOutcome(task, inspect, () => processInspection(task, inventory, pluginData));
  });
  return answer!;
}

async function giveToken({ store, random }: Context, uuid: string): Promise<string> {
  const made = newToken(random);
  return (await store.nodes.mergeInternalOnce(uuid, made)) ? made.agent_secret_token : MASK;
}

/** Runs hooks and rules, and stores the logs. */
async function runAllHooks(task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<void> {
  const { context } = task;
  try {
    const findings = { inventory, pluginData, hooks: context.options['inspector.hooks'] };
    await runHooks(task, findings, { failurePrefix: 'failed to run inspection hooks' });
  } catch (error) {
    if (!isInterrupted(context, error)) await storeRamdiskLogs(task, pluginData['logs'], true);
    throw error;
  }
  await storeRamdiskLogs(task, pluginData['logs'], false);
}

const processInspection = (task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<typeof done> =>
  withFailureText(
    task,
    (reason) => `Failed to finish inspection: ${reason}`,
    async () => {
      await runAllHooks(task, inventory, pluginData);
      await task.driver.inspect.finish?.(task);
      return done;
    },
  );

/** Of two simultaneous reports of one machine, the second may get the lock only after the first was processed. */
const isProcessed = async ({ context, node }: NodeTask): Promise<boolean> => context.store.discoveries.isFinished(node.uuid);

/** The node stays in enroll, also after a failure, until its operator sets how to reach the BMC. */
async function processDiscovered(task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<void> {
  const { context, node } = task;
  // Unless the node has the address of its BMC, the machine stays on.
  const powerOff = (): Promise<unknown> =>
    attempt(task, 'powering off the discovered machine', async () => {
      await task.driver.power.validate?.(task);
      await task.driver.inspect.finish?.(task);
    });
  try {
    await withFailureText(
      task,
      (reason) => `Failed to finish inspection: ${reason}`,
      () => runAllHooks(task, inventory, { ...pluginData, auto_discovered: true }),
    );
    await context.store.discoveries.finish(node.uuid);
    await powerOff();
  } catch (error) {
    if (isInterrupted(context, error)) throw error;
    await powerOff();
    await task.record({ type: 'introspection', event: reasonOf(error), error: true }, {}, FORGET_TOKEN_AND_URL);
  }
}
