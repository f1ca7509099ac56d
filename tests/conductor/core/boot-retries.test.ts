import { missedBoot } from '../../../conductor/engine/boot-retries';
import type { NodeRecord } from '../../../model/records';
import { nodeRecord } from '../../support/task';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const EARLIER = '2026-03-01T11:00:00';
const JUST_NOW = '2026-03-01T11:59:30';
const node = (changes: Partial<NodeRecord>): NodeRecord =>
  nodeRecord({
    provision_state: 'wait call-back',
    provision_updated_at: `${EARLIER}Z`,
    maintenance: false,
    driver_internal_info: {},
    ...changes,
  });

it.each<[string, Partial<NodeRecord>, boolean]>([
  ['waits for the agent of a deployment', {}, true],
  ['waits for the agent of a cleaning', { provision_state: 'clean wait' }, true],
  ['waits for the agent of a rescue', { provision_state: 'rescue wait' }, true],
  ['is inspected', { provision_state: 'inspect wait' }, false],
  ['is serviced', { provision_state: 'service wait' }, false],
  ['is active', { provision_state: 'active' }, false],
  ['is in maintenance', { maintenance: true }, false],
  ['waits for a short time', { provision_updated_at: `${JUST_NOW}Z` }, false],
  ['was powered on a short time ago', { driver_internal_info: { last_power_state_change: JUST_NOW } }, false],
  ['was powered on long ago', { driver_internal_info: { last_power_state_change: EARLIER } }, true],
  ['was heard of a short time ago', { driver_internal_info: { agent_last_heartbeat: JUST_NOW } }, false],
  ['has an agent that called', { driver_internal_info: { agent_secret_token: 'a' } }, false],
  ['has a step that asks the BMC', { driver_internal_info: { step_poll_every: 5 } }, false],
  ['has a step before the ramdisk', { driver_internal_info: { ramdisk_boot: 'later' } }, false],
  ['updates its firmware', { driver_internal_info: { redfish_fw_updates: [{}] } }, false],
  ['starts the ramdisk by kexec', { driver_internal_info: { resident_kexec: { at: 1, kernel: 'k' } } }, false],
])('a machine that %s: missed its boot: %s', (_, changes, expected) => {
  expect(missedBoot(node(changes), NOW, 60)).toBe(expected);
});
