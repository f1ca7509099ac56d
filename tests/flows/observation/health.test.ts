/** Health end to end: sensors of simulated machines, alerts over HTTP, masks, reports, events, history, metrics, and a restart. */
import { readFaults } from '../../../simulator/bmc/faults';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    options: {
      'DEFAULT.enabled_hardware_types': ['redfish', 'ipmi'],
      'sensor_data.send_sensor_data': true,
      'sensor_data.enable_for_undeployed_nodes': true,
      'sensor_data.interval': 1,
      'sensor_data.interval_fan': 1,
      'sensor_data.interval_power': 1,
      'sensor_data.interval_temperature': 1,
      'sensor_data.interval_drive': 1,
      'recorder.enabled': true,
    },
  });
});
afterAll(() => whole.close(), 30_000);

interface Alert {
  readonly uuid: string;
  readonly source: string;
  readonly rule: string;
  readonly subject: string;
  readonly severity: string;
  readonly text: string;
  readonly masked: boolean;
}
const healthOf = async (uuid: string, query = '') =>
  (await whole.call('GET', `/v1/nodes/${uuid}/health${query}`)).body as unknown as {
    readonly health: string;
    readonly work: unknown;
    readonly alerts: readonly Alert[];
    readonly cleared?: readonly Alert[];
  };
let next = 0;
/** A node in the state manageable, whose machine is on. */
async function manageable(): Promise<{
  readonly uuid: string;
  readonly name: string;
  readonly stop: (...fans: readonly string[]) => void;
}> {
  const machine = whole.fleet.machines[next]!;
  const name = `node-${next++}`;
  const uuid = await whole.enrol(machine, { name });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
  await until('the machine is on', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['power_state'] === 'power on');
  return { uuid, name, stop: (...fans) => void (machine.faults.now = readFaults({ stopped: fans })) };
}
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
const eventsOf = async (uuid: string) => {
  await database.eventsReadable();
  const { body } = await whole.call('GET', `/v1/events?node=${uuid}&kind=health`);
  return (body['events'] as readonly { readonly payload: Readonly<Record<string, unknown>> }[]).map(({ payload }) => payload);
};

