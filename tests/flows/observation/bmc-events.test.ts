/** Events of BMCs: subscribed, renewed, ended; they make the server read the machine; and what a broken or hostile BMC sends. */
import { readFaults } from '../../../simulator/bmc/faults';
import type { Log } from '../../../model/log';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { startWholeServer, type Answer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
/** Every line of the log, with its fields. */
const lines: string[] = [];
const log: Log = {
  debug: (...given) => void lines.push(JSON.stringify(given)),
  info: (...given) => void lines.push(JSON.stringify(given)),
  warn: (...given) => void lines.push(JSON.stringify(given)),
  error: (...given) => void lines.push(JSON.stringify(given)),
  child: () => log,
};
beforeAll(async () => {
  const port = await freePort();
  whole = await startWholeServer(database.connection(), {
    machines: 4,
    log,
    options: {
      'api.port': port,
      'api.log_requests': 'all',
      'DEFAULT.enabled_hardware_types': ['redfish', 'ipmi'],
      'health.event_address': `http://127.0.0.1:${port}`,
      'health.event_interval': 1,
      'health.log_interval': 1,
    },
  });
});
afterAll(() => whole.close(), 30_000);

let next = 0;
async function manageable() {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
  await until('the machine is on', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['power_state'] === 'power on');
  const { address, username, password } = machine.redfish;
  const bmc = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await fetch(`${address}${path}`, {
      method,
      headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) };
  };
  const subscriptions = async () => {
    const { body } = await bmc('GET', '/redfish/v1/EventService/Subscriptions');
    const members = body['Members'] as readonly { readonly '@odata.id': string }[];
    return Promise.all(
      members.map(
        async (member) => (await bmc('GET', member['@odata.id'])).body as Readonly<Record<'Destination' | 'Context' | 'Id', string>>,
      ),
    );
  };
  const subscribed = async () => {
    await until('the subscription', async () => (await subscriptions()).some(({ Context }) => Context.startsWith(`bloomery ${uuid} `)));
    return (await subscriptions()).find(({ Context }) => Context.startsWith(`bloomery ${uuid} `))!;
  };
  return { uuid, machine, bmc, subscriptions, subscribed };
}
interface Alert {
  readonly rule: string;
  readonly source: string;
  readonly subject: string;
}
const alertsOf = async (uuid: string): Promise<readonly Alert[]> =>
  (await whole.call('GET', `/v1/nodes/${uuid}/health`)).body['alerts'] as readonly Alert[];
const rulesOf = async (uuid: string) => (await alertsOf(uuid)).map(({ source, rule }) => `${source} ${rule}`);
const post = async (path: string, body: string): Promise<number> =>
  (await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).status;

it('an event makes the server read what it names, although no round reads the sensors', async () => {
  const { uuid, machine, bmc, subscriptions, subscribed } = await manageable();
  const foreign = { Destination: 'http://127.0.0.1:1/x', Protocol: 'Redfish', Context: 'bloomery' };
  expect((await bmc('POST', '/redfish/v1/EventService/Subscriptions', foreign)).status).toBe(201);
  const { Destination: destination } = await subscribed();
  expect(destination).toMatch(new RegExp(`/v1/nodes/${uuid}/redfish_events/[\\w-]{43}$`));
  // What is in the log before its first reading raises nothing.
  const isLogRead = async () =>
    (await database.query('SELECT 1 FROM bmc_watches WHERE node_uuid = $1 AND logs IS NOT NULL', [uuid])).length === 1;
  await until('the first reading of the log', isLogRead);
  machine.faults.now = readFaults({ stopped: ['Fan1'], parts: ['DIMM1.fatal', 'P12V.low'] });
  const bad = ['sensor fan_failed', 'event memory_failed', 'event voltage_critical'];
  await until('the alerts', async () => {
    const found = await rulesOf(uuid);
    return bad.every((alert) => found.includes(alert));
  });
  // The log says it too.
  await until('the alerts of the log', async () => (await rulesOf(uuid)).includes('log memory_failed'));
  expect((await alertsOf(uuid)).find(({ source, rule }) => source === 'event' && rule === 'memory_failed')).toMatchObject({
    subject: 'Memory/1',
  });
  machine.faults.now = {};
  await until('no alerts', async () => (await rulesOf(uuid)).length === 0);
  // The same subscription, and the foreign one.
  expect((await subscriptions()).map(({ Destination }) => Destination).sort()).toEqual([destination, foreign.Destination].sort());
  // The node goes: so does its subscription. The foreign one stays.
  await whole.call('DELETE', `/v1/nodes/${uuid}`);
  await until('the end of the subscription', async () => (await subscriptions()).length === 1);
  expect((await subscriptions())[0]).toMatchObject({ Context: 'bloomery' });
  const key = destination.slice(destination.lastIndexOf('/') + 1);
  expect(lines.some((line) => line.includes('redfish_events/***'))).toBe(true);
  expect(lines.filter((line) => line.includes(key))).toEqual([]);
}, 30_000);

