import { randomBytes } from 'node:crypto';
import { silentLog } from '../../model/log';
import type { Clock } from '../../model/clock';
import type { BootSetting, PowerAction } from '../../simulator/control';
import { describeMachine } from '../../simulator/description';
import { firmwareStarts, newHardware } from '../../simulator/hardware';
import { serveRedfish, type RedfishEndpoint, type System } from '../../simulator/redfish';

let endpoint: RedfishEndpoint;
let acted: PowerAction[];
let on: boolean;
let boot: BootSetting;
let now = 1_000_000;
const clock: Clock = { now: () => now, sleep: () => Promise.reject(new Error('no waiting here')) };
const description = describeMachine(0, '127.0.0.1');
const system: System = {
  name: description.name,
  macs: description.macs,
  description,
  hardware: newHardware(),
  isOn: () => on,
  act: async (action) => void acted.push(action),
  boot: () => boot,
  setBoot: (setting) => (boot = setting),
};
const BASIC = { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}` };

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown> & { readonly error?: { readonly code: string } };
}
async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = BASIC): Promise<Answer> {
  const answer = await fetch(`http://127.0.0.1:${endpoint.port}${path}`, {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) };
}

beforeEach(async () => {
  system.hardware.state = {};
  acted = [];
  on = false;
  boot = { device: 'none', persistent: false, mode: 'uefi' };
  endpoint = await serveRedfish({
    host: '127.0.0.1',
    port: 0,
    username: 'admin',
    password: 'password',
    machines: [system],
    log: silentLog,
    clock,
    random: randomBytes,
  });
});
afterEach(() => endpoint.close());

it('has a resource behind each link', async () => {
  const seen = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    const { status, body } = await ask('GET', path);
    expect([path, status]).toEqual([path, 200]);
    expect((body['@odata.id'] as string).replace(/\/$/, '')).toBe(path.replace(/\/$/, ''));
    for (const [, next] of JSON.stringify(body).matchAll(/"@odata.id":"([^"]+)"/g)) await visit(next!);
  };
  await visit('/redfish/v1/');
  expect(seen.size).toBeGreaterThan(12);
});

