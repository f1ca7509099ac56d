/** BIOS settings and RAID volumes through the whole server: simulated machines behind their Redfish service, and the agents in them. */
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 3,
    options: { 'redfish.firmware_update_status_interval': 1, 'redfish.raid_config_status_interval': 1, 'agent.command_wait_interval': 1 },
  });
});
afterAll(() => whole?.close());

type Shown = Readonly<Record<string, unknown>>;
const manageable = async (machine: number): Promise<string> => {
  const uuid = await whole.enrol(whole.fleet.machines[machine]!);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  return uuid;
};
const settings = async (uuid: string): Promise<Readonly<Record<string, Shown>>> => {
  const { bios } = (await whole.call('GET', `/v1/nodes/${uuid}/bios?detail=True`)).body as { readonly bios: readonly Shown[] };
  return Object.fromEntries(bios.map((bio) => [bio['name'] as string, bio]));
};
const clean = async (uuid: string, steps: readonly object[]): Promise<Shown> => {
  await whole.order(uuid, 'clean', { clean_steps: steps });
  return whole.reach(uuid, 'manageable');
};
const apply = (changes: Shown): object => ({
  interface: 'bios',
  step: 'apply_configuration',
  args: { settings: Object.entries(changes).map(([name, value]) => ({ name, value })) },
});

it('records BIOS settings at manage, changes them in cleaning, and resets them', async () => {
  const uuid = await manageable(0);
  expect((await settings(uuid))['BootRetrySeconds']).toMatchObject({
    value: '30',
    attribute_type: 'Integer',
    lower_bound: 0,
    upper_bound: 300,
    read_only: false,
  });
  await clean(uuid, [apply({ BootRetrySeconds: '60', QuietBoot: 'true', PowerProfile: 'Performance' })]);
  const changed = await settings(uuid);
  expect(['BootRetrySeconds', 'QuietBoot', 'PowerProfile'].map((name) => changed[name]!['value'])).toEqual(['60', 'True', 'Performance']);
  await clean(uuid, [{ interface: 'bios', step: 'factory_reset' }]);
  expect((await settings(uuid))['BootRetrySeconds']).toMatchObject({ value: '30' });
});

it('fails cleaning with the names of invalid BIOS settings', async () => {
  const uuid = await manageable(1);
  await whole.order(uuid, 'clean', { clean_steps: [apply({ PowerProfile: 'Turbo', ProductName: 'Mine' })] });
  const { last_error: why, maintenance } = await whole.reach(uuid, 'clean failed').catch(async () => {
    return (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
  });
  expect(why).toContain(
    `Redfish BIOS apply_configuration failed for node ${uuid}: invalid value for setting(s): PowerProfile, ProductName`,
  );
  expect(maintenance).toBe(true);
});

it('creates RAID volumes while the agent runs, shows them, and deletes them', async () => {
  const uuid = await manageable(2);
  const wanted = { logical_disks: [{ size_gb: 1, raid_level: '0', is_root_volume: true, volume_name: 'root' }] };
  expect(await whole.call('PUT', `/v1/nodes/${uuid}/states/raid`, wanted)).toMatchObject({ status: 204 });
  const made = await clean(uuid, [
    { interface: 'raid', step: 'delete_configuration' },
    { interface: 'raid', step: 'create_configuration' },
  ]);
  expect(made['raid_config']).toMatchObject({ logical_disks: [{ name: 'root', controller: 'RAID1', size_gb: 1, raid_level: '0' }] });
  const gone = await clean(uuid, [{ interface: 'raid', step: 'delete_configuration' }]);
  expect(gone['raid_config']).toMatchObject({ logical_disks: [] });
  expect(gone['driver_internal_info']).not.toHaveProperty('raid_configs');
});
