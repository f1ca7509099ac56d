/**
 * Agents that should have sent a heartbeat. A silent agent that runs a step is asked for the state of its command: its heartbeats may be
 * lost although it can still respond. If it does not respond, the step does not fail: the wait has its own limit.
 */
import { instantOf } from '../../model/clock';
import type { NodeRecord } from '../../model/records';
import { STATES, stateRow, type ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { onNodes } from '../core/on-nodes';
import { FLOWS } from '../flows';
import { runningStep } from '../flows/flow';
import { wakeNode } from './heartbeat';

const WAITING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');

/** Whether a step of the flow in which the node waits is running. */
function runsStep(node: NodeRecord): boolean {
  const { flow } = stateRow(node.provision_state);
  return flow !== undefined && runningStep(node, FLOWS[flow]) !== undefined;
}

export async function pollSilentAgents(context: Context): Promise<void> {
  // The response to the agent's lookup tells it to send a heartbeat within this time.
  const oldest = context.clock.now() - context.options['api.ramdisk_heartbeat_timeout'] * 1000;
  await onNodes(context, {
    purpose: 'silent agents',
    filter: { where: { provision_state: WAITING, maintenance: false }, reserved: false },
    only: (node) => {
      const { agent_url: url, agent_last_heartbeat: last } = node.driver_internal_info;
      return typeof url === 'string' && typeof last === 'string' && instantOf(last) < oldest && runsStep(node);
    },
    work: ({ uuid }) => wakeNode(context, uuid, 'silence'),
  });
}