it('a fan that stops is an alert until it turns again, also over a restart', async () => {
  const { uuid, name, stop } = await manageable();
  expect(await healthOf(uuid)).toMatchObject({ node_uuid: uuid, node_name: name, health: 'ok', work: null, alerts: [] });
  stop('Fan1');
  await until('the alert', async () => (await healthOf(uuid)).health === 'critical');
  const failed = { source: 'sensor', rule: 'fan_failed', subject: 'fan 0', severity: 'critical', masked: false };
  await until('both alerts', async () => (await healthOf(uuid)).alerts.length === 2);
  expect((await healthOf(uuid)).alerts).toMatchObject([failed, { rule: 'fan_stopped', subject: 'fan 0', text: 'fan 0 does not turn' }]);
  await whole.restart();
  expect((await whole.call('GET', '/v1/health')).body).toMatchObject({
    nodes: { ok: 0, warning: 0, critical: 1 },
    alerts: [{ node_uuid: uuid, node_name: name, ...failed }, { rule: 'fan_stopped' }],
  });
  // Clients of Ironic see nothing new.
  expect((await whole.call('GET', `/v1/nodes/${uuid}`)).body).not.toHaveProperty('health_alerts');
  stop();
  await until('no alert', async () => (await healthOf(uuid)).health === 'ok');
  expect((await healthOf(uuid, '?cleared=true')).cleared).toMatchObject([expect.anything(), expect.anything()]);
  const events = await eventsOf(uuid);
  expect(events.map(({ change, rule, health }) => [change, rule, health])).toEqual([
    ['raised', 'fan_failed', 'critical'],
    ['raised', 'fan_stopped', 'critical'],
    ['cleared', expect.any(String), expect.any(String)],
    ['cleared', expect.any(String), 'ok'],
  ]);
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`);
  const texts = (body['history'] as readonly { readonly event: string }[]).map(({ event }) => event);
  expect(texts).toEqual(expect.arrayContaining(['Health, critical: fan 0 does not turn', 'Health, cleared: fan 0 does not turn']));
});

it('a masked alert counts no more until its mask ends, also if it is raised again', async () => {
  const { uuid, stop } = await manageable();
  stop('*');
  await until('the alerts', async () => (await healthOf(uuid)).alerts.length === 4);
  const path = (alert: Alert): string => `/v1/nodes/${uuid}/health/alerts/${alert.uuid}/mask`;
  const mask = { until: inDays(3), reason: 'the spare part is ordered' };
  for (const alert of (await healthOf(uuid)).alerts)
    expect(await whole.call('PUT', path(alert), mask)).toMatchObject({
      status: 200,
      body: { masked: true, mask: { reason: mask.reason, by: null } },
    });
  expect(await healthOf(uuid)).toMatchObject({ health: 'ok', alerts: [{ masked: true }, {}, {}, {}] });
  expect((await whole.call('GET', '/v1/health?masked=false')).body).toMatchObject({ nodes: { critical: 0 }, alerts: [] });
  expect((await eventsOf(uuid)).at(-1)).toMatchObject({ change: 'masked', health: 'ok' });
  stop();
  await until('they are cleared', async () => (await healthOf(uuid)).alerts.length === 0);
  stop('Fan1');
  await until('they are raised again', async () => (await healthOf(uuid)).alerts.length === 2);
  const again = await healthOf(uuid);
  expect(again).toMatchObject({ health: 'ok', alerts: [{ masked: true }, { masked: true }] });
  expect(await whole.call('DELETE', path(again.alerts[0]!))).toMatchObject({ status: 204 });
  expect(await healthOf(uuid)).toMatchObject({ health: 'critical', alerts: [{ masked: false }, { masked: true }] });
  stop();
  await until('they are cleared', async () => (await healthOf(uuid)).alerts.length === 0);
});

it('an alert that an operator clears is raised again while its cause lasts', async () => {
  const { uuid, stop } = await manageable();
  stop('Fan2');
  await until('the alerts', async () => (await healthOf(uuid)).alerts.length === 2);
  const [first] = (await healthOf(uuid)).alerts;
  const path = `/v1/nodes/${uuid}/health/alerts/${first!.uuid}`;
  expect(await whole.call('DELETE', path)).toMatchObject({ status: 204 });
  expect(await whole.call('DELETE', path)).toMatchObject({ status: 404 });
  await until('a new one', async () =>
    (await healthOf(uuid)).alerts.some(({ rule, uuid: other }) => rule === first!.rule && other !== first!.uuid),
  );
  // Off: nothing is known of its fans.
  await whole.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power off' });
  stop();
  await until('it is off', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['power_state'] === 'power off');
  expect((await healthOf(uuid)).alerts).toHaveLength(2);
});

it('takes reports of people and programs, which end by themselves', async () => {
  const { uuid } = await manageable();
  const path = `/v1/nodes/${uuid}/health/alerts`;
  const report = { source: 'smartd', subject: '/dev/sda', severity: 'warning', text: '12 sectors are pending', until: inDays(1) };
  const first = await whole.call('POST', path, report);
  expect(first).toMatchObject({ status: 201, body: { source: 'report', rule: 'smartd', subject: '/dev/sda', severity: 'warning' } });
  const second = await whole.call('POST', path, { ...report, severity: 'critical', text: 'the disk fails' });
  expect(second).toMatchObject({ status: 201, body: { uuid: first.body['uuid'], severity: 'critical', text: 'the disk fails' } });
  expect(await healthOf(uuid)).toMatchObject({ health: 'critical', alerts: [{ text: 'the disk fails' }] });
  expect((await eventsOf(uuid)).map(({ change }) => change)).toEqual(['raised', 'changed']);
  await whole.call('POST', path, { source: 'jo', severity: 'warning', text: 'it hums' });
  await database.query(`UPDATE health_alerts SET until = now() - interval '1 s' WHERE rule = 'smartd'`);
  expect(await database.store().healthAlerts.setExpired({ user: null })).toBe(1);
  expect(await healthOf(uuid)).toMatchObject({ health: 'warning', alerts: [{ rule: 'jo', until: null }] });

  const refused: readonly (readonly [change: object, text: string])[] = [
    [{ source: undefined }, 'source: it is needed'],
    [{ source: 'x'.repeat(101) }, 'source: it has more than 100 characters'],
    [{ severity: 'info' }, 'severity: it is warning or critical'],
    [{ severity: 7 }, 'Expected string for severity'],
    [{ text: ' ' }, 'text: it is empty'],
    [{ text: 'a\u001b[31m' }, 'text: it has control characters'],
    [{ text: 'a\0' }, 'text has the character U+0000'],
    [{ subject: 'x\u202ey' }, 'subject: it has control characters'],
    [{ until: 'tomorrow' }, 'until: it is not a time'],
    [{ until: inDays(-1) }, 'until: it is not in the future'],
    [{ until: inDays(367) }, 'until: it is more than 366 days from now'],
    [{ colour: 'red' }, 'Unexpected arguments: colour'],
  ];
  for (const [change, text] of refused) {
    const answer = await whole.call('POST', path, { ...report, ...change });
    expect([change, answer.status, String(answer.body['error_message'])]).toEqual([change, 400, expect.stringContaining(text) as unknown]);
  }
  const [alert] = (await healthOf(uuid)).alerts;
  const mask = `${path}/${alert!.uuid}/mask`;
  for (const [body, text] of [
    [{ until: inDays(1) }, 'reason: it is needed'],
    [{ reason: 'x' }, 'until: it is needed'],
    [{ reason: 'x', until: inDays(-1) }, 'until: it is not in the future'],
  ] as const)
    expect(String((await whole.call('PUT', mask, body)).body['error_message'])).toContain(text);
  expect(await whole.call('PUT', `${path}/${uuid}/mask`, { reason: 'x', until: inDays(1) })).toMatchObject({ status: 404 });

  for (let n = 0; n < 99; n++)
    expect(await whole.call('POST', path, { source: `p${n}`, severity: 'warning', text: 'x' })).toMatchObject({ status: 201 });
  expect(await whole.call('POST', path, { source: 'one more', severity: 'warning', text: 'x' })).toMatchObject({ status: 409 });
  expect(await whole.call('POST', path, { source: 'p0', severity: 'critical', text: 'y' })).toMatchObject({ status: 201 });

  const page = (await whole.call('GET', '/v1/health?source=report&limit=60')).body;
  expect(page['alerts']).toHaveLength(60);
  const rest = (await whole.call('GET', String(page['next']).replace(/^.*(?=\/v1)/, ''))).body;
  expect(rest['alerts']).toHaveLength(40);
  for (const query of ['severity=info', 'source=sel', 'limit=0', 'marker=x', 'masked=perhaps'])
    expect(await whole.call('GET', `/v1/health?${query}`)).toMatchObject({ status: 400 });
});

it('lists its rules', async () => {
  const { body } = await whole.call('GET', '/v1/health/rules');
  const row = expect.objectContaining({ name: 'fan_failed', kinds: ['fan'], severity: 'critical', raise: 1, clear: 2 }) as unknown;
  expect(body['rules']).toEqual(expect.arrayContaining([row]));
});

it('has a command', async () => {
  const command = (...words: readonly string[]) => runCommand(['health', ...words, '--url', whole.server.apiUrl!]);
  const { body } = await whole.call('POST', '/v1/nodes', { name: 'other', driver: 'ipmi' });
  const uuid = body['uuid'] as string;
  expect(await command('other')).toMatchObject({ code: 0, output: 'other: ok\n' });
  const report = ['--report', 'it hums', '--source', 'jo', '--severity', 'critical', '--until', '3d'];
  const { output } = await command('other', ...report);
  const [alert = ''] = /[0-9a-f-]{36}\n$/.exec(output) ?? [];
  expect(output).toMatch(/^other: critical\ncritical \| it hums \| jo \| since \S+Z \| [0-9a-f-]{36}\n$/);
  expect((await command()).output).toMatch(/^\d+ ok, \d+ with warnings, \d+ critical\n/);
  expect((await command()).output).toContain('other | critical | it hums | jo | since ');
  const masked = await command('other', '--mask', alert.trim(), '--until', '2d', '--reason', 'it is known');
  expect(masked).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^other: ok\n.* \| masked until \S+Z: it is known \| /) as unknown,
  });
  expect(await command('other', '--unmask', alert.trim())).toMatchObject({
    code: 0,
    output: expect.stringContaining('other: critical') as unknown,
  });
  expect(await command('other', '--clear', alert.trim(), '--cleared')).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^other: ok\ncritical \| it hums \| jo \| since \S+Z \| cleared \S+Z \| /) as unknown,
  });
  expect(JSON.parse((await command('other', '--json')).output)).toMatchObject({ node_uuid: uuid, health: 'ok', alerts: [] });
  expect((await command('--rules')).output).toContain('fan_stopped | critical | sensor | fan | below 1 rpm | 2/2\n');
  for (const words of [
    ['--mask', 'x'],
    ['other', '--mask', uuid],
    ['other', '--clear', uuid],
    ['other', '--clear', uuid, '--report', 'x'],
    ['none'],
  ])
    expect(await command(...words)).toMatchObject({ code: 2, output: '' });
});
