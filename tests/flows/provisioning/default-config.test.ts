/** Default configs through the whole server: what changes behind its back is shown, and automated cleaning brings the machine back. */
import { runCommand } from '../../support/command';
import { BIOS as BIOS_STATE, biosValues } from '../../../simulator/hardware/bios-settings';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 5,
    options: { 'redfish.firmware_update_status_interval': 1, 'redfish.raid_config_status_interval': 1, 'agent.command_wait_interval': 1 },
  });
});
afterAll(() => whole?.close());

type Shown = Readonly<Record<string, unknown>>;
const BIOS = { interface: 'bios', step: 'apply_configuration' };
const settings = (values: Shown): object => ({ settings: Object.entries(values).map(([name, value]) => ({ name, value })) });
const set = async (body: object): Promise<Shown> => {
  const answer = await whole.call('POST', '/v1/default_configs', body);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body;
};
const bios = async (uuid: string): Promise<Readonly<Record<string, unknown>>> => {
  const { bios: all } = (await whole.call('GET', `/v1/nodes/${uuid}/bios`)).body as { readonly bios: readonly Shown[] };
  return Object.fromEntries(all.map(({ name, value }) => [name as string, value]));
};
const shown = async (uuid: string) =>
  (await whole.call('GET', `/v1/nodes/${uuid}/default_config`)).body as {
    readonly arguments: readonly Shown[];
    readonly differences: readonly string[];
  };
