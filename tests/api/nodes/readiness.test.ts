/** What the report and the states of a node show to the lessee. */
import type { ApiContext, Request } from '../../../api/resource/handler';
import { readinessHandlers } from '../../../api/nodes/readiness';
import { nodeStateHandlers } from '../../../api/nodes/states';
import { loadDocument } from '../../../api/schema/document';
import { Fault } from '../../../model/errors';
import { NOBODY } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const node = {
  ...{ uuid: 'u', owner: 'red', lessee: 'blue', provision_state: 'active', allocation_uuid: 'a', health: null, traits: [] },
  ...{ driver_info: {}, instance_info: {}, properties: {}, driver_internal_info: {}, driver: 'd', conductor_group: '' },
  ...{ last_error: 'a secret error', reservation: 'a-secret-host' },
};
const allocation = { uuid: 'a', owner: 'red', name: 'a-secret-name', state: 'active', node_uuid: 'u' };
type Handler = 'showReadiness' | 'showStates';
async function answerFor(project: string, handler: Handler = 'showReadiness'): Promise<string> {
  const caller = { ...NOBODY, user: 'u', roles: ['manager', 'member', 'reader'], project };
  const request = { caller, minor: 112, params: { node_ident: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' }, onNode: () => {} };
  const options = optionsOf({});
  const context = {
    ...{ options, document: loadDocument(), auth: { identify: async () => caller, ...createEnforcer(options) } },
    store: { nodes: { find: async () => node }, ports: { ofNode: async () => [] }, allocations: { list: async () => [allocation] } },
    current: { conductors: async () => ({ version: '', conductors: [] }) },
    conductor: {
      probe: async () => {
        throw new Fault('NoConductor', { reason: 'none' });
      },
    },
  } as unknown as ApiContext;
  const { body } = await { ...readinessHandlers, ...nodeStateHandlers }[handler]!(request as unknown as Request, context);
  return JSON.stringify(body);
}

it('names the last error and the conductor that reserved the node to the owner only', async () => {
  const [owner, lessee] = [await answerFor('red'), await answerFor('blue')];
  expect(owner).toMatch(/a secret error/);
  expect(owner).toMatch(/a-secret-host/);
  expect(owner).toMatch(/a-secret-name/);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/Requires baremetal:node:get:last_error permission/);
});

it('redacts the last error in the states as in the node', async () => {
  const [owner, lessee] = [await answerFor('red', 'showStates'), await answerFor('blue', 'showStates')];
  expect(owner).toMatch(/a secret error/);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/Requires baremetal:node:get:last_error permission/);
});
