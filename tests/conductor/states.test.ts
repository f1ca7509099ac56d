/** The provision state and the target to which each event leads. */
import { transition } from '../../conductor/core/task';
import type { Event, ProvisionState } from '../../model/states';
import { nodeRecord } from '../support/task';
import { errorWith } from '../support/expect';

it.each<[ProvisionState, ProvisionState | null, Event, ProvisionState, ProvisionState | null]>([
  ['enroll', null, 'manage', 'verifying', 'manageable'],
  ['verifying', 'manageable', 'fail', 'enroll', null],
  ['manageable', null, 'provide', 'cleaning', 'available'],
  ['cleaning', 'manageable', 'wait', 'clean wait', 'manageable'],
  ['clean wait', 'manageable', 'resume', 'cleaning', 'manageable'],
  ['clean wait', 'available', 'abort', 'clean failed', 'available'],
  ['cleaning', 'manageable', 'fail', 'clean failed', 'manageable'],
  ['clean failed', 'manageable', 'manage', 'manageable', null],
  ['deleting', 'available', 'clean', 'cleaning', 'available'],
  ['deleting', 'available', 'fail', 'error', null],
  ['available', null, 'deploy', 'deploying', 'active'],
  ['deploy failed', 'active', 'delete', 'deleting', 'available'],
  ['wait call-back', 'active', 'delete', 'deleting', 'available'],
  ['inspect failed', 'manageable', 'inspect', 'inspecting', 'manageable'],
  ['service failed', 'active', 'rescue', 'rescuing', 'rescue'],
])('from %s with the target %s, the event %s leads to %s with the target %s', (from, bound, event, to, target) => {
  expect(transition(nodeRecord({ provision_state: from, target_provision_state: bound }), event)).toEqual({ to, target });
});

it('refuses an event that the provision state does not allow', () => {
  expect(() => transition(nodeRecord({ provision_state: 'active' }), 'provide')).toThrow(
    errorWith({ status: 400, name: 'InvalidStateRequested' }),
  );
});
