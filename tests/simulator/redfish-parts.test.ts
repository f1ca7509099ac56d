import { testBmc, type Answered, type TestBmc } from './redfish-bmc';

let bmc: TestBmc;
beforeEach(async () => {
  bmc = await testBmc();
});
afterEach(() => bmc.close());
const post = (path: string, body: object): Promise<Answered> => bmc.ask('POST', `/redfish/v1${path}`, body);
const patch = (path: string, body: object): Promise<Answered> => bmc.ask('PATCH', `/redfish/v1${path}`, body);

describe('secure boot', () => {
  const PATH = '/Systems/sim-0/SecureBoot';
  it('is in force after the next start, as long as there is a platform key', async () => {
    expect((await patch(PATH, { SecureBootEnable: true })).status).toBe(204);
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootEnable: true, SecureBootCurrentBoot: 'Disabled', SecureBootMode: 'UserMode' });
    bmc.start();
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootCurrentBoot: 'Enabled' });
    expect((await post(`${PATH}/Actions/SecureBoot.ResetKeys`, { ResetKeysType: 'DeletePK' })).status).toBe(204);
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootCurrentBoot: 'Enabled', SecureBootMode: 'SetupMode' });
    bmc.start();
    expect(await bmc.get(PATH)).toMatchObject({ SecureBootEnable: true, SecureBootCurrentBoot: 'Disabled' });
  });
  it('has databases, to which keys are added', async () => {
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
  ])('refuses %j', async (body, message) => {
    expect((await patch(PATH, body)).body.error?.code).toBe(`Base.1.8.${message}`);
  });
});

it('reads sensors, in each of the three ways, as the machine is on or off', async () => {
  const chassis = '/Chassis/sim-0';
  const seen = async (): Promise<readonly unknown[]> => {
    const thermal = (await bmc.get(`${chassis}/Thermal`)) as unknown as {
      readonly Temperatures: readonly { readonly ReadingCelsius: number | null }[];
      readonly Fans: readonly { readonly Reading: number | null }[];
    };
    const metrics = await bmc.get(`${chassis}/ThermalSubsystem/ThermalMetrics`);
    return [
      thermal.Temperatures.map((one) => one.ReadingCelsius),
      (metrics['TemperatureReadingsCelsius'] as readonly { readonly Reading: unknown }[]).map((one) => one.Reading),
      thermal.Fans[0]!.Reading,
      (await bmc.get(`${chassis}/Sensors/PSU1Power`))['Reading'],
    ];
  };
  expect(await seen()).toEqual([[21, null], [21, null], null, 10]);
  bmc.on = true;
  expect(await seen()).toEqual([[24, 48], [24, 48], 6100, 182]);
});
