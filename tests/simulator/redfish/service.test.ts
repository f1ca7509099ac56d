import { testBmc, BASIC, type Answered, type TestBmc } from '../redfish-bmc';
import type { BootSetting } from '../../../simulator/hardware/control';

let bmc: TestBmc;
const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = BASIC): Promise<Answered> =>
  bmc.ask(method, path, body, headers);
beforeEach(async () => {
  bmc = await testBmc();
});
afterEach(() => bmc.close());

it('serves a resource for each link', async () => {
  const seen = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    const { status, body } = await ask('GET', path);
    expect([path, status]).toEqual([path, 200]);
    expect((body['@odata.id'] as string).replace(/\/$/, '')).toBe(path.replace(/\/$/, ''));
    for (const [, next] of JSON.stringify(body).matchAll(/"@odata.id":"([^"#]+)"/g)) await visit(next!);
  };
  await visit('/redfish/v1/');
  expect(seen.size).toBeGreaterThan(12);
});

it('shows the state of the machine', async () => {
  const { body } = await ask('GET', '/redfish/v1/Systems/sim-0');
  expect(body).toMatchObject({
    PowerState: 'Off',
    Boot: { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None', BootSourceOverrideMode: 'UEFI' },
    MemorySummary: { TotalSystemMemoryGiB: 16 },
  });
  bmc.on = true;
  bmc.boot = { device: 'pxe', persistent: true, mode: 'bios' };
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
])('reset type %s executes "%s"', async (type, action) => {
  expect((await ask('POST', '/redfish/v1/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: type })).status).toBe(204);
  expect(bmc.acted).toEqual([action]);
});

it.each<[string, object, BootSetting]>([
  ['once', { BootSourceOverrideTarget: 'Pxe', BootSourceOverrideEnabled: 'Once' }, { device: 'pxe', persistent: false, mode: 'uefi' }],
  [
    'persistent',
    { BootSourceOverrideTarget: 'Hdd', BootSourceOverrideEnabled: 'Continuous', BootSourceOverrideMode: 'Legacy' },
    { device: 'disk', persistent: true, mode: 'bios' },
  ],
  ['disabled', { BootSourceOverrideEnabled: 'Disabled' }, { device: 'none', persistent: false, mode: 'uefi' }],
  ['only the boot mode', { BootSourceOverrideMode: 'Legacy' }, { device: 'none', persistent: false, mode: 'bios' }],
])('PATCH sets the boot device: %s', async (_, change, expected) => {
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', { Boot: change })).status).toBe(204);
  expect(bmc.boot).toEqual(expected);
});

it.each<[string, string, string, unknown, number, string]>([
  ['an unknown target', 'PATCH', '/Systems/sim-0', { Boot: { BootSourceOverrideTarget: 'Tape' } }, 400, 'PropertyValueNotInList'],
  ['an unknown property', 'PATCH', '/Systems/sim-0', { Colour: 'x' }, 400, 'PropertyUnknown'],
  ['an empty change', 'PATCH', '/Systems/sim-0', {}, 400, 'NoOperation'],
  ['invalid JSON', 'PATCH', '/Systems/sim-0', '{', 400, 'MalformedJSON'],
  ['a huge body', 'PATCH', '/Systems/sim-0', { Boot: 'x'.repeat(70_000) }, 400, 'MalformedJSON'],
  ['an unknown reset', 'POST', '/Systems/sim-0/Actions/ComputerSystem.Reset', { ResetType: 'Kick' }, 400, 'ActionParameterValueNotInList'],
  ['a reset without type', 'POST', '/Systems/sim-0/Actions/ComputerSystem.Reset', {}, 400, 'ActionParameterMissing'],
  ['a GET of an action', 'GET', '/Systems/sim-0/Actions/ComputerSystem.Reset', undefined, 405, 'OperationNotAllowed'],
  ['a DELETE of a system', 'DELETE', '/Systems/sim-0', undefined, 405, 'OperationNotAllowed'],
  ['an unknown machine', 'GET', '/Systems/none', undefined, 404, 'ResourceMissingAtURI'],
  ['an unknown collection', 'GET', '/constructor', undefined, 404, 'ResourceMissingAtURI'],
  ['an unknown subresource', 'GET', '/Systems/sim-0/constructor', undefined, 404, 'ResourceMissingAtURI'],
])('rejects %s', async (_, method, path, body, status, code) => {
  const answer = await ask(method, `/redfish/v1${path}`, body);
  expect([answer.status, answer.body.error?.code]).toEqual([status, `Base.1.8.${code}`]);
  expect(bmc.acted).toEqual([]);
});

it('rejects a PATCH with an outdated ETag', async () => {
  const etag = (await ask('GET', '/redfish/v1/Systems/sim-0')).headers.get('etag')!;
  const change = { Boot: { BootSourceOverrideTarget: 'Pxe' } };
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': '"old"' })).status).toBe(412);
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': etag })).status).toBe(204);
  expect((await ask('PATCH', '/redfish/v1/Systems/sim-0', change, { ...BASIC, 'if-match': etag })).status).toBe(412);
});

it('keeps sessions until they are deleted or expire', async () => {
  const sessions = '/redfish/v1/SessionService/Sessions';
  expect((await ask('GET', '/redfish/v1/Systems', undefined, {})).status).toBe(401);
  expect((await ask('GET', '/redfish/v1/', undefined, {})).status).toBe(200);
  expect((await ask('POST', sessions, { UserName: 'admin', Password: 'wrong' }, {})).status).toBe(401);
  const made = await ask('POST', sessions, { UserName: 'admin', Password: 'password' }, {});
  expect(made.status).toBe(201);
  const token = { 'x-auth-token': made.headers.get('x-auth-token')! };
  const location = made.headers.get('location')!;
  expect((await ask('GET', location, undefined, token)).body).toMatchObject({ UserName: 'admin' });
  bmc.now += 1_700_000;
  expect((await ask('GET', '/redfish/v1/Systems', undefined, token)).status).toBe(200);
  bmc.now += 1_900_000;
  expect((await ask('GET', '/redfish/v1/Systems', undefined, token)).status).toBe(401);
  const again = (await ask('POST', sessions, { UserName: 'admin', Password: 'password' }, {})).headers;
  const second = { 'x-auth-token': again.get('x-auth-token')! };
  expect((await ask('DELETE', again.get('location')!, undefined, second)).status).toBe(204);
  expect((await ask('GET', '/redfish/v1/Systems', undefined, second)).status).toBe(401);
});

it('applies BIOS settings at the next boot', async () => {
  const bios = '/redfish/v1/Systems/sim-0/Bios';
  const shown = async (path: string): Promise<object> => (await ask('GET', path)).body['Attributes'] as object;
  expect((await ask('PATCH', `${bios}/Settings`, { Attributes: { TurboMode: 'Disabled', AdminPassword: 'secret' } })).status).toBe(204);
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Enabled' });
  expect(await shown(`${bios}/Settings`)).toEqual({ TurboMode: 'Disabled', AdminPassword: null });
  bmc.start();
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Disabled', AdminPassword: null });
  expect(await shown(`${bios}/Settings`)).toEqual({});
  expect((await ask('POST', `${bios}/Actions/Bios.ResetBios`)).status).toBe(204);
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Disabled' });
  bmc.start();
  expect(await shown(bios)).toMatchObject({ TurboMode: 'Enabled' });
});

it.each<[string, object, string]>([
  ['an unknown setting', { Colour: 'red' }, 'PropertyUnknown'],
  ['a read-only setting', { ProductName: 'mine' }, 'PropertyNotWritable'],
  ['a value that is not allowed', { TurboMode: 'Perhaps' }, 'PropertyValueNotInList'],
  ['a number out of its range', { WatchdogMinutes: 61 }, 'PropertyValueOutOfRange'],
  ['a number for an enumeration', { TurboMode: 1 }, 'PropertyValueTypeError'],
  ['a text that is too long', { AssetTag: 'x'.repeat(64) }, 'PropertyValueFormatError'],
])('rejects %s of the BIOS and applies nothing', async (_, wanted, message) => {
  const settings = '/redfish/v1/Systems/sim-0/Bios/Settings';
  const answer = await ask('PATCH', settings, { Attributes: { QuietBoot: true, ...wanted } });
  expect([answer.status, answer.body.error?.code]).toEqual([400, `Base.1.8.${message}`]);
  expect((await ask('GET', settings)).body['Attributes']).toEqual({});
});

it('pages a collection with $top and $skip', async () => {
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
