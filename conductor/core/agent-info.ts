/**
 * The keys of driver_internal_info about an agent and about the steps of a flow, and when each of them is removed. `agent_verify_ca` is
 * the certificate itself (PEM), not the name of a file.
 */
import { mayFastTrack } from '../../drivers/agent/fast-track';
import type { Task } from '../../drivers/interfaces';
import type { NodeRecord } from '../../model/records';
import type { InternalChanges } from './node-task';

/** Changes that remove these keys. */
const none = (...keys: readonly string[]): InternalChanges => Object.fromEntries(keys.map((key) => [key, undefined]));

/** The agent is gone, or counts as gone: an agent must look the node up again before its heartbeats count. */
export const FORGET_AGENT: InternalChanges = none(
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
export const FORGET_TOKEN_AND_URL: InternalChanges = none(
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
/** What steps of Redfish interfaces started in the machine. It is forgotten when the flow ends, whatever its result. */
const FORGET_REDFISH: InternalChanges = none('redfish_bios_state', 'raid_configs');
/** How often the running step is polled: removed when the wait ends. */
export const FORGET_POLL: InternalChanges = none('step_poll_every');
/** The lists become null, as in Ironic. */
export const FORGET_CLEANING: InternalChanges = {
  ...FORGET_TOKEN_AND_URL,
  ...FORGET_POLL,
  ...FORGET_REDFISH,
  clean_steps: null,
  ...none(
    'agent_cached_clean_steps',
    'clean_step_index',
    'cleaning_disable_ramdisk',
    'steps_validated',
    'declarative_cleaning',
    'cleaning_reboot',
  ),
};
export const FORGET_DEPLOYING: InternalChanges = {
  ...FORGET_TOKEN_AND_URL,
  ...FORGET_POLL,
  ...FORGET_REDFISH,
  deploy_steps: null,
  ...none('agent_cached_deploy_steps', 'deploy_step_index', 'steps_validated', 'user_deploy_steps', 'deployment_reboot'),
};
export const FORGET_SERVICING: InternalChanges = {
  ...FORGET_TOKEN_AND_URL,
  ...FORGET_POLL,
  ...FORGET_REDFISH,
  service_steps: null,
  ...none('agent_cached_service_steps', 'service_step_index', 'service_disable_ramdisk', 'steps_validated', 'servicing_reboot'),
};
/** After a failure of manual steps. The list and its options stay, so that clients can read them. */
export const forgetPosition = (kind: 'clean' | 'service'): InternalChanges => ({
  ...FORGET_TOKEN_AND_URL,
  ...FORGET_POLL,
  ...FORGET_REDFISH,
  ...none(`${kind}_step_index`, 'steps_validated', 'cleaning_reboot', 'servicing_reboot'),
});
/** After the end of an instance. */
export const FORGET_INSTANCE: InternalChanges = {
  ...FORGET_DEPLOYING,
  ...none(
    'instance',
    'root_uuid_or_disk_id',
    'is_whole_disk_image',
    'is_source_a_path',
    'deploy_boot_mode',
    'automatic_lessee',
    'boot_from_volume',
  ),
};