const manageable = async (machine: number, more: Shown): Promise<string> => {
  const uuid = await whole.enrol(whole.fleet.machines[machine]!, more);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  return uuid;
};
/** Cleans an available node again. @returns the entry of the history with its steps */
const again = async (uuid: string): Promise<string> => {
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await provided(uuid);
  return stepsOfLast(uuid);
};
const stepsOfLast = async (uuid: string): Promise<string> => {
  const { history } = (await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body as { readonly history: readonly Shown[] };
  return String(history.filter(({ event_type: type }) => type === 'automated_cleaning_start').at(-1)?.['event']);
};
const provided = async (uuid: string): Promise<Shown> => {
  await whole.order(uuid, 'provide');
  return whole.reach(uuid, 'available');
};

it('merges class, rack and node, shows what differs, and brings the BIOS back in automated cleaning', async () => {
  await set({
    resource_class: 'gold',
    steps: [{ ...BIOS, args: settings({ QuietBoot: true, BootRetrySeconds: 60, PowerProfile: 'Balanced' }) }],
  });
  await set({ property: 'rack', value: '12', steps: [{ ...BIOS, args: settings({ PowerProfile: 'Performance' }) }] });
  const uuid = await manageable(0, { resource_class: 'gold', properties: { rack: 12 } });
  await set({ node_uuid: uuid, steps: [{ ...BIOS, args: settings({ BootRetrySeconds: 90 }) }] });
  const before = await shown(uuid);
  expect(before.arguments.map(({ argument, origin, state }) => [argument, origin, state])).toEqual([
    ['settings[QuietBoot]', 'resource class gold', expect.anything()],
    ['settings[BootRetrySeconds]', 'node', 'differs'],
    ['settings[PowerProfile]', 'property rack=12', 'differs'],
  ]);
  expect(before.differences).toContain('BIOS differs from the default of the node in 1 setting: BootRetrySeconds is 30, not 90');
  await provided(uuid);
  expect(await bios(uuid)).toMatchObject({ QuietBoot: 'True', BootRetrySeconds: '90', PowerProfile: 'Performance' });
  expect((await shown(uuid)).differences).toEqual([]);
  // Somebody changes it behind the server's back: it is shown, and the next automated cleaning brings it back.
  const { hardware } = whole.fleet.machines[0]!.control;
  hardware.set(BIOS_STATE, {
    ...hardware.get(BIOS_STATE),
    current: { ...hardware.get(BIOS_STATE).current, QuietBoot: false, PowerProfile: 'PowerSave' },
  });
  const differences = [
    'BIOS differs from the default of resource class gold in 1 setting: QuietBoot is False, not True',
    'BIOS differs from the default of property rack=12 in 1 setting: PowerProfile is PowerSave, not Performance',
  ];
  expect((await shown(uuid)).differences).toEqual(differences);
  const { checks } = (await whole.call('GET', `/v1/nodes/${uuid}/readiness`)).body as { readonly checks: readonly Shown[] };
  expect(checks.find(({ code }) => code === 'default-config')).toMatchObject({ result: 'warns', message: differences.join('; ') });
  await again(uuid);
  expect(biosValues(hardware.get(BIOS_STATE))).toMatchObject({ QuietBoot: true, BootRetrySeconds: 90, PowerProfile: 'Performance' });
  expect((await shown(uuid)).differences).toEqual([]);
  // Nothing differs: no step is added.
  expect(await again(uuid)).toMatch(/steps=\[(?!.*bios)/);
});

it('is set, shown and removed by the command', async () => {
  const command = (...words: readonly string[]) => runCommand([...words, '--url', whole.server.apiUrl!]);
  const config = (...words: readonly string[]) => command('default-config', ...words);
  const uuid = await manageable(1, { resource_class: 'silver', name: 'silver-1' });
  expect(await config('set', 'class:silver', 'bios.apply_configuration', 'settings=[{"name": "QuietBoot", "value": true}]')).toMatchObject({
    code: 0,
    output: 'set\n',
  });
  expect(await config('set', 'node:silver-1', 'deploy.erase_devices', '--priority', '0')).toMatchObject({ code: 0 });
  expect(
    await config('set', 'node:silver-1', 'raid.apply_configuration', 'raid_config={"logical_disks": [{"size_gb": 1, "raid_level": "0"}]}'),
  ).toMatchObject({ code: 0 });
  expect((await config('show', `node:${uuid}`)).output).toBe(
    `node:${uuid}\n  deploy.erase_devices, priority 0 {}\n  raid.apply_configuration {"raid_config":{"logical_disks":[{"size_gb":1,"raid_level":"0"}]}}\n`,
  );
  expect((await command('why', 'silver-1')).output).toContain(
    '  default config:\n    ! bios.apply_configuration settings[QuietBoot] = {"name":"QuietBoot","value":true} (resource class silver; the machine has "False")\n',
  );
  expect((await config('list')).output).toContain(
    'class:silver\n  bios.apply_configuration {"settings":[{"name":"QuietBoot","value":true}]}\n',
  );
  expect(await config('unset', 'node:silver-1', 'deploy.erase_devices')).toMatchObject({ code: 0, output: 'unset\n' });
  expect(await config('unset', 'node:silver-1', 'raid.apply_configuration')).toMatchObject({ code: 0 });
  expect(await config('show', 'node:silver-1')).toMatchObject({ code: 2 });
  expect(await config('set', 'class:silver', 'bios.flash', 'x=1')).toMatchObject({ code: 2 });
});

it('makes the RAID layout of the class in automated cleaning, again when it was changed, and else leaves it', async () => {
  const layout = { logical_disks: [{ size_gb: 1, raid_level: '0', is_root_volume: true, volume_name: 'root' }] };
  await set({ resource_class: 'raided', steps: [{ interface: 'raid', step: 'apply_configuration', args: { raid_config: layout } }] });
  const uuid = await manageable(2, { resource_class: 'raided' });
  expect((await shown(uuid)).differences).toEqual(['RAID differs from the default of resource class raided']);
  expect((await provided(uuid))['raid_config']).toMatchObject({ logical_disks: [{ name: 'root', size_gb: 1, raid_level: '0' }] });
  expect((await shown(uuid)).differences).toEqual([]);
  expect(await again(uuid)).toMatch(/steps=\[(?!.*raid)/);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'clean', { clean_steps: [{ interface: 'raid', step: 'delete_configuration' }] });
  expect((await whole.reach(uuid, 'manageable'))['raid_config']).toMatchObject({ logical_disks: [] });
  expect((await provided(uuid))['raid_config']).toMatchObject({ logical_disks: [{ name: 'root' }] });
  expect(await stepsOfLast(uuid)).toMatch(/'create_configuration'.*'delete_existing': True/);
});

it('fills in what a request leaves out, and takes what it names', async () => {
  await set({ resource_class: 'filled', steps: [{ ...BIOS, args: settings({ QuietBoot: true }) }] });
  const uuid = await manageable(3, { resource_class: 'filled' });
  await whole.order(uuid, 'clean', { clean_steps: [{ ...BIOS, args: settings({ BootRetrySeconds: 61 }) }] });
  await whole.reach(uuid, 'manageable');
  expect(await bios(uuid)).toMatchObject({ QuietBoot: 'False', BootRetrySeconds: '61' });
  await whole.order(uuid, 'clean', { clean_steps: [BIOS] });
  await whole.reach(uuid, 'manageable');
  expect(await bios(uuid)).toMatchObject({ QuietBoot: 'True', BootRetrySeconds: '61' });
});

it('gives the steps of the agent their settings', async () => {
  await set({ resource_class: 'erased', steps: [{ interface: 'deploy', step: 'erase_devices', args: { iterations: 3 } }] });
  const uuid = await manageable(4, { resource_class: 'erased' });
  await provided(uuid);
  expect(await stepsOfLast(uuid)).toMatch(/'step': 'erase_devices',.*'args': \{'iterations': 3\}/);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  const steps = [{ interface: 'deploy', step: 'erase_devices', args: { iterations: 101 } }];
  const answer = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'clean', clean_steps: steps });
  expect(answer.status).toBe(400);
  expect(faultOf(answer.body)).toMatch(/the argument iterations of clean step .* must be from 0 to 100/);
});

