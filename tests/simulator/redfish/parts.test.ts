import { FIRMWARE } from '../../../simulator/hardware/firmware-versions';
import { testBmc, type Answered, type TestBmc } from '../redfish-bmc';

let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc();
});
afterEach(() => bmc.close());
const post = (path: string, body: object): Promise<Answered> => bmc.ask('POST', `/redfish/v1${path}`, body);
const patch = (path: string, body: object): Promise<Answered> => bmc.ask('PATCH', `/redfish/v1${path}`, body);

describe('secure boot', () => {
  const PATH = '/Systems/sim-0/SecureBoot';
  it('takes effect at the next boot while there is a platform key', async () => {
    expect((await patch(PATH, { SecureBootEnable: true })).status).toBe(204);
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootEnable: true, SecureBootCurrentBoot: 'Disabled', SecureBootMode: 'UserMode' });
    bmc.start();
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootCurrentBoot: 'Enabled' });
    expect((await post(`${PATH}/Actions/SecureBoot.ResetKeys`, { ResetKeysType: 'DeletePK' })).status).toBe(204);
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootCurrentBoot: 'Enabled', SecureBootMode: 'SetupMode' });
    bmc.start();
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootEnable: true, SecureBootCurrentBoot: 'Disabled' });
  });
  it('has databases to which certificates can be added', async () => {
    const keys = `${PATH}/SecureBootDatabases/db/Certificates`;
    const count = async (): Promise<unknown> => (await bmc.get(keys))['Members@odata.count'];
    expect(await count()).toBe(1);
    const added = await post(keys, { CertificateString: 'mine', CertificateType: 'PEM' });
    expect([added.status, added.headers.get('location')]).toEqual([201, `/redfish/v1${keys}/2`]);
    expect(await bmc.get(`${keys}/2`)).toMatchObject({ CertificateString: 'mine' });
    for (const [type, left] of [
      ['DeleteAllKeys', 0],
      ['ResetAllKeysToDefault', 1],
    ] as const) {
      await post(`${PATH}/SecureBootDatabases/db/Actions/SecureBootDatabase.ResetKeys`, { ResetKeysType: type });
      expect(await count()).toBe(left);
    }
  });
  it.each([
    [{ SecureBootEnable: 'yes' }, 'PropertyValueTypeError'],
    [{ SecureBootMode: 'UserMode' }, 'PropertyNotWritable'],
  ])('rejects %j', async (body, message) => {
    expect((await patch(PATH, body)).body.error?.code).toBe(`Base.1.8.${message}`);
  });
});

it('Thermal, ThermalSubsystem and Sensors report the same readings for each power state', async () => {
  const chassis = '/Chassis/sim-0';
  const seen = async (): Promise<readonly unknown[]> => {
    const thermal = (await bmc.get(`${chassis}/Thermal`)) as unknown as {
      readonly Temperatures: readonly { readonly ReadingCelsius: number | null }[];
      readonly Fans: readonly { readonly Reading: number | null }[];
    };
    const metrics = await bmc.get(`${chassis}/ThermalSubsystem/ThermalMetrics`);
    return [
      thermal.Temperatures.map((Temperature) => Temperature.ReadingCelsius),
      (metrics['TemperatureReadingsCelsius'] as readonly { readonly Reading: unknown }[]).map((item) => item.Reading),
      thermal.Fans[0]!.Reading,
      (await bmc.get(`${chassis}/Sensors/PSU1Power`))['Reading'],
    ];
  };
  expect(await seen()).toEqual([[21, null], [21, null], 0, 10]);
  bmc.on = true;
  expect(await seen()).toEqual([[24, 48], [24, 48], 6100, 182]);
});

