/** POST /v1/continue_inspection: whose inventory it is, then its hooks, then the machine is put to rest. */
import { done } from '../../drivers/interfaces';
import { bareTimestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Inventory, JsonObject, NodeRecord } from '../../model/records';
import type { Lookup } from '../core/call-types';
import type { Context } from '../core/context';
import { inspect } from '../flows/inspect';
import { FORGET_TOKEN_AND_URL } from '../core/agent-info';
import { applyOutcome } from '../flows/outcome';
import { withFailureText, attempt } from '../core/attempt';
import { startTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { isInterrupted } from '../core/interruption';
import { discoverNode } from '../inspection/discover';
import { lookupInspected, nodeNotFound } from '../inspection/lookup';
import { storeRamdiskLogs } from '../inspection/store-ramdisk-logs';
import { runHooks } from '../inspection/runner';

/** Answers the node with the token for its agent in driver_internal_info. Throws Invalid, NotFound, NodeLocked, NoFreeConductorWorker. */
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
  // Of many reports of one new machine the first is taken in; the others need not wait for it.
  await startTask(context, uuid, { purpose: 'continue inspection', retry: found !== undefined }, async (task) => {
    const isNew = !found && task.node.provision_state === 'enroll' && !(await wasTakenIn(task));
    const isAwaited = task.node.provision_state === 'inspect wait' && !task.driver.inspect.byService;
    if (!isAwaited && !isNew) throw nodeNotFound();
    const token = await context.tokens.give(uuid);
    const { node: waiting } = task;
    const heard = { agent_last_heartbeat: bareTimestamp(task.clock.now()) };
    // The node as it waited: the agent learns of it what a lookup would have told.
    answer = { ...waiting, driver_internal_info: { ...waiting.driver_internal_info, agent_secret_token: token } };
    if (isNew) {
      await task.write({ last_error: null }, heard);
      return () => takeInNew(task, inventory, pluginData);
    }
    await task.fire('resume', {}, heard);
    return () => applyOutcome(task, inspect, () => takeIn(task, inventory, pluginData));
  });
  return answer!;
}

/** Hooks and rules, and what becomes of the logs. */
async function look(task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<void> {
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

const takeIn = (task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<typeof done> =>
  withFailureText(
    task,
    (reason) => `Failed to finish inspection: ${reason}`,
    async () => {
      await look(task, inventory, pluginData);
      await task.driver.inspect.finish?.(task);
      return done;
    },
  );

/** Two reports of one machine at once: the second comes here when the first is over. */
const wasTakenIn = async ({ context, node }: NodeTask): Promise<boolean> => context.store.discoveries.isFinished(node.uuid);

/** The node stays in enroll, whatever comes of it: whoever manages it knows how to reach it. */
async function takeInNew(task: NodeTask, inventory: Inventory, pluginData: JsonObject): Promise<void> {
  const { context, node } = task;
  // Where nothing tells how to reach its BMC, it stays on.
  const rest = (): Promise<unknown> =>
    attempt(task, 'putting the discovered machine to rest', async () => {
      await task.driver.power.validate?.(task);
      await task.driver.inspect.finish?.(task);
    });
  try {
    await withFailureText(
      task,
      (reason) => `Failed to finish inspection: ${reason}`,
      () => look(task, inventory, { ...pluginData, auto_discovered: true }),
    );
    await context.store.discoveries.finish(node.uuid);
    await rest();
  } catch (error) {
    if (isInterrupted(context, error)) throw error;
    await rest();
    await task.record({ type: 'introspection', event: reasonOf(error), error: true }, {}, FORGET_TOKEN_AND_URL);
  }
}
