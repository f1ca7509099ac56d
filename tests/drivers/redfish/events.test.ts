/** The server's own subscriptions at services of all kinds, and the parts that events name. */
import { redfishEvents } from '../../../drivers/redfish/events';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { redfishError, redfishService, type RedfishReply, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';

const PLACE = '/redfish/v1/EventService/Subscriptions';
const DESTINATION = 'https://192.0.2.1:6385/v1/nodes/n/redfish_events/TheSecretKey';
const OWNER = 'bloomery n';
let service: RedfishService;
let pool: RedfishPool;
let made: Record<string, unknown>;
/** What the service says of a new subscription before it makes one. */
let judge: (body: Readonly<Record<string, unknown>>) => RedfishReply | undefined;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  made = {};
  judge = () => undefined;
  Object.assign(service.resources['/redfish/v1/'] as object, { EventService: { '@odata.id': '/redfish/v1/EventService' } });
  service.resources['/redfish/v1/EventService'] = { ServiceEnabled: true, Subscriptions: { '@odata.id': PLACE } };
  let next = 1;
  service.reply = ({ method, path, body }) => {
    if (method === 'POST' && path === PLACE) {
      const given = body as Readonly<Record<string, unknown>>;
      const refused = judge(given);
      if (refused) return refused;
      const at = `${PLACE}/${next++}`;
      made[at] = { '@odata.id': at, ...given };
      return { status: 201, headers: { location: at } };
    }
    if (path === PLACE) return { status: 200, body: { Members: Object.keys(made).map((at) => ({ '@odata.id': at })) } };
    if (method === 'DELETE' && path in made) {
      delete made[path];
      return { status: 204 };
    }
    return path in made ? { status: 200, body: made[path] } : undefined;
  };
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const task = () =>
  bmcTask({
    node: { driver: 'redfish', driver_info: { redfish_address: service.url } },
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool },
  }).task;
const keep = (destination = DESTINATION) => redfishEvents.keep(task(), OWNER, destination);
const unknownProperty: RedfishReply = { status: 400, body: redfishError('The property is not in the list of valid properties.') };

it('subscribes once, and finds its subscription again', async () => {
  expect(await keep()).toBe(`${PLACE}/1`);
  expect(await keep()).toBe(`${PLACE}/1`);
  expect(Object.values(made)).toMatchObject([{ Destination: DESTINATION, Protocol: 'Redfish', SubscriptionType: 'RedfishEvent' }]);
  // Other users of the service read the context.
  expect((Object.values(made)[0] as { Context: string }).Context).toMatch(/^bloomery n [0-9a-f]{16}$/);
});
it('knows its subscription also where the service changes the destination', async () => {
  await keep();
  Object.assign(made[`${PLACE}/1`] as object, { Destination: 'https://192.0.2.1:6385/redfish/events:6385' });
  expect(await keep()).toBe(`${PLACE}/1`);
});
it.each([
  ['refuses EventTypes', { EventTypesForSubscription: ['Alert', 'StatusChange', 'MetricReport'] }, 'EventTypes', false],
  ['refuses SubscriptionType', {}, 'SubscriptionType', false],
  ['requires EventTypes', {}, 'EventTypes', true],
] as const)('subscribes at a service that %s', async (_, facts, name, isNeeded) => {
  Object.assign(service.resources['/redfish/v1/EventService'] as object, facts);
  judge = (body) => (name in body === isNeeded ? undefined : unknownProperty);
  expect(await keep()).toBe(`${PLACE}/1`);
  expect(name in (made[`${PLACE}/1`] as object)).toBe(isNeeded);
});
it('asks for the types of events that the service has, without metric reports', async () => {
  Object.assign(service.resources['/redfish/v1/EventService'] as object, { EventTypesForSubscription: ['Alert', 'MetricReport', 'Odd'] });
  await keep();
  expect(made[`${PLACE}/1`]).toMatchObject({ EventTypes: ['Alert'] });
});
it('replaces a subscription that is suspended, and one to another destination; leaves those of others', async () => {
  made[`${PLACE}/foreign`] = { Destination: DESTINATION, Context: 'bloomery n2 0', Protocol: 'Redfish' };
  made[`${PLACE}/empty`] = { Destination: 'x' };
  await keep();
  Object.assign(made[`${PLACE}/1`] as object, { Status: { State: 'Disabled' } });
  expect(await keep()).toBe(`${PLACE}/2`);
  expect(await keep('https://192.0.2.2/other')).toBe(`${PLACE}/3`);
  expect(Object.keys(made)).toEqual([`${PLACE}/foreign`, `${PLACE}/empty`, `${PLACE}/3`]);
  await redfishEvents.end(task(), OWNER);
  expect(Object.keys(made)).toEqual([`${PLACE}/foreign`, `${PLACE}/empty`]);
});
it('knows its subscription by its destination where the service keeps no context', async () => {
  await keep();
  delete (made[`${PLACE}/1`] as Record<string, unknown>)['Context'];
  expect(await keep()).toBe(`${PLACE}/1`);
});
it.each([
  ['ResourceAlreadyExists', 400],
  ['PropertyValueModified', 400],
  ['ResourceAlreadyExists', 409],
])('subscribes anew where the service says %s (%i), and lists a subscription to the same destination', async (message, status) => {
  made[`${PLACE}/old`] = { '@odata.id': `${PLACE}/old`, Destination: DESTINATION, Context: 'changed by the service' };
  judge = () => (`${PLACE}/old` in made ? { status, body: { error: { code: `Base.1.8.${message}`, message: 'It exists.' } } } : undefined);
  expect(await keep()).toBe(`${PLACE}/1`);
  expect(Object.keys(made)).toEqual([`${PLACE}/1`]);
  // Without such a subscription, the words mean something else.
  judge = () => ({ status, body: { error: { code: `Base.1.8.${message}`, message: 'It exists.' } } });
  await expect(keep('https://192.0.2.2/other')).rejects.toThrow('It exists.');
});
it('says why it cannot subscribe, without the key', async () => {
  judge = ({ Destination }) => ({ status: 400, body: redfishError(`The value ${String(Destination)} is wrong, at TheSecretKey.`) });
  const failure = await keep().catch((error: unknown) => error as Error);
  expect(failure).toMatchObject({
    name: 'DriverOperationError',
    message: expect.stringContaining('subscription to events failed') as string,
  });
  expect((failure as Error).message).not.toContain('TheSecretKey');
  // A full service is asked once.
  service.asked.length = 0;
  judge = () => ({ status: 503, body: redfishError('The limit is exceeded.') });
  await expect(keep()).rejects.toThrow('The limit is exceeded');
  expect(service.asked.filter(({ method, path }) => method === 'POST' && path === PLACE)).toHaveLength(1);
});
it('says that the service is disabled, and does not enable it', async () => {
  Object.assign(service.resources['/redfish/v1/EventService'] as object, { ServiceEnabled: false });
  await expect(keep()).rejects.toThrow('ServiceEnabled');
  expect(service.asked.filter(({ method }) => method !== 'GET')).toEqual([]);
});
it('does nothing at a machine without an event service', async () => {
  delete (service.resources['/redfish/v1/'] as Record<string, unknown>)['EventService'];
  expect(await keep()).toBeUndefined();
  await redfishEvents.end(task(), OWNER);
});

