/**
 * Agents that should have spoken: one that was told to run a step, and is not heard of any more, is asked for its command. Its heartbeats may be
 * lost on the way here while it still answers; that it is not reached either, is no reason to fail: the wait has its own limit.
 */
import { instantOf } from '../../model/clock';
import type { NodeRecord } from '../../model/records';
import { STATES, stateRow, type FlowName, type ProvisionState } from '../../model/states';
import type { Context } from '../core/context';
import { goOn } from './heartbeat';
import { onNodes } from '../core/on-nodes';

const WAITING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');

type Steps = Pick<NodeRecord, 'clean_step' | 'deploy_step' | 'service_step'>;
/** A step of the flow that it waits in; an earlier flow may have left its own. */
const runs = (flow: FlowName | undefined, { clean_step: clean, deploy_step: deploy, service_step: service }: Steps): boolean => {
  const running: Partial<Record<FlowName, Steps[keyof Steps]>> = { clean, deploy, service };
  return flow !== undefined && running[flow]?.step !== undefined;
};

export async function askSilentAgents(context: Context): Promise<void> {
  // A heartbeat is told to come within this time.
  const oldest = context.clock.now() - context.options['api.ramdisk_heartbeat_timeout'] * 1000;
  await onNodes(context, {
    purpose: 'silent agents',
    filter: { where: { provision_state: WAITING, maintenance: false }, reserved: false },
    only: ({ driver_internal_info: internal, provision_state: state, ...node }) =>
      typeof internal.agent_url === 'string' &&
      typeof internal.agent_last_heartbeat === 'string' &&
      instantOf(internal.agent_last_heartbeat) < oldest &&
      runs(stateRow(state).flow, node),
    work: ({ uuid }) => goOn(context, uuid, 'silence'),
  });
}
