/** What the report of a node shows to the lessee. */
import type { ApiContext, Request } from '../../../api/resource/handler';
import { readinessHandlers } from '../../../api/nodes/readiness';
import { loadDocument } from '../../../api/schema/document';
import { Fault } from '../../../model/errors';
import { NOBODY } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const node = {
  ...{ uuid: 'u', owner: 'red', lessee: 'blue', provision_state: 'active', allocation_uuid: null, health: null, traits: [] },
  ...{ driver_info: {}, instance_info: {}, properties: {}, driver_internal_info: {}, driver: 'd', conductor_group: '' },
  ...{ last_error: 'a secret error', reservation: 'a-secret-host' },
};
async function reportFor(project: string): Promise<string> {
  const caller = { ...NOBODY, user: 'u', roles: ['manager', 'member', 'reader'], project };
  const request = { caller, minor: 112, params: { node_ident: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' }, onNode: () => {} };
  const options = optionsOf({});
  const context = {
    ...{ options, document: loadDocument(), auth: { identify: async () => caller, ...createEnforcer(options) } },
    store: { nodes: { find: async () => node }, ports: { ofNode: async () => [] } },
    current: { conductors: async () => ({ version: '', conductors: [] }) },
    conductor: {
      probe: async () => {
        throw new Fault('NoConductor', { reason: 'none' });
      },
    },
  } as unknown as ApiContext;
  const { body } = await readinessHandlers['showReadiness']!(request as unknown as Request, context);
  return JSON.stringify(body);
}

it('names the last error and the conductor that reserved the node to the owner only', async () => {
  const [owner, lessee] = [await reportFor('red'), await reportFor('blue')];
  expect(owner).toMatch(/a secret error/);
  expect(owner).toMatch(/a-secret-host/);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/Requires baremetal:node:get:last_error permission/);
});
