/** Fails nodes that wait too long for their machine, in the way of their flow. */
import { waitEnd } from '../../model/readiness';
import type { NodeRecord } from '../../model/records';
import { STATES, isWaiting, stateRow, type ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { startTask } from '../core/task';
import { FLOWS } from '../flows';
import type { Flow } from '../flows/flow';
import { failFlow } from '../flows/outcome';

/** The states with a limit. */
export const LIMITED_STATES = (Object.keys(STATES) as ProvisionState[]).filter(isWaiting);

/** The flow whose wait is over its limit; undefined: it may wait. A node in maintenance waits for its operator, without a limit. */
function overdueFlow(context: Context, node: NodeRecord): Flow | undefined {
  const { flow: name } = stateRow(node.provision_state);
  const end = waitEnd(node, context.options);
  return name !== undefined && end !== null && context.clock.now() > end ? FLOWS[name] : undefined;
}

/** Fails the nodes that have been in this state for too long. */
export const failOverdue =
  (state: ProvisionState) =>
  (context: Context): Promise<void> =>
    onNodes(context, {
      purpose: 'callback timeout',
      filter: { where: { provision_state: state, maintenance: false }, reserved: false },
      only: (node) => overdueFlow(context, node) !== undefined,
      work: ({ uuid }) =>
        startTask(context, uuid, { purpose: 'callback timeout', ordinary: true }, async (task) => {
          const flow = overdueFlow(context, task.node);
          if (!flow?.waiting) return undefined;
          const { text } = flow.waiting.timeout;
          return () => failFlow(task, flow, text(task.node), { late: true });
        }),
    });

/** How often to check, in seconds: as the options say, and often enough for the limit; 0: never. */
export function timeoutInterval(state: ProvisionState, options: Context['options']): number {
  const { timeout: option, flow } = stateRow(state);
  const limit = options[option!];
  const interval = options[FLOWS[flow!].waiting?.timeout.interval ?? 'conductor.check_provision_state_interval'];
  return interval === 0 || limit === 0 ? 0 : Math.min(interval, Math.max(0.25, limit / 10));
}
