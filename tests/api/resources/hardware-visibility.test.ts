/** Changes of hardware, of all nodes, as projects see them. */
import type { ApiContext, Request } from '../../../api/resource/handler';
import { hardwareHandlers } from '../../../api/resources/hardware';
import { NOBODY, type Caller } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { optionsOf } from '../../support/options';

const change = (id: number, owner: string | null, lessee: string | null) => ({ id, owner, lessee, key: `disk ${id}` });
const idsFor = async (caller: Caller): Promise<readonly unknown[]> => {
  const request = { query: {}, caller, permission: { policy: null, isGranted: true }, base: 'http://api' } as unknown as Request;
  const options = optionsOf({});
  const rows = [change(1, 'red', null), change(2, 'green', 'red'), change(3, 'red', 'green')];
  const context = {
    options,
    store: { hardware: { changes: async () => rows } },
    auth: { identify: async () => caller, ...createEnforcer(options) },
  } as unknown as ApiContext;
  const { body } = await hardwareHandlers['listAllHardwareChanges']!(request, context);
  return (body as { changes: readonly { id: unknown }[] }).changes.map(({ id }) => id);
};

it('shows hardware changes to the owner and to readers of the system, but not to the lessee', async () => {
  const caller = { ...NOBODY, user: 'u', roles: ['reader'] };
  expect(await idsFor({ ...caller, project: 'red' })).toEqual([1, 3]);
  expect(await idsFor({ ...caller, system: true })).toEqual([1, 2, 3]);
});
