/** Health in the periodic work of conductors: sensors, the health of machines, time limits, and the rules of a site. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fault } from '../../../model/errors';
import type { JsonObject } from '../../../model/records';
import type { AlertRecord } from '../../../model/rules/health-alerts';
import { createMetrics } from '../../../server/metrics';
import { newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { after, clock, database, start } = useConductor();
const SENSORS = {
  'sensor_data.send_sensor_data': true,
  'sensor_data.interval': 60,
  'sensor_data.interval_fan': 60,
  'conductor.sync_power_state_interval': 60,
} as const;
const fan = (health: string): JsonObject => ({
  Fan: { '3@1': { identity: '3', reading: 5000, reading_units: 'RPM', state: 'Enabled', health } },
});
const alerts = async (cleared = false): Promise<readonly AlertRecord[]> => database.store().healthAlerts.list({ cleared, limit: 100 });
const rules = async (cleared = false): Promise<readonly string[]> => (await alerts(cleared)).map(({ rule }) => rule);

it('an alert of a sensor is raised once, stays while the machine is off, and is cleared by the next conductor', async () => {
  const machine = newMachine({ sensors: fan('Critical'), power: 'power on' });
  const measured = createMetrics();
  const one = await start({ machine, options: SENSORS, rooms: { metrics: measured.metrics } });
  const { uuid } = await one.enrol({ provision_state: 'active', name: 'one', power_state: 'power on' });
  await after(70, async () => (await rules()).length === 1);
  await clock.advance(66);
  await clock.advance(66);
  expect(await alerts()).toMatchObject([{ node_uuid: uuid, rule: 'fan_failed', subject: 'fan 3', severity: 'critical', source: 'sensor' }]);
  expect(await rules(true)).toEqual([]);
  const { text } = await measured.scrape(undefined);
  expect(text.split('\n').filter((line) => line.startsWith('baremetal_health_alert{'))).toEqual([
    `baremetal_health_alert{node_uuid="${uuid}",node_name="one",instance_uuid="",source="sensor",rule="fan_failed",subject="fan 3",severity="critical"} 1`,
  ]);
  await one.conductor.stop();

  machine.power = 'power off';
  machine.sensors = fan('OK');
  const sensors = (): number => machine.orders.filter((order) => order.startsWith('sensors')).length;
  await database.store().nodes.update(uuid, { power_state: 'power off' });
  const second = await start({ machine, options: SENSORS });
  const before = sensors();
  await after(600, () => sensors() >= before + 4);
  expect(await rules()).toEqual(['fan_failed']);
  machine.power = 'power on';
  await database.store().nodes.update(uuid, { power_state: 'power on' });
  await after(400, async () => (await rules()).length === 0);
  expect(await rules(true)).toEqual(['fan_failed']);
  await second.conductor.stop();
});

it('the health of the machine is read with its power state', async () => {
  const machine = newMachine({ power: 'power on', status: { health: 'Critical', bootMode: null, namesVendor: false } });
  const one = await start({ machine, options: SENSORS });
  await one.enrol({ provision_state: 'available', power_state: 'power on' });
  await after(140, async () => (await rules()).length === 1);
  expect(await rules()).toEqual(['machine_critical']);
  machine.status = { ...machine.status!, health: 'OK' };
  await after(400, async () => (await rules()).length === 0);
});

it('[health]enabled = false raises nothing', async () => {
  const machine = newMachine({
    sensors: fan('Critical'),
    power: 'power on',
    status: { health: 'Critical', bootMode: null, namesVendor: false },
  });
  const one = await start({ machine, options: { ...SENSORS, 'health.enabled': false } });
  const { uuid } = await one.enrol({ provision_state: 'active', power_state: 'power on' });
  await after(140, async () => (await one.node(uuid)).health === 'Critical' && machine.orders.some((order) => order.startsWith('sensors')));
  await clock.advance(66);
  expect(await rules()).toEqual([]);
});

it('a state that lasts too long is one alert until it is over; the work goes on', async () => {
  const one = await start({ options: { 'health.time_limits': { deploy: '300' } } });
  const { uuid } = await one.enrol({
    provision_state: 'deploy hold',
    target_provision_state: 'active',
    provision_updated_at: new Date(clock.now()).toISOString(),
  });
  await after(66, async () => true);
  expect(await rules()).toEqual([]);
  await after(480, async () => (await rules()).length === 1);
  expect(await alerts()).toMatchObject([{ source: 'state', rule: 'deploy', subject: 'deploy', severity: 'warning' }]);
  expect(await one.node(uuid)).toMatchObject({ provision_state: 'deploy hold', last_error: null });
  // Cleared by hand: it alerts once.
  await database.store().healthAlerts.setCleared(await alerts(), false);
  await after(140, async () => true);
  await clock.advance(66);
  expect(await rules()).toEqual([]);
  await database.store().nodes.update(uuid, { provision_state: 'active' });
});

it('reports end at their time', async () => {
  const one = await start();
  const { uuid } = await one.enrol();
  const until = new Date(clock.now() + 100_000).toISOString();
  const report = { node_uuid: uuid, source: 'report', rule: 'jo', subject: '', severity: 'warning', text: 'x', reported_by: null } as const;
  await one.store.healthAlerts.put(
    [
      { ...report, uuid: uuid.replace(/^./, '0'), until },
      { ...report, uuid: uuid.replace(/^./, '1'), rule: 'ann', until: null },
    ],
    false,
  );
  await after(240, async () => (await rules()).length === 1);
  expect(await rules()).toEqual(['ann']);
  expect(await rules(true)).toEqual(['jo']);
  await database.query(`UPDATE health_alerts SET cleared_at = cleared_at - interval '91 days' WHERE cleared_at IS NOT NULL`);
  await after(240, async () => (await rules(true)).length === 0);
});

const history = async (uuid: string): Promise<readonly string[]> =>
  (await database.query<{ event: string }>('SELECT event FROM node_history WHERE node_uuid = $1', [uuid])).map(({ event }) => event);

it('an alert ends when its part is not there any more, and stays while its kind cannot be read', async () => {
  const machine = newMachine({ sensors: fan('Critical'), power: 'power on' });
  const one = await start({ machine, options: SENSORS });
  const { uuid } = await one.enrol({ provision_state: 'active', power_state: 'power on' });
  await after(70, async () => (await rules()).length === 1);
  machine.broken.set('sensors: Fan', new Error('the BMC is busy'));
  await clock.advance(200);
  expect(await rules()).toEqual(['fan_failed']);
  machine.broken.clear();
  machine.sensors = { Fan: { '4@1': { identity: '4', reading: 5000, reading_units: 'RPM', state: 'Enabled', health: 'OK' } } };
  await after(400, async () => (await rules()).length === 0);
  expect(await history(uuid)).toContain(
    'Health, cleared: fan 3 has failed or is too slow (critical, 5000 rpm) (the part is not there any more)',
  );
});
it('alerts of sources that are turned off end', async () => {
  const machine = newMachine({ sensors: fan('Critical'), power: 'power on' });
  const one = await start({ machine, options: SENSORS });
  const { uuid } = await one.enrol({ provision_state: 'active', power_state: 'power on' });
  await after(70, async () => (await rules()).length === 1);
  await one.conductor.stop();
  await start({ machine, options: { ...SENSORS, 'sensor_data.send_sensor_data': false } });
  await after(140, async () => (await rules()).length === 0);
  expect((await history(uuid)).join()).toContain('(the sensors are not read any more)');
});

it('events are subscribed to while the option is set, and not for nodes in maintenance', async () => {
  const kept: (readonly [uuid: string, destination: string])[] = [];
  const ended: string[] = [];
  const machine = newMachine({
    power: 'power on',
    events: {
      keep: async ({ node: { uuid } }, owner, destination) => {
        expect(owner).toBe(`bloomery ${uuid}`);
        kept.push([uuid, destination]);
        return `/subscription/${uuid}`;
      },
      end: async ({ node: { uuid } }) => void ended.push(uuid),
      origin: async () => undefined,
    },
  });
  const options = { 'health.event_address': 'https://192.0.2.1:6385/', 'health.event_interval': 60 };
  const one = await start({ machine, options });
  const { uuid } = await one.enrol({ provision_state: 'available' });
  const { uuid: away } = await one.enrol({ provision_state: 'available', maintenance: true });
  const { uuid: fresh } = await one.enrol({ provision_state: 'enroll' });
  await after(400, () => kept.length >= 2);
  const [, destination] = kept[0]!;
  expect(destination).toMatch(new RegExp(`^https://192.0.2.1:6385/v1/nodes/${uuid}/redfish_events/[\\w-]{43}$`));
  expect([...new Set(kept.map((call) => call.join(' ')))]).toEqual([`${uuid} ${destination}`]);
  expect(await one.store.bmcWatches.subscribed()).toEqual([uuid]);
  let isDeleted = false;
  await after(120, async () => {
    // A round may hold the node.
    isDeleted ||= await one.conductor.deleteNode(uuid).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Fault && error.name === 'NodeLocked') return false;
        throw error;
      },
    );
    return isDeleted;
  });
  await after(120, () => ended.length === 1);
  await one.store.nodes.update(away, { maintenance: false });
  await after(400, async () => (await one.store.bmcWatches.subscribed()).includes(away));
  await one.conductor.stop();
  await start({ machine, options: { ...options, 'health.event_address': null } });
  await after(400, () => ended.length === 2);
  expect(ended).toEqual([uuid, away]);
  await after(10, async () => (await database.store().bmcWatches.subscribed()).length === 0);
  expect(kept.some(([asked]) => asked === fresh)).toBe(false);
});

describe('the rules of a site', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-rules-'));
  const path = join(folder, 'rules.yaml');
  afterAll(() => rmSync(folder, { recursive: true }));
  it.each([
    ['- name: fan_failed\n  kinds: [fans]\n', 'rule 1 (fan_failed): kinds: unknown word "fans"'],
    [
      '- name: hot\n  above: 5000\n  unit: celsius\n  severity: warning\n',
      'rule 1 (hot): above: no sensor measures more than 1000 celsius',
    ],
    ['a: [', 'Flow'],
    ['a: &a [*a]', ''],
    [undefined, 'ENOENT'],
  ])('%j stops the start, with the reason', async (text, reason) => {
    rmSync(path, { force: true });
    if (text !== undefined) writeFileSync(path, text);
    await expect(start({ options: { 'health.rules': path } })).rejects.toThrow(`[health]rules: ${path}: `);
    await expect(start({ options: { 'health.rules': path } })).rejects.toThrow(reason);
  });
  it('apply beside the built-in ones', async () => {
    writeFileSync(
      path,
      '- name: fan_failed\n  disabled: true\n- name: slow\n  kinds: [fan]\n  below: 6000\n  unit: rpm\n  severity: warning\n',
    );
    const machine = newMachine({ sensors: fan('Critical'), power: 'power on' });
    const one = await start({ machine, options: { ...SENSORS, 'health.rules': path } });
    await one.enrol({ provision_state: 'active', power_state: 'power on' });
    await after(70, async () => (await rules()).length === 1);
    expect(await alerts()).toMatchObject([{ rule: 'slow', severity: 'warning', text: 'fan 3: below 6000, 5000 rpm' }]);
    await one.conductor.stop();
    // The alerts of a rule that is removed end with the next start.
    await start({ machine, options: { ...SENSORS, 'sensor_data.send_sensor_data': false } });
    await after(140, async () => (await rules()).length === 0);
  });
});

it('time limits of what does not exist stop the start', async () => {
  await expect(start({ options: { 'health.time_limits': { deployment: '60' } } })).rejects.toThrow('deployment is neither a flow');
});
