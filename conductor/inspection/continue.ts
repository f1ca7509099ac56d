/** POST /v1/continue_inspection: whose inventory it is, then its hooks, then the machine is put to rest. */
import { done } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { Inventory, JsonObject, NodeRecord } from '../../model/records';
import type { Lookup } from '../conductor';
import type { Context } from '../context';
import { inspect } from '../flows/inspect';
import { saying, settle } from '../flows/flow';
import { startTask } from '../task';
import { lookupInspected } from './lookup';
import { runHooks } from './runner';

/** Answers the node with the token for its agent in driver_internal_info. Throws Invalid, NotFound, NodeLocked, NoFreeConductorWorker. */
export async function continueInspection(
  context: Context,
  lookup: Lookup,
  inventory: Inventory,
  pluginData: JsonObject,
): Promise<NodeRecord> {
  const { uuid } = await lookupInspected(context.store, lookup, context.log);
  let answer: NodeRecord | undefined;
  await startTask(context, uuid, { purpose: 'continue inspection', retry: true }, async (task) => {
    if (task.node.provision_state !== 'inspect wait') throw new Fault('NotFound', { message: 'Resource could not be found.' });
    const token = await context.tokens.give(uuid);
    const { node: waiting } = task;
    await task.fire('resume', {}, { agent_last_heartbeat: timestamp(task.clock.now()) });
    // The node as it waited: the agent learns of it what a lookup would have told.
    answer = { ...waiting, driver_internal_info: { ...waiting.driver_internal_info, agent_secret_token: token } };
    return () =>
      settle(task, inspect, () =>
        saying(
          task,
          (reason) => `Failed to finish inspection: ${reason}`,
          async () => {
            await runHooks(task, { inventory, pluginData, hooks: context.options['inspector.hooks'] });
            await task.driver.inspect.finish?.(task);
            return done;
          },
        ),
      );
  });
  return answer!;
}
