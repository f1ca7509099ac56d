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

it('a lessee changes no report of somebody else', async () => {
  const { uuid } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', owner: 'red', lessee: 'blue' });
  const asked = { node_uuid: uuid, source: 'report', rule: 'operator', subject: 'fan', until: null } as const;
  const theirs = { ...asked, uuid: randomUUID(), severity: 'critical', text: 'stop this machine', reported_by: 'operator' } as const;
  await database.store().healthAlerts.put([theirs], false);
  const soften = {
    source: 'operator',
    subject: 'fan',
    severity: 'warning',
    text: 'fine',
    until: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const params = { node_ident: uuid };
  await expect(call('reportHealthAlert', 'node:health:report', 'blue', { params, query: soften })).rejects.toThrow(
    'Another user has an open report',
  );
  expect(await database.store().healthAlerts.findOpen(theirs)).toMatchObject({ severity: 'critical', until: null });
  await call('reportHealthAlert', 'node:health:report', 'blue', { params, query: { ...soften, subject: 'noise' } });
  await call('reportHealthAlert', 'node:health:report', 'blue', { params, query: { ...soften, subject: 'noise', text: 'louder' } });
});

it('a machine that invents parts has at most 256 open alerts, the critical ones first, and still takes reports', async () => {
  const { uuid } = await database.store().nodes.create({ uuid: randomUUID(), driver: 'fake-hardware' });
  const { healthAlerts } = database.store();
  const invented = (count: number, severity: 'warning' | 'critical', kind: string) =>
    Array.from({ length: count }, (_, index) => ({
      node_uuid: uuid,
      uuid: randomUUID(),
      source: 'hardware' as const,
      rule: 'drive_lost',
      subject: `${kind} ${index}`,
      severity,
      text: 'lost',
      until: null,
      reported_by: null,
    }));
  const warnings = invented(200, 'warning', 'fan');
  expect(await healthAlerts.put([...warnings, ...invented(100, 'critical', 'disk')], false)).toHaveLength(256);
  expect((await healthAlerts.list({ nodeUuid: uuid, severity: 'critical', limit: 1000 })).length).toBe(100);
  expect(await healthAlerts.put(invented(16_384, 'critical', 'module'), false)).toEqual([]);
  // What is open may change, and reports have a limit of their own.
  expect(await healthAlerts.put([{ ...warnings[0]!, text: 'really lost' }], false)).toHaveLength(1);
  expect(await healthAlerts.put([{ ...warnings[0]!, uuid: randomUUID(), source: 'report', rule: 'jo' }], false)).toHaveLength(1);
});
