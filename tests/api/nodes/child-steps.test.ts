/** Steps that run on the children of a node: the caller needs the right to each child. */
import type { ApiContext, Request } from '../../../api/resource/handler';
import { nodeStateHandlers } from '../../../api/nodes/states';
import { loadDocument } from '../../../api/schema/document';
import { createValidators } from '../../../api/schema/schema';
import { NOBODY } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const node = { uuid: '6ba7b810-9dad-11d1-80b4-00c04fd430c8', owner: 'red', lessee: 'blue', provision_state: 'manageable', traits: [] };
const child = { uuid: '6ba7b811-9dad-11d1-80b4-00c04fd430c8', owner: 'red', lessee: null as string | null };

async function clean(project: string, lesseeOfChild: string | null, step: object): Promise<number> {
  const caller = { ...NOBODY, user: 'u', roles: ['manager', 'member', 'reader'], project };
  const steps = [{ interface: 'deploy', step: 'erase_devices', args: {}, execute_on_child_nodes: true, ...step }];
  const request = {
    caller,
    permission: { policy: null, isGranted: true },
    minor: 112,
    base: '',
    params: { node_ident: node.uuid },
    onNode: () => {},
    query: { target: 'clean', clean_steps: steps },
  } as unknown as Request;
  const options = optionsOf({});
  const existing = { ...child, lessee: lesseeOfChild };
  let provisions = 0;
  const context = {
    options,
    document: loadDocument(),
    validators: createValidators(),
    auth: { identify: async () => caller, ...createEnforcer(options) },
    store: { nodes: { find: async (uuid: string) => (uuid === node.uuid ? node : existing), listColumns: async () => [existing] } },
    conductor: { provision: async () => void provisions++ },
  } as unknown as ApiContext;
  await nodeStateHandlers['setProvision']!(request, context);
  return provisions;
}

const NAMED = { limit_child_node_execution: [child.uuid] };
it.each([
  ['all', {}],
  ['all (an empty list)', { limit_child_node_execution: [] }],
  ['one', NAMED],
])('steps on %s of the children need access to each child', async (_, step) => {
  expect(await clean('red', null, step)).toBe(1);
  expect(await clean('blue', 'blue', step)).toBe(1);
  await expect(clean('blue', null, step)).rejects.toMatchObject(step === NAMED ? { name: 'NodeNotFound' } : { name: 'HTTPForbidden' });
});
