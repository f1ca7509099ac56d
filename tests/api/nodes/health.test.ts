/** What the health of nodes shows to their owner and to their lessee. */
import { randomBytes, randomUUID } from 'node:crypto';
import { healthHandlers } from '../../../api/nodes/health';
import type { ApiContext } from '../../../api/pipeline/handler';
import { systemClock } from '../../../model/clock';
import { NOBODY } from '../../../policy/caller';
import { createEnforcer } from '../../../policy/enforcer';
import { useDatabase } from '../../support/database';
import { optionsOf } from '../../support/options';

const database = useDatabase();
const options = optionsOf({});
type Body = Readonly<Record<string, unknown>> & { readonly alerts: readonly { readonly uuid: string; readonly text: string }[] };
async function call(
  operation: keyof typeof healthHandlers,
  policy: string,
  project: string,
  more: { readonly query?: object; readonly params?: object } = {},
): Promise<Body> {
  const caller = { ...NOBODY, user: 'u', roles: ['manager', 'member', 'reader'], project };
  const request = {
    caller,
    permission: { policy, isGranted: false },
    minor: 112,
    query: {},
    params: {},
    base: '',
    onNode: () => {},
    ...more,
  };
  const context = {
    options,
    clock: systemClock,
    random: randomBytes,
    store: database.store(),
    auth: { identify: async () => caller, ...createEnforcer(options) },
  } as unknown as ApiContext;
  const handler = healthHandlers[operation] as (request: unknown, context: ApiContext) => Promise<{ readonly body?: unknown }>;
  return (await handler(request, context)).body as Body;
}

it('a lessee sees reports and time limits, and neither sees nor masks what quotes the BMC', async () => {
  const { uuid } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', owner: 'red', lessee: 'blue' });
  const alert = { node_uuid: uuid, subject: '', severity: 'warning', until: null, reported_by: null } as const;
  const secret = randomUUID();
  await database.store().healthAlerts.put(
    [
      { ...alert, uuid: secret, source: 'sensor', rule: 'fan_failed', severity: 'critical', text: 'the fan failed' },
      { ...alert, uuid: randomUUID(), source: 'report', rule: 'jo', text: 'it hums' },
      { ...alert, uuid: randomUUID(), source: 'state', rule: 'deploy', text: 'deploy takes long' },
    ],
    false,
  );
  const params = { node_ident: uuid };
  const texts = ({ alerts }: Body): readonly string[] => alerts.map(({ text }) => text);
  const [owner, lessee] = [
    await call('showNodeHealth', 'node:health:get', 'red', { params }),
    await call('showNodeHealth', 'node:health:get', 'blue', { params }),
  ];
  expect([owner['health'], texts(owner)]).toEqual(['critical', ['the fan failed', 'it hums', 'deploy takes long']]);
  expect([lessee['health'], texts(lessee)]).toEqual(['warning', ['it hums', 'deploy takes long']]);
  await expect(call('showNodeHealth', 'node:health:get', 'green', { params })).rejects.toThrow('could not be found');

  const all = async (project: string) => call('showHealth', 'node:list_all', project);
  expect(await all('red')).toMatchObject({ nodes: { ok: 0, warning: 0, critical: 1 }, alerts: [{ node_uuid: uuid }, {}, {}] });
  expect(await all('blue')).toMatchObject({ nodes: { ok: 0, warning: 1, critical: 0 } });
  expect(texts(await all('blue'))).toEqual(['it hums', 'deploy takes long']);
  expect(await all('green')).toMatchObject({ nodes: { ok: 0, warning: 0, critical: 0 }, alerts: [] });

  const mask = { params: { node_ident: uuid, alert_uuid: secret }, query: { reason: 'x', until: '2099-01-01' } };
  await expect(call('maskHealthAlert', 'node:health:mask', 'blue', mask)).rejects.toThrow(/policy|forbidden|Access was denied/i);
  await call('reportHealthAlert', 'node:health:report', 'blue', {
    params,
    query: { source: 'smartd', severity: 'warning', text: 'a disk' },
  });
  expect(texts(await call('showNodeHealth', 'node:health:get', 'red', { params }))).toContain('a disk');
});