const RAID = { interface: 'raid', step: 'apply_configuration' };
it.each([
  [{ resource_class: 'bad' }, /'steps' is a required property/],
  [{ resource_class: 'bad', steps: [] }, /should be non-empty/],
  [{ steps: [BIOS] }, /^one of resource_class, property, node_uuid is needed$/],
  [{ resource_class: 'bad', property: 'rack', value: '1', steps: [BIOS] }, /is needed, not resource_class and property$/],
  [{ property: 'rack', steps: [BIOS] }, /^property and value need each other$/],
  [{ resource_class: 'bad', steps: [{ ...BIOS, interface: 'network' }] }, /'network' is not one of/],
  [
    { resource_class: 'bad', steps: [{ ...BIOS, step: 'flash' }] },
    /^steps\[0\]\.step: the interface bios has no step flash\. Its steps: apply_configuration, factory_reset$/,
  ],
  [
    { resource_class: 'bad', steps: [{ ...BIOS, args: { values: [] } }] },
    /^steps\[0\]\.args\.values: the step bios\.apply_configuration has no such argument\. Its arguments: settings$/,
  ],
  [{ resource_class: 'bad', steps: [{ ...BIOS, args: { settings: {} } }] }, /^steps\[0\]\.args\.settings: it must be of the type list$/],
  [
    { resource_class: 'bad', steps: [{ ...BIOS, args: { settings: [{ name: 'A' }] } }] },
    /^steps\[0\]\.args: settings must be a list of objects, each with a name and a value$/,
  ],
  [{ resource_class: 'bad', steps: [BIOS, BIOS] }, /^steps\[1\]\.step: bios\.apply_configuration is in the list twice$/],
  [
    { resource_class: 'bad', steps: [{ ...BIOS, args: settings({ A: '******' }) }] },
    /^steps\[0\]\.args\.settings: \*{6} stands for a secret/,
  ],
  [{ resource_class: 'bad', steps: [{ ...BIOS, args: [] }] }, /is not of type 'object'/],
  [{ resource_class: 'bad', steps: [{ ...BIOS, priority: -1 }] }, /-1 is less than the minimum of 0/],
  [
    { resource_class: 'bad', steps: [{ ...RAID, args: { raid_config: { disks: [] } } }] },
    /^steps\[0\]\.args: RAID config validation error: 'logical_disks' is a required property$/,
  ],
  [
    {
      resource_class: 'bad',
      steps: [{ interface: 'firmware', step: 'update', args: { settings: [{ component: 'bmc', url: 'http://192.0.2.1/f' }] } }],
    },
    /^steps\[0\]\.args\.settings\[0\]\.version: a text is needed/,
  ],
  [
    { resource_class: 'bad', steps: [{ interface: 'deploy', step: 'burnin_cpu', args: { timeout: '1 day' } }] },
    /^steps\[0\]\.args\.timeout: it must be of the type integer$/,
  ],
  [
    { resource_class: 'bad', steps: [{ interface: 'deploy', step: 'burnin_cpu', args: { timeout: 0 } }] },
    /^steps\[0\]\.args\.timeout: it must be from 1 to 7257600$/,
  ],
  [
    { resource_class: 'bad', steps: [{ interface: 'deploy', step: 'erase_devices', args: { passes: 3 } }] },
    /^steps\[0\]\.args\.passes: the step deploy\.erase_devices has no such argument\. Its arguments: iterations, zeroize$/,
  ],
  [
    { resource_class: 'bad', steps: [{ interface: 'deploy', step: 'burnin_gpu' }] },
    /^steps\[0\]\.step: the interface deploy has no step burnin_gpu/,
  ],
])('refuses %j when it is set', async (body, message) => {
  const { status, body: answer } = await whole.call('POST', '/v1/default_configs', body);
  expect(status).toBe(400);
  expect(faultOf(answer)).toMatch(message);
});
const faultOf = (answer: Shown): string => (JSON.parse(String(answer['error_message'])) as { faultstring: string }).faultstring;

