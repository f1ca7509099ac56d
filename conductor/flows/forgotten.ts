/** Keys of driver_internal_info that flows with steps remove at their end. */
import type { SavedKind } from '../../drivers/interfaces';
import { FORGET_TOKEN_AND_URL, removing } from '../core/agent-info';
import type { InternalChanges } from '../core/node-task';

/** How often the running step is polled: removed when the wait ends. */
export const FORGET_POLL: InternalChanges = removing('step_poll_every');
/**
 * What every flow with steps forgets, whatever its result.
 * The last two keys say what steps of Redfish interfaces started in the machine.
 */
const FORGET_RUN: InternalChanges = { ...FORGET_TOKEN_AND_URL, ...FORGET_POLL, ...removing('redfish_bios_state', 'raid_configs') };

/**
 * What the end of a flow forgets. The list of steps becomes null, as in Ironic.
 * @param more keys that only this flow has
 */
export const forgottenSteps = (kind: SavedKind, ...more: readonly string[]): InternalChanges => ({
  ...FORGET_RUN,
  [`${kind}_steps`]: null,
  ...removing(`agent_cached_${kind}_steps`, `${kind}_step_index`, 'steps_validated', ...more),
});
/** After a failure of manual steps. The list and its options stay, so that clients can read them. */
export const forgetPosition = (kind: 'clean' | 'service'): InternalChanges => ({
  ...FORGET_RUN,
  ...removing(`${kind}_step_index`, 'steps_validated', 'cleaning_reboot', 'servicing_reboot'),
});