it('renews what a BMC forgot, or somebody else deleted or changed', async () => {
  const { machine, bmc, subscriptions, subscribed } = await manageable();
  const first = await subscribed();
  machine.faults.now = readFaults({ events_forgotten: true, restart: 300 });
  await bmc('POST', `/redfish/v1/Managers/${machine.name}/Actions/Manager.Reset`, { ResetType: 'GracefulRestart' });
  await until('the BMC is back', async () => (await bmc('GET', '/redfish/v1/').catch(() => undefined))?.status === 200);
  machine.faults.now = {};
  expect((await subscribed()).Destination).toBe(first.Destination);
  const second = await subscribed();
  await bmc('DELETE', `/redfish/v1/EventService/Subscriptions/${second.Id}`);
  expect((await subscribed()).Destination).toBe(first.Destination);
  // One of ours with another destination, as after a change of the address.
  const [owner] = [first.Context.split(' ').slice(0, 2).join(' ')];
  await bmc('POST', '/redfish/v1/EventService/Subscriptions', {
    Destination: 'http://127.0.0.1:1/x',
    Protocol: 'Redfish',
    Context: `${owner} 0`,
  });
  await until('the old one is gone', async () => (await subscriptions()).length === 1);
  expect(await subscriptions()).toMatchObject([{ Destination: first.Destination }]);
}, 30_000);

it('a BMC that refuses, sends to a wrong path, or floods harms nobody', async () => {
  const { uuid, machine, bmc, subscriptions, subscribed } = await manageable();
  await subscribed();
  machine.faults.now = readFaults({ events_refused: true });
  for (const { Id } of await subscriptions()) await bmc('DELETE', `/redfish/v1/EventService/Subscriptions/${Id}`);
  await until('the refusal is in the log', () =>
    lines.some((line) => line.includes(uuid) && line.includes('its events cannot be subscribed to')),
  );
  const before = lines.filter((line) => line.includes('its events cannot be subscribed to')).length;
  machine.faults.now = readFaults({ events_key: true });
  await subscribed();
  expect(lines.filter((line) => line.includes('its events cannot be subscribed to'))).toHaveLength(before);
  machine.faults.now = readFaults({ events_key: true, parts: ['DIMM1.errors'] });
  await until('an event is refused', () =>
    lines.some((line) => line.includes(`${uuid}/redfish_events/***`) && line.includes('"status":403')),
  );
  machine.faults.now = {};
  machine.faults.now = readFaults({ events_flood: 300, parts: ['DIMM1.fatal'] });
  await until('the alert', async () => (await rulesOf(uuid)).includes('event memory_failed'));
  machine.faults.now = {};
  await until('no alerts', async () => (await rulesOf(uuid)).length === 0);
}, 30_000);

it('takes no events without the key, and any body with it', async () => {
  const { uuid, subscribed } = await manageable();
  const { Destination: place } = await subscribed();
  const event = { MessageId: 'ResourceEvent.1.3.ResourceErrorsDetected', MessageSeverity: 'Critical' };
  const other = place.replace(
    uuid,
    uuid.replace(/^./, (letter) => (letter === '0' ? '1' : '0')),
  );
  for (const wrong of [`${place}x`, place.slice(0, -1), other, place.replace(/[^/]*$/, '%00'), place.replace(uuid, 'x')])
    expect([401, 403, 404]).toContain(await post(wrong, JSON.stringify({ Events: [event] })));
  expect(await rulesOf(uuid)).toEqual([]);
  for (const odd of ['', '{}', '{"Events":null}', '{"Events":"x"}', '{"Events":[null,1,[],{"MessageId":5,"OriginOfCondition":[]}]}'])
    expect(await post(place, odd)).toBe(204);
  for (const broken of ['{', '[]', '"x"', '[['.repeat(40)]) expect(await post(place, broken)).toBe(400);
  expect(await post(place, JSON.stringify({ Events: [], x: 'y'.repeat(70_000) }))).toBe(413);
  // What it names is not there, or on another host: its own words count, for a day.
  const named = (path: string) => ({ ...event, OriginOfCondition: { '@odata.id': path } });
  const events = [event, named('http://127.0.0.1:1/redfish/v1/x'), named('/redfish/v1/../../etc'), named('/redfish/v1/Systems/nothing')];
  expect(await post(place, JSON.stringify({ Events: events }))).toBe(204);
  await until('the alert', async () => (await rulesOf(uuid)).includes('event other_failed'));
  expect(await alertsOf(uuid)).toMatchObject([{ subject: 'ResourceEvent.ResourceErrorsDetected', until: expect.any(String) as string }]);
  const over = { ...event, MessageSeverity: 'OK' };
  expect(await post(place, JSON.stringify({ Events: [over] }))).toBe(204);
  await until('no alert', async () => (await rulesOf(uuid)).length === 0);
}, 30_000);
