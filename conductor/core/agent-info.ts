/**
 * What driver_internal_info holds of an agent and of a flow's steps, and which of it is forgotten when. `agent_verify_ca` is the
 * certificate itself (PEM), not the name of a file.
 */
import { mayFastTrack } from '../../drivers/agent/fast-track';
import type { Task } from '../../drivers/interfaces';
import type { NodeRecord } from '../../model/records';
import type { InternalChanges } from './node-task';

const none = (...keys: readonly string[]): InternalChanges => Object.fromEntries(keys.map((key) => [key, undefined]));

/** The agent is gone, or shall be taken for gone: only one that looks its node up anew is heard again. */
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
 * The same keys, but those of an agent that is still needed: the node's power goes through it, or the next flow goes on with it.
 * @param node as it is when the flow begins or ends
 */
export function unlessNeeded(task: Task, forgotten: InternalChanges, node: NodeRecord = task.node): InternalChanges {
  if (!task.driver.power.throughAgent && !mayFastTrack(node, task.options)) return forgotten;
  return Object.fromEntries(Object.entries(forgotten).filter(([key]) => !Object.hasOwn(FORGET_TOKEN_AND_URL, key)));
}
/** What steps of Redfish interfaces keep of work that goes on in the machine: it ends with the flow, however that ends. */
const FORGET_REDFISH: InternalChanges = none('redfish_bios_state', 'raid_configs');
/** Ends with every wait: how often the running step is asked for. */
export const FORGET_POLL: InternalChanges = none('step_poll_every');
/** The lists stay as null: clients see that there was one. */
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
/** What a failure of manual steps forgets: the list, and how it was asked for, stay for whoever looks. */
export const forgetPosition = (kind: 'clean' | 'service'): InternalChanges => ({
  ...FORGET_TOKEN_AND_URL,
  ...FORGET_POLL,
  ...FORGET_REDFISH,
  ...none(`${kind}_step_index`, 'steps_validated', 'cleaning_reboot', 'servicing_reboot'),
});
/** What the end of an instance leaves nothing of. */
export const FORGET_INSTANCE: InternalChanges = {
  ...FORGET_DEPLOYING,
  ...none('instance', 'root_uuid_or_disk_id', 'is_whole_disk_image', 'is_source_a_path', 'deploy_boot_mode', 'automatic_lessee'),
};