it('shows the machine', async () => {
  const { body } = await ask('GET', '/redfish/v1/Systems/sim-0');
  expect(body).toMatchObject({
    PowerState: 'Off',
    Boot: { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None', BootSourceOverrideMode: 'UEFI' },
    MemorySummary: { TotalSystemMemoryGiB: 16 },
  });
  on = true;
  boot = { device: 'pxe', persistent: true, mode: 'bios' };
  expect((await ask('GET', '/redfish/v1/Systems/sim-0')).body).toMatchObject({
    PowerState: 'On',
    Boot: { BootSourceOverrideEnabled: 'Continuous', BootSourceOverrideTarget: 'Pxe', BootSourceOverrideMode: 'Legacy' },
  });
});

it.each([
  ['On', 'on'],
  ['ForceOff', 'off'],
  ['GracefulShutdown', 'soft'],
  ['ForceRestart', 'reset'],
  ['PowerCycle', 'cycle'],
  ['PushPowerButton', 'on'],
  ['Nmi', 'diagnostic'],
])('reset %s is %s', async (type, action) => {
  expect((await ask('POST', '/redfish/v1/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: type })).status).toBe(204);
  expect(acted).toEqual([action]);
});

it.each<[string, object, BootSetting]>([
  ['once', { BootSourceOverrideTarget: 'Pxe', BootSourceOverrideEnabled: 'Once' }, { device: 'pxe', persistent: false, mode: 'uefi' }],
  [
    'for good',
    { BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Continuous', BootSourceOverrideMode: 'Legacy' },
    { device: 'disk', persistent: true, mode: 'bios' },
  ],
  ['no more', { BootSourceOverrideEnabled: 'Disabled' }, { device: 'none', persistent: false, mode: 'uefi' }],
  ['in another mode', { BootSourceOverrideMode: 'Legacy' }, { device: 'none', persistent: false, mode: 'bios' }],
])('sets the boot device: %s', async (_, change, expected) => {
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', { Boot: change })).status).toBe(204);
  expect(boot).toEqual(expected);
});

it.each<[string, string, string, unknown, number, string]>([
  ['an unknown target', 'PATCH', '/Systems/sim-0', { Boot: { BootSourceOverrideTarget: 'Tape' } }, 400, 'PropertyValueNotInList'],
  ['an unknown property', 'PATCH', '/Systems/sim-0', { Colour: 'x' }, 400, 'PropertyUnknown'],
  ['nothing', 'PATCH', '/Systems/sim-0', {}, 400, 'NoOperation'],
  ['no JSON', 'PATCH', '/Systems/sim-0', '{', 400, 'MalformedJSON'],
  ['a huge body', 'PATCH', '/Systems/sim-0', { Boot: 'x'.repeat(70_000) }, 400, 'MalformedJSON'],
  ['an unknown reset', 'POST', '/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: 'Kick' }, 400, 'ActionParameterValueNotInList'],
  ['a reset without type', 'POST', '/Systems/sim-0/Actions/ComputerSystem.Reset', {}, 400, 'ActionParameterMissing'],
  ['a read of an action', 'GET', '/Systems/sim-0/Actions/ComputerSystem.Reset', undefined, 405, 'OperationNotAllowed'],
  ['a delete', 'DELETE', '/Systems/sim-0', undefined, 405, 'OperationNotAllowed'],
  ['an unknown machine', 'GET', '/Systems/none', undefined, 404, 'ResourceMissingAtURI'],
  ['an unknown collection', 'GET', '/constructor', undefined, 404, 'ResourceMissingAtURI'],
  ['an unknown part', 'GET', '/Systems/sim-0/constructor', undefined, 404, 'ResourceMissingAtURI'],
])('refuses %s', async (_, method, path, body, status, code) => {
  const answer = await ask(method, `/redfish/v1${path}`, body);
  expect([answer.status, answer.body.error?.code]).toEqual([status, `Base.1.8.${code}`]);
  expect(acted).toEqual([]);
});

it('changes a resource only when it is as the client knows it', async () => {
  const etag = (await ask('GET', '/redfish/v1/Systems/sim-0')).headers.get('etag')!;
  const change = { Boot: { BootSourceOverrideTarget: 'Pxe' } };
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': '"old"' })).status).toBe(412);
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': etag })).status).toBe(204);
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': etag })).status).toBe(412);
});

it('keeps sessions until they are ended or not used', async () => {
  const sessions = '/redfish/v1/SessionService/Sessions';
  expect((await ask('GET', '/redfish/v1/Systems', undefined, {})).status).toBe(401);
  expect((await ask('GET', '/redfish/v1/', undefined, {})).status).toBe(200);
  expect((await ask('POST', sessions, { UserName: 'admin', Password: 'wrong' }, {})).status).toBe(401);
  const made = await ask('POST', sessions, { UserName: 'admin', Password: 'password' }, {});
  expect(made.status).toBe(201);
  const token = { 'x-auth-token': made.headers.get('x-auth-token')! };
  const location = made.headers.get('location')!;
  expect((await ask('GET', location, undefined, token)).body).toMatchObject({ UserName: 'admin' });
  now += 1_700_000;
  expect((await ask('GET', '/redfish/v1/Systems', undefined, token)).status).toBe(200);
  now += 1_900_000;
  expect((await ask('GET', '/redfish/v1/Systems', undefined, token)).status).toBe(401);
  const again = (await ask('POST', sessions, { UserName: 'admin', Password: 'password' }, {})).headers;
  const second = { 'x-auth-token': again.get('x-auth-token')! };
  expect((await ask('DELETE', again.get('location')!, undefined, second)).status).toBe(204);
  expect((await ask('GET', '/redfish/v1/Systems', undefined, second)).status).toBe(401);
});

it('takes BIOS settings at the next start, and not before', async () => {
  const bios = '/redfish/v1/Systems/sim-0/Bios';
  const start = (): void => firmwareStarts(system.hardware, description, now);
  const shown = async (path: string): Promise<object> => (await ask('GET', path)).body['Attributes'] as object;
  expect((await ask('PATCH', `${bios}/Settings`, { Attributes: { TurboMode: 'Disabled', AdminPassword: 'secret' } })).status).toBe(204);
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Enabled' });
  expect(await shown(`${bios}/Settings`)).toEqual({ TurboMode: 'Disabled', AdminPassword: null });
  start();
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Disabled', AdminPassword: null });
  expect(await shown(`${bios}/Settings`)).toEqual({});
  expect((await ask('POST', `${bios}/Actions/Bios.ResetBios`)).status).toBe(204);
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Disabled' });
  start();
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Enabled' });
});

it.each<[string, object, string]>([
  ['an unknown setting', { Colour: 'red' }, 'PropertyUnknown'],
  ['a setting of the machine', { ProductName: 'mine' }, 'PropertyNotWritable'],
  ['a word that is not offered', { TurboMode: 'Perhaps' }, 'PropertyValueNotInList'],
  ['a number out of its range', { WatchdogMinutes: 61 }, 'PropertyValueOutOfRange'],
  ['a number for a word', { TurboMode: 1 }, 'PropertyValueTypeError'],
  ['a text that is too long', { AssetTag: 'x'.repeat(64) }, 'PropertyValueFormatError'],
])('refuses %s of the BIOS and takes nothing', async (_, wanted, message) => {
  const settings = '/redfish/v1/Systems/sim-0/Bios/Settings';
  const answer = await ask('PATCH', settings, { Attributes: { QuietBoot: true, ...wanted } });
  expect([answer.status, answer.body.error?.code]).toEqual([400, `Base.1.8.${message}`]);
  expect((await ask('GET', settings)).body['Attributes']).toEqual({});
});

it('gives a collection in parts', async () => {
  const path = '/redfish/v1/Systems/sim-0/EthernetInterfaces';
  const first = (await ask('GET', `${path}?$top=1`)).body;
  expect(first).toMatchObject({ 'Members@odata.count': 2, Members: [{ '@odata.id': `${path}/1` }] });
  const second = (await ask('GET', first['Members@odata.nextLink'] as string)).body;
  expect(second['Members']).toEqual([{ '@odata.id': `${path}/2` }]);
  expect(second).not.toHaveProperty(['Members@odata.nextLink']);
  for (const [query, status] of [
    ['$top=x', 400],
    ['$skip=-1', 400],
    ['$filter=a', 501],
  ] as const)
    expect((await ask('GET', `${path}?${query}`)).status).toBe(status);
});