const origin = (path: string) => redfishEvents.origin(task(), path);
const put = (path: string, body: object): void => void (service.resources[path] = body);
it('reads the part that an event names', async () => {
  put('/redfish/v1/Systems/1/Memory/A1', { Status: { Health: 'Critical', State: 'Enabled' } });
  put('/redfish/v1/Systems/1/Processors/1', { Status: { HealthRollup: 'Warning' } });
  put('/redfish/v1/Chassis/1/Sensors/V1', { ReadingType: 'Voltage', Status: { Health: 'Critical' } });
  put('/redfish/v1/Chassis/1/Sensors/T1', { ReadingType: 'Temperature', Status: { Health: 'Critical' } });
  put('/redfish/v1/Systems/1/Memory/A2', { Status: { Health: 'Critical', State: 'Absent' } });
  put('/redfish/v1/Chassis/1', {});
  expect(await origin('/redfish/v1/Systems/1/Memory/A1')).toEqual({
    source: 'event',
    kind: 'memory',
    subject: 'Memory/A1',
    states: ['critical'],
  });
  expect(await origin('/redfish/v1/Systems/1/Processors/1')).toMatchObject({ kind: 'processor', states: ['warning'] });
  expect(await origin('/redfish/v1/Chassis/1/Sensors/V1')).toMatchObject({ kind: 'voltage', states: ['critical'] });
  expect(await origin('/redfish/v1/Chassis/1/Sensors/T1')).toBe('sensors');
  expect(await origin('/redfish/v1/Systems/1/Memory/A2')).toMatchObject({ states: [] });
  expect(await origin('/redfish/v1/Systems/1/Memory/A9')).toMatchObject({ kind: 'memory', states: [] });
  expect(await origin('/redfish/v1/Chassis/1')).toBeUndefined();
  service.asked.length = 0;
  expect(await origin('/redfish/v1/Chassis/1/Thermal#/Fans/0')).toBe('sensors');
  for (const odd of [
    'http://192.0.2.1/redfish/v1/x',
    '/redfish/v1/../x',
    '/redfish/v2/x',
    '//192.0.2.1/x',
    '/redfish/v1/a b',
    `/redfish/v1/${'x'.repeat(600)}`,
  ])
    expect(await origin(odd)).toBeUndefined();
  expect(service.asked).toEqual([]);
});
