/** PUT …/states/provision with `abort` and `unhold`: how an operation that waits or is held ends, or goes on. */
import { stateRow, type FlowName } from '../../model/states';
import type { NodeTask } from '../core/node-task';
import { FLOWS } from '../flows';
import { completeAbort, UNFINISHED_ABORT } from '../flows/flow';
import { wake } from './waiting';

const isFlowName = (name: unknown): name is FlowName => typeof name === 'string' && Object.hasOwn(FLOWS, name);

/** Cleans up after an abort whose clean-up is not over. Another conductor may repeat the clean-up from its beginning. */
export async function finishAbort(task: NodeTask): Promise<void> {
  const unfinished = task.node.driver_internal_info[UNFINISHED_ABORT];
  const [name, variant] = typeof unfinished === 'string' ? unfinished.split(', ') : [];
  if (isFlowName(name)) await completeAbort(task, FLOWS[name], variant);
}

/** The flow fires the event, or only marks its running step. Returns the clean-up, which runs after the response to the client. */
export async function abort(task: NodeTask): Promise<(() => Promise<void>) | undefined> {
  const { provision_state: state } = task.node;
  for (const flow of Object.values(FLOWS)) await flow.abort?.[state]?.(task);
  return task.node.driver_internal_info[UNFINISHED_ABORT] === undefined ? undefined : () => finishAbort(task);
}

/** Ends a hold. The next heartbeat continues the flow; without an agent, or if the flow says so, it continues at once. */
export async function unhold(task: NodeTask): Promise<(() => Promise<void>) | undefined> {
  const { flow } = stateRow(task.node.provision_state);
  const atOnce = (flow && FLOWS[flow].wakeAtUnhold) ?? task.node.driver_internal_info.agent_url === undefined;
  // If this conductor dies before it continues, the one that takes the node over polls it.
  await task.fire('unhold', {}, atOnce ? { step_poll_every: 1 } : {});
  return atOnce ? () => wake(task, 'unhold') : undefined;
}
