/**
 * The keys of driver_internal_info about an agent, and when each of them is removed. `agent_verify_ca` is the certificate itself (PEM),
 * not the name of a file.
 */
import { mayFastTrack } from '../../drivers/agent/fast-track';
import type { Task } from '../../drivers/interfaces';
import type { NodeRecord } from '../../model/records';
import type { InternalChanges } from './node-task';

/** Changes that remove these keys. */
export const removing = (...keys: readonly string[]): InternalChanges => Object.fromEntries(keys.map((key) => [key, undefined]));

/** The agent is gone, or counts as gone: an agent must look the node up again before its heartbeats count. */
export const FORGET_AGENT: InternalChanges = removing(
  'agent_secret_token',
  'agent_url',
  'agent_version',
  'agent_verify_ca',
  'agent_status',
  'agent_status_message',
  'agent_cached_clean_steps',
  'agent_cached_deploy_steps',
  'agent_cached_service_steps',
);
export const FORGET_TOKEN_AND_URL: InternalChanges = removing(
  'agent_secret_token',
  'agent_secret_token_pregenerated',
  'agent_url',
  'agent_verify_ca',
);
/**
 * `forgotten`, but the token and the URL of an agent that is still needed stay: for the node's power, or for the next flow (fast track).
 * @param node as it is when the flow begins or ends
 */
export function keepAgentIfNeeded(task: Task, forgotten: InternalChanges, node: NodeRecord = task.node): InternalChanges {
  if (!task.driver.power.throughAgent && !mayFastTrack(node, task.options)) return forgotten;
  return Object.fromEntries(Object.entries(forgotten).filter(([key]) => !Object.hasOwn(FORGET_TOKEN_AND_URL, key)));
}
