/** Changes of hardware, of all nodes, as projects see them. */
import type { ApiContext, Request, RequestOf } from '../../../api/pipeline/handler';
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
  const { body } = await hardwareHandlers.listAllHardwareChanges(request, context);
  return (body as { changes: readonly { id: unknown }[] }).changes.map(({ id }) => id);
};

it('lists the records that a caller may read, with a tag of its own', async () => {
  const row = (uuid: string, owner: string, lessee: string | null) => ({
    node_uuid: uuid,
    node_name: null,
    owner,
    lessee,
    digest: 'd',
    boot_id: null,
    recorded_at: '2026-01-01T00:00:00Z',
    received_at: '2026-01-01T00:00:00Z',
    stale: false,
  });
  const listed = async (caller: Caller) => {
    const options = optionsOf({});
    const context = {
      options,
      clock: { now: () => Date.UTC(2026, 0, 1) },
      store: { hardware: { summaries: async () => [row('a', 'red', null), row('b', 'green', 'red')] } },
      auth: { identify: async () => caller, ...createEnforcer(options) },
    } as unknown as ApiContext;
    const permission = { policy: null, isGranted: true };
    const request = { query: {}, headers: {}, caller, permission, base: 'http://api' } as unknown as RequestOf<'listHardware'>;
    const { body, headers } = await hardwareHandlers.listHardware(request, context);
    return { nodes: (body as { hardware: readonly { node_uuid: string }[] }).hardware.map(({ node_uuid: uuid }) => uuid), headers };
  };
  const caller = { ...NOBODY, user: 'u', roles: ['reader'] };
  const [project, system] = [await listed({ ...caller, project: 'red' }), await listed({ ...caller, system: true })];
  expect([project.nodes, system.nodes]).toEqual([['a'], ['a', 'b']]);
  expect(project.headers).not.toEqual(system.headers);
});
it('shows hardware changes to the owner and to readers of the system, but not to the lessee', async () => {
  const caller = { ...NOBODY, user: 'u', roles: ['reader'] };
  expect(await idsFor({ ...caller, project: 'red' })).toEqual([1, 3]);
  expect(await idsFor({ ...caller, system: true })).toEqual([1, 2, 3]);
});
