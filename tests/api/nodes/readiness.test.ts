/** What the readiness report and the states of a node show to the lessee. */
import type { ApiContext, Request } from '../../../api/resource/handler';
import { readinessHandlers } from '../../../api/nodes/readiness';
import { nodeStateHandlers } from '../../../api/nodes/states';
import { loadDocument } from '../../../api/schema/document';
import { Fault } from '../../../model/errors';
import { NOBODY } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const node = {
  uuid: 'u',
  owner: 'red',
  lessee: 'blue',
  provision_state: 'active',
  allocation_uuid: 'a',
  health: null,
  traits: [],
  driver_info: {},
  instance_info: { image_source: 'http://images.example/own' },
  properties: {},
  driver_internal_info: {},
  driver: 'd',
  conductor_group: '',
  last_error: 'a secret error',
  reservation: 'a-secret-host',
};
const allocation = { uuid: 'a', owner: 'red', name: 'a-secret-name', state: 'active', node_uuid: 'u' };
type Handler = 'showReadiness' | 'showStates';
const NO_CONDUCTOR = async (): Promise<unknown> => {
  throw new Fault('NoConductor', { reason: 'none' });
};
async function answerFor(project: string, handler: Handler = 'showReadiness', probe = NO_CONDUCTOR): Promise<string> {
  const caller = { ...NOBODY, user: 'u', roles: ['manager', 'member', 'reader'], project };
  const request = {
    caller,
    permission: { policy: null, isGranted: true },
    minor: 112,
    params: { node_ident: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' },
    onNode: () => {},
  };
  const options = optionsOf({});
  const context = {
    options,
    document: loadDocument(),
    auth: { identify: async () => caller, ...createEnforcer(options) },
    store: { nodes: { find: async () => node }, ports: { ofNode: async () => [] }, allocations: { list: async () => [allocation] } },
    current: { conductors: async () => ({ version: '', conductors: [] }) },
    conductor: {
      probe,
    },
  } as unknown as ApiContext;
  const { body } = await { ...readinessHandlers, ...nodeStateHandlers }[handler]!(request as unknown as Request, context);
  return JSON.stringify(body);
}

it("shows the last error, the reservation and the allocation's name to the owner only", async () => {
  const [owner, lessee] = [await answerFor('red'), await answerFor('blue')];
  expect(owner).toMatch(/a secret error/);
  expect(owner).toMatch(/a-secret-host/);
  expect(owner).toMatch(/a-secret-name/);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/Requires baremetal:node:get:last_error permission/);
});

it('redacts the last error for the lessee in the states, too', async () => {
  const [owner, lessee] = [await answerFor('red', 'showStates'), await answerFor('blue', 'showStates')];
  expect(owner).toMatch(/a secret error/);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/Requires baremetal:node:get:last_error permission/);
});

it('shows errors with addresses of the infrastructure to the owner only', async () => {
  const probe = async () => ({
    power: { error: 'no answer from secret.example' },
    validation: {},
    bootMode: { now: null, changeable: false },
    deploying: { count: 0, limit: 1 },
    cleans: false,
    missingSteps: { steps: [], agentKnown: true },
    images: [
      { name: 'deploy_kernel', href: 'http://secret.example/kernel', error: 'secret.example refuses' },
      { name: 'image_source', href: 'http://images.example/own', error: 'HTTP status 404' },
    ],
  });
  const [owner, lessee] = [await answerFor('red', 'showReadiness', probe), await answerFor('blue', 'showReadiness', probe)];
  expect(owner.match(/secret\.example/g)!.length).toBeGreaterThan(1);
  expect(lessee).not.toMatch(/secret/);
  expect(lessee).toMatch(/HTTP status 404/);
});
