import { randomBytes } from 'node:crypto';
import type { Context } from '../../../conductor/core/context';
import { entryOf } from '../../../conductor/core/history';
import { systemClock } from '../../../model/clock';
import type { NodeRecord } from '../../../model/records';

const node = { uuid: 'n', provision_state: 'active', target_provision_state: null, provision_updated_at: null } as NodeRecord;
const context = {
  options: { 'conductor.node_history': true },
  random: randomBytes,
  host: 'here',
  clock: systemClock,
} as unknown as Context;

it('names the user and the project of the request that caused the entry', () => {
  const origin = { requestId: 'req-1', user: 'u', project: 'p' };
  expect(entryOf({ ...context, origin }, node, { type: 'deploying', event: 'it broke', error: true })).toMatchObject({
    user: 'u',
    project: 'p',
  });
});
it('names nobody for work without a request', () => {
  expect(entryOf(context, node, { type: 'monitor', event: 'it is away', error: true })).toMatchObject({ user: null, project: null });
});