it.each([
  [{ Turbo: true }, /^steps\[0\]\.args\.settings\[0\]\.name: no BIOS of these nodes has a setting Turbo$/],
  [
    { QuietBoot: true, PowerProfile: 'Fast' },
    /^steps\[0\]\.args\.settings\[1\]\.value: it must be one of Balanced, Performance, PowerSave$/,
  ],
  [{ BootRetrySeconds: 301 }, /^steps\[0\]\.args\.settings\[0\]\.value: it must be from 0 to 300$/],
  [{ ProductName: 'x' }, /^steps\[0\]\.args\.settings\[0\]\.name: the setting is read-only$/],
])('refuses the BIOS settings %j, which the machines do not have', async (values, message) => {
  // The machine of the first test.
  const { status, body } = await whole.call('POST', '/v1/default_configs', {
    property: 'rack',
    value: '13',
    steps: [{ ...BIOS, args: settings(values) }],
  });
  expect(status).toBe(201);
  await whole.call('DELETE', `/v1/default_configs/${String(body['uuid'])}`);
  const { body: known } = await whole.call('GET', '/v1/default_configs?property=rack&value=12');
  const [config] = known['default_configs'] as readonly Shown[];
  const answer = await whole.call('PATCH', `/v1/default_configs/${String(config!['uuid'])}`, [
    { op: 'replace', path: '/steps/0/args', value: settings(values) },
  ]);
  expect(answer.status).toBe(400);
  expect(faultOf(answer.body)).toMatch(message);
});

it('refuses a second default config of a scope, and an unknown node', async () => {
  const steps = [{ interface: 'deploy', step: 'erase_devices', priority: 0 }];
  await set({ resource_class: 'twice', steps });
  expect((await whole.call('POST', '/v1/default_configs', { resource_class: 'twice', steps })).status).toBe(409);
  expect((await whole.call('POST', '/v1/default_configs', { node_uuid: '00000000-0000-4000-8000-000000000001', steps })).status).toBe(404);
});

it('shows no secret: neither of a default config, nor of the list of steps', async () => {
  const made = await set({ resource_class: 'secret', steps: [{ ...BIOS, args: settings({ AdminPassword: 'hunter2', QuietBoot: true }) }] });
  expect(JSON.stringify(made)).not.toContain('hunter2');
  const { body } = await whole.call('GET', `/v1/default_configs/${String(made['uuid'])}`);
  expect(body['steps']).toEqual([{ ...BIOS, args: settings({ AdminPassword: '******', QuietBoot: true }) }]);
  expect(
    (await whole.call('PATCH', `/v1/default_configs/${String(made['uuid'])}`, [{ op: 'replace', path: '/steps', value: body['steps'] }]))
      .status,
  ).toBe(400);
  const changed = await whole.call('PATCH', `/v1/default_configs/${String(made['uuid'])}`, [
    { op: 'replace', path: '/steps/0/args/settings/1/value', value: false },
  ]);
  expect(changed.status).toBe(200);
  expect(await database.query('SELECT steps FROM default_configs WHERE uuid = $1', [made['uuid']])).toEqual([
    { steps: [{ ...BIOS, args: settings({ AdminPassword: 'hunter2', QuietBoot: false }) }] },
  ]);
});