describe('accounts', () => {
  const login = (name: string, password: string): Record<string, string> => ({
    authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
  });
  const status = async (method: string, path: string, as: Record<string, string>, body?: object): Promise<number> =>
    (await bmc.ask(method, `/redfish/v1${path}`, body, as)).status;
  it('have the privileges of their role', async () => {
    expect((await post('/AccountService/Accounts', { UserName: 'eve', Password: 'secret', RoleId: 'ReadOnly' })).status).toBe(201);
    const eve = login('eve', 'secret');
    expect(await status('GET', '/Systems/sim-0', eve)).toBe(200);
    expect(await status('PATCH', '/Systems/sim-0', eve, { AssetTag: 'x' })).toBe(403);
    expect((await patch('/AccountService/Accounts/eve', { RoleId: 'Operator', Password: 'secret2' })).status).toBe(204);
    expect(await status('GET', '/Systems/sim-0', eve)).toBe(401);
    const eve2 = login('eve', 'secret2');
    expect(await status('PATCH', '/Systems/sim-0', eve2, { AssetTag: 'x' })).toBe(204);
    expect(await status('DELETE', '/AccountService/Accounts/eve', eve2)).toBe(403);
    expect((await bmc.ask('DELETE', '/redfish/v1/AccountService/Accounts/eve')).status).toBe(204);
    expect(await status('GET', '/Systems/sim-0', eve2)).toBe(401);
    expect((await bmc.ask('DELETE', '/redfish/v1/AccountService/Accounts/admin')).status).toBe(403);
  });
  it.each([
    [{ UserName: 'eve', Password: 'x', RoleId: 'ReadOnly' }, 'PropertyValueFormatError'],
    [{ UserName: 'admin', Password: 'secret', RoleId: 'ReadOnly' }, 'ResourceAlreadyExists'],
    [{ UserName: 'a/b', Password: 'secret', RoleId: 'ReadOnly' }, 'PropertyValueFormatError'],
    [{ UserName: 'eve', Password: 'secret', RoleId: 'God' }, 'PropertyValueNotInList'],
    [{ UserName: 'eve', RoleId: 'ReadOnly' }, 'CreateFailedMissingReqProperties'],
  ])('are rejected with %j', async (body, message) => {
    const answer = await post('/AccountService/Accounts', body);
    expect(answer.body.error?.code).toBe(`Base.1.8.${message}`);
    if ('Password' in body && body.Password.length > 1) expect(JSON.stringify(answer.body)).not.toContain(body.Password);
  });
});

it('test events are sent to subscribers', async () => {
  const heard = new Promise<{ readonly headers: unknown; readonly body: string }>((done) => {
    bmc.onPost = (headers, body) => done({ headers, body });
  });
  const made = await post('/EventService/Subscriptions', {
    Destination: `${bmc.filesUrl}/events`,
    Context: 'mine',
    Protocol: 'Redfish',
    HttpHeaders: [{ 'X-Secret': 'hush' }],
  });
  expect(made.status).toBe(201);
  expect(JSON.stringify(made.body)).not.toContain('hush');
  const test = { MessageId: 'Base.1.8.Success', EventType: 'Alert' };
  expect((await post('/EventService/Actions/EventService.SubmitTestEvent', test)).status).toBe(204);
  const { headers, body } = await heard;
  expect(headers).toMatchObject({ 'x-secret': 'hush' });
  expect(JSON.parse(body)).toMatchObject({ Context: 'mine', Events: [{ MessageId: 'Base.1.8.Success', EventType: 'Alert' }] });
  expect((await bmc.ask('DELETE', made.headers.get('location')!)).status).toBe(204);
  expect((await bmc.get('/EventService/Subscriptions'))['Members@odata.count']).toBe(0);
});

it('the log records the boots of the machine until it is cleared', async () => {
  const count = async (): Promise<unknown> => (await bmc.get('/Systems/sim-0/LogServices/SEL/Entries'))['Members@odata.count'];
  bmc.start();
  bmc.start();
  expect(await count()).toBe(2);
  expect(await bmc.get('/Systems/sim-0/LogServices/SEL/Entries/2')).toMatchObject({ Created: '1970-01-01T00:16:40Z' });
  await post('/Systems/sim-0/LogServices/SEL/Actions/LogService.ClearLog', {});
  expect(await count()).toBe(0);
});

describe('manager', () => {
  it('has a clock that can be set', async () => {
    expect((await patch('/Managers/sim-0', { DateTime: '2026-01-02T03:04:05+02:00', DateTimeLocalOffset: '+02:00' })).status).toBe(204);
    bmc.now += 60_000;
    expect(await bmc.get('/Managers/sim-0')).toMatchObject({ DateTime: '2026-01-02T03:05:05+02:00', DateTimeLocalOffset: '+02:00' });
    for (const body of [{ DateTime: 'yesterday' }, { DateTimeLocalOffset: '+25:00' }, { DateTime: 5 }])
      expect((await patch('/Managers/sim-0', body)).status).toBe(400);
  });
  it('resets everything except volumes and firmware with ResetToDefaults', async () => {
    await patch('/Systems/sim-0', { AssetTag: 'mine' });
    bmc.system.hardware.set(FIRMWARE, { bios: '7' });
    expect((await post('/Managers/sim-0/Actions/Manager.ResetToDefaults', { ResetType: 'ResetAll' })).status).toBe(204);
    bmc.now += 5000;
    expect(await bmc.get('/Systems/sim-0')).toMatchObject({ AssetTag: '', BiosVersion: '7' });
  });
});

it('the OData documents are readable without authentication', async () => {
  expect((await bmc.ask('GET', '/redfish/v1/odata', undefined, {})).body).toHaveProperty(['@odata.context'], '/redfish/v1/$metadata');
  const answer = await fetch(`${bmc.url}/redfish/v1/$metadata`);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/xml;charset=utf-8']);
  expect(await answer.text()).toContain('<edmx:Include Namespace="Bios.v1_3_0"/>');
});
