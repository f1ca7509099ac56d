import { redfishBios } from '../../../../drivers/redfish/steps/bios';
import { createRegistryCache } from '../../../../drivers/redfish/steps/bios-registry';
import { convertSettings, registryOf, unapplied } from '../../../../drivers/redfish/steps/bios-settings';
import { redfishManagement } from '../../../../drivers/redfish/steps/management';
import { redfishPower } from '../../../../drivers/redfish/power';
import type { BiosSetting, DeployInterface, Outcome, Task } from '../../../../drivers/interfaces';
import { fakeDeploy } from '../../../../drivers/fake/fake';
import type { JsonObject, NodeRecord } from '../../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../../wire/redfish';
import { NODE_UUID } from '../../../support/task';
import { SYSTEM, redfishService, type RedfishService } from '../../../wire/redfish/service';
import { bmcTask } from '../../bmc-task';
import { BIOS, RESET_BIOS, SETTINGS, withBios, type BiosService } from '../../redfish-bios-service';

let service: RedfishService;
let bios: BiosService;
let pool: RedfishPool;
beforeEach(async () => {
  service = await redfishService();
  bios = withBios(service);
  pool = createRedfishPool();
});
afterEach(async () => {
  await pool.close();
  await service.close();
});

/** A deploy interface with an agent. */
const agentDeploy: DeployInterface = { ...fakeDeploy, agentSteps: async () => [] };
const bench = (given: { readonly agent?: boolean; readonly node?: Partial<NodeRecord> } = {}) => {
  const made = bmcTask({
    node: {
      driver: 'redfish',
      provision_state: 'cleaning',
      clean_step: { interface: 'bios', step: 'apply_configuration' },
      driver_info: { redfish_address: service.url },
      ...given.node,
    },
    driver: { power: redfishPower, management: redfishManagement, bios: redfishBios, deploy: given.agent ? agentDeploy : fakeDeploy },
    options: { 'redfish.connection_attempts': 1 },
    connections: { redfish: pool, biosRegistries: createRegistryCache() },
  });
  const kept: BiosSetting[] = [];
  const task = Object.create(made.task, {
    saveBiosSettings: { value: async (settings: readonly BiosSetting[]) => void kept.splice(0, kept.length, ...settings) },
  }) as Task;
  return { ...made, task, kept };
};
const stepOf = (name: string) => redfishBios.steps!.find(({ step }) => step === name)!;
const apply = (task: Task, settings: unknown): Promise<Outcome> => stepOf('apply_configuration').run(task, { settings });
const poll = (task: Task, name = 'apply_configuration'): Promise<Outcome> => stepOf(name).poll!(task, {});
const sent = (method: string): readonly unknown[] =>
  service.asked.filter((candidate) => candidate.method === method).map(({ body }) => body);
const named = (settings: JsonObject): unknown => Object.entries(settings).map(([name, value]) => ({ name, value }));

describe('cache of settings', () => {
  it("contains the registry's properties of each setting", async () => {
    const { task, kept } = bench();
    await task.saveBiosSettings(await redfishBios.settings!(task));
    const nothing = Object.fromEntries(
      [
        'attribute_type',
        'allowable_values',
        'lower_bound',
        'upper_bound',
        'min_length',
        'max_length',
        'read_only',
        'reset_required',
        'unique',
      ].map((name) => [name, null]),
    );
    expect(kept).toEqual([
      {
        ...nothing,
        name: 'BootMode',
        value: 'Uefi',
        attribute_type: 'Enumeration',
        allowable_values: ['Uefi', 'LegacyBios'],
        read_only: false,
        reset_required: true,
      },
      { ...nothing, name: 'NumCores', value: '10', attribute_type: 'Integer', lower_bound: 1, upper_bound: 64 },
      { ...nothing, name: 'Turbo', value: 'True', attribute_type: 'Boolean' },
      { ...nothing, name: 'AssetTag', value: '', attribute_type: 'String', min_length: 0, max_length: 8, unique: true },
      { ...nothing, name: 'Serial', value: 'X1', attribute_type: 'String', read_only: true },
      { ...nothing, name: 'SetupPassword', value: null, attribute_type: 'Password' },
      { ...nothing, name: 'Unknown', value: 'a' },
    ]);
  });
  it('reads a registry once', async () => {
    const { task } = bench();
    await task.saveBiosSettings(await redfishBios.settings!(task));
    await task.saveBiosSettings(await redfishBios.settings!(task));
    expect(service.asked.filter(({ path }) => path === '/redfish/v1/registries/bios.json')).toHaveLength(1);
  });
  it.each<[string, () => unknown]>([
    ['no registry is named', () => Reflect.deleteProperty(service.resources[BIOS] as object, 'AttributeRegistry')],
    ['the service has none', () => Reflect.deleteProperty(service.resources['/redfish/v1/'] as object, 'Registries')],
    ['its file is missing', () => Reflect.deleteProperty(service.resources, '/redfish/v1/registries/bios.json')],
    ['its file is on another host', () => bios.registryAt('http://elsewhere.example/bios.json')],
    [
      'its content is invalid',
      () => void (service.resources['/redfish/v1/registries/bios.json'] = { RegistryEntries: { Attributes: [5, null, {}] } }),
    ],
  ])('contains no registry properties when %s', async (_, spoil) => {
    spoil();
    const { task, kept } = bench();
    await task.saveBiosSettings(await redfishBios.settings!(task));
    expect(kept).toHaveLength(7);
    expect(kept[0]).toMatchObject({ name: 'BootMode', value: 'Uefi', attribute_type: null });
  });
  it('finds a registry by its Id when the names differ', async () => {
    Object.assign(service.resources['/redfish/v1/Registries/BiosRegistry.v1_0_0'] as object, { Registry: 'Bios.1.0' });
    Object.assign(service.resources['/redfish/v1/registries/bios.json'] as object, { Id: 'BiosRegistry.v1_0_0' });
    const { task } = bench();
    expect(await redfishBios.settings!(task)).toContainEqual(expect.objectContaining({ name: 'NumCores', attribute_type: 'Integer' }));
  });
  it('is unsupported without the Bios resource', async () => {
    bios.remove();
    const { task } = bench();
    await expect(redfishBios.settings!(task)).rejects.toMatchObject({
      name: 'UnsupportedDriverExtension',
    });
  });
});

describe('apply_configuration', () => {
  it('sends the settings with the types of the BIOS, and reboots', async () => {
    const { task, node, events } = bench();
    expect(await apply(task, named({ BootMode: 'LegacyBios', NumCores: '12', Turbo: 'false', Unknown: 'b' }))).toEqual({
      kind: 'wait',
      pollEvery: 60,
    });
    const attributes = { BootMode: 'LegacyBios', NumCores: 12, Turbo: false, Unknown: 'b' };
    expect(sent('PATCH')).toEqual([
      {
        Attributes: attributes,
        '@Redfish.SettingsApplyTime': { '@odata.type': '#Settings.v1_0_0.PreferredApplyTime', ApplyTime: 'OnReset' },
      },
    ]);
    expect(service.asked.find(({ method }) => method === 'PATCH')).toMatchObject({ path: SETTINGS, headers: { 'if-match': '"s1"' } });
    expect(events).toEqual(['power: rebooting']);
    expect(node().driver_internal_info).toMatchObject({
      redfish_bios_state: { reboot_requested: true, requested_bios_attrs: attributes },
    });
  });
  it('completes when the settings are in effect after the reboot, and caches them', async () => {
    const { task, node, kept } = bench();
    await apply(task, named({ NumCores: 12 }));
    expect(await poll(task)).toEqual({ kind: 'wait', quiet: true });
    bios.restart();
    expect(await poll(task)).toEqual({ kind: 'done' });
    expect(kept.find(({ name }) => name === 'NumCores')).toMatchObject({ value: '12' });
    expect(node().driver_internal_info).not.toHaveProperty('redfish_bios_state');
  });
  it('does nothing when all settings are in effect already', async () => {
    const { task, events } = bench();
    expect(await apply(task, named({ NumCores: '10', Turbo: 'True' }))).toEqual({ kind: 'done' });
    expect([sent('PATCH'), events]).toEqual([[], []]);
  });
  it('sends the settings when other values are pending', async () => {
    service.resources[SETTINGS] = { ...(service.resources[SETTINGS] as object), Attributes: { NumCores: 11 } };
    const { task } = bench();
    expect(await apply(task, named({ NumCores: 10 }))).toMatchObject({ kind: 'wait' });
  });
  describe('at a service that accepts settings and keeps nothing', () => {
    /** Takes a PATCH only if it fits; the settings object shows these attributes. */
    const drops = (fits: (match: string | undefined) => boolean, shown: object | undefined, etag?: string): void => {
      service.resources[SETTINGS] = { ...(etag === undefined ? {} : { '@odata.etag': etag }), ...(shown ? { Attributes: shown } : {}) };
      const { reply } = service;
      service.reply = (asked, response) => {
        if (asked.method !== 'PATCH') return reply(asked, response);
        if (fits(asked.headers['if-match'])) Object.assign(service.resources[SETTINGS] as object, asked.body);
        return { status: 200, body: {} };
      };
    };
    const matches = (): readonly unknown[] =>
      service.asked.filter(({ method }) => method === 'PATCH').map(({ headers }) => headers['if-match']);
    it('fails with maker, attribute and values where it lists another value', async () => {
      Object.assign(service.resources[SYSTEM] as object, { Manufacturer: 'ACME' });
      drops(() => false, { NumCores: 10, SetupPassword: null }, '"s1"');
      const { task, events } = bench();
      await expect(apply(task, named({ NumCores: 12, SetupPassword: 'hidden-word' }))).rejects.toThrow(
        `the change of ${SETTINGS} is accepted, not kept by the service (ACME): Attributes/NumCores was set to 12 and is 10.`,
      );
      expect([matches(), events]).toEqual([['"s1"', '*'], []]);
    });
    it.each([
      ['lists the old value', { NumCores: 10 }],
      ['lists nothing', undefined],
    ])('sends them once more with If-Match: * where an AMI shows no ETag and %s', async (_, shown) => {
      Object.assign(service.resources[SYSTEM] as object, { Manufacturer: 'American Megatrends' });
      drops((match) => match === '*', shown);
      const { task } = bench();
      expect(await apply(task, named({ NumCores: 12 }))).toMatchObject({ kind: 'wait' });
      expect(matches()).toEqual([undefined, '*']);
      expect(service.resources[SETTINGS]).toMatchObject({ Attributes: { NumCores: 12 } });
    });
    it('accepts a value in another form', async () => {
      drops(() => true, { Turbo: 'Enabled' }, '"s1"');
      const { reply } = service;
      service.reply = (asked, response) => {
        const said = reply(asked, response);
        if (asked.method === 'PATCH') service.resources[SETTINGS] = { Attributes: { Turbo: 'Disable' } };
        return said;
      };
      expect(await apply(bench().task, named({ Turbo: false }))).toMatchObject({ kind: 'wait' });
      expect(matches()).toEqual(['"s1"']);
    });
    it('fails 25 minutes after the restart where nothing shows them, without an agent', async () => {
      drops(() => false, undefined, '"s1"');
      const { task } = bench();
      await apply(task, named({ NumCores: 12 }));
      expect(await poll(task)).toEqual({ kind: 'wait', quiet: true });
      await task.clock.sleep(25 * 60_000 + 1);
      expect(await poll(task)).toEqual({
        kind: 'failed',
        reason:
          "Redfish BIOS apply_configuration step failed. Attributes {'NumCores': 12} are not updated. The service has accepted them, and not kept them.",
      });
    });
  });
  it('writes to the Bios resource without a settings resource', async () => {
    bios.withoutSettings();
    const { task } = bench();
    await apply(task, named({ NumCores: 12 }));
    expect(service.asked.find(({ method }) => method === 'PATCH')).toMatchObject({ path: BIOS, body: { Attributes: { NumCores: 12 } } });
    expect(await poll(task)).toEqual({ kind: 'done' });
  });
  it('does not store passwords or compare them after the reboot', async () => {
    const { task, node } = bench();
    await apply(task, named({ SetupPassword: 'hunter2', NumCores: 12 }));
    expect(JSON.stringify(node().driver_internal_info)).not.toContain('hunter2');
    bios.restart();
    expect(await poll(task)).toEqual({ kind: 'done' });
  });
  it.each<[string, JsonObject, string]>([
    ['read-only', { Serial: 'X2' }, 'Serial'],
    ['not among the allowable values', { BootMode: 'uefi' }, 'BootMode'],
    ['below its bound', { NumCores: 0 }, 'NumCores'],
    ['above its bound', { NumCores: '65' }, 'NumCores'],
    ['not a number', { NumCores: 'many' }, 'NumCores'],
    ['not a Boolean', { Turbo: 'yes' }, 'Turbo'],
    ['too long', { AssetTag: '123456789' }, 'AssetTag'],
    ['one of several invalid values', { Serial: 'a', NumCores: true, BootMode: 'Uefi' }, 'Serial, NumCores'],
  ])('rejects a value that is %s', async (_, settings, fields) => {
    const { task, events } = bench();
    await expect(apply(task, named(settings))).rejects.toMatchObject({
      status: 400,
      message: `Redfish BIOS apply_configuration failed for node ${NODE_UUID}: invalid value for setting(s): ${fields}`,
    });
    expect([sent('PATCH'), events]).toEqual([[], []]);
  });
  it.each([[5], [[{ name: 'a' }]], [[{ value: 'a' }]], [[null]], [[{ name: 'a', value: {} }]]])('rejects settings %j', async (settings) => {
    await expect(apply(bench().task, settings)).rejects.toMatchObject({ status: 400 });
  });
  it.each<[string, () => void, RegExp]>([
    ['there is no Bios resource', () => bios.remove(), /because BIOS settings are not supported\.$/],
    [
      'the service refuses the PATCH',
      () => (service.reply = ({ method }) => (method === 'PATCH' ? { status: 400, body: { error: { message: 'no' } } } : undefined)),
      new RegExp(`^Redfish exception occurred. Error: Redfish BIOS apply configuration failed for node ${NODE_UUID}. Error: HTTP PATCH`),
    ],
  ])('fails without a reboot when %s', async (_, spoil, message) => {
    spoil();
    const { task, events, node } = bench();
    await expect(apply(task, named({ NumCores: 12 }))).rejects.toMatchObject({ message: expect.stringMatching(message) as unknown });
    expect(events).toEqual([]);
    expect(node().driver_internal_info).toEqual({});
  });

  describe('with an agent', () => {
    const back = { agent_url: 'http://10.0.0.9:9999' };
    it('boots the agent again and waits for its heartbeat', async () => {
      const { task, events, node } = bench({ agent: true });
      await apply(task, named({ NumCores: 12 }));
      expect(events).toEqual(['power: rebooting']);
      bios.restart();
      expect(await poll(task)).toEqual({ kind: 'wait', quiet: true });
      await task.saveInternal(back);
      expect(await poll(task)).toEqual({ kind: 'done' });
      expect(node().driver_internal_info).toEqual(back);
    });
    it('fails with the settings that are not in effect when the agent is back', async () => {
      const { task, node } = bench({ agent: true });
      await apply(task, named({ NumCores: 12, BootMode: 'LegacyBios' }));
      bios.restart({ only: ['NumCores'] });
      await task.saveInternal(back);
      expect(await poll(task)).toEqual({
        kind: 'failed',
        reason: "Redfish BIOS apply_configuration step failed. Attributes {'BootMode': 'LegacyBios'} are not updated.",
      });
      expect(node().driver_internal_info).not.toHaveProperty('redfish_bios_state');
    });
    it('does not wait for the agent if the ramdisk is disabled', async () => {
      const { task } = bench({ agent: true, node: { driver_internal_info: { cleaning_disable_ramdisk: true } } });
      await apply(task, named({ NumCores: 12 }));
      bios.restart();
      expect(await poll(task)).toEqual({ kind: 'done' });
    });
  });

  it('waits for the end of the boot if BootProgress reports it', async () => {
    const { task } = bench();
    await apply(task, named({ NumCores: 12 }));
    bios.restart();
    const states: readonly [string, Outcome][] = [
      ['None', { kind: 'wait', quiet: true }],
      ['SystemHardwareInitializationComplete', { kind: 'wait' }],
      ['OSRunning', { kind: 'done' }],
    ];
    for (const [state, outcome] of states) {
      bios.progress(state);
      expect([state, await poll(task)]).toEqual([state, outcome]);
    }
  });
  it.each(['None', 'OEM', 'SystemHardwareInitializationComplete'])(
    'does not wait for the end of the boot if BootProgress always shows %s',
    async (state) => {
      bios.progress(state);
      const { task } = bench();
      await apply(task, named({ NumCores: 12 }));
      // Nothing shows yet that the BIOS has run.
      expect((await poll(task)).kind).toBe('wait');
      bios.restart();
      expect(await poll(task)).toEqual({ kind: 'done' });
    },
  );
  describe('of a machine that was off, BootProgress that stands still', () => {
    const minutes = (task: Task, count: number): Promise<void> => task.clock.sleep(count * 60_000);
    const begun = async (state: string): Promise<Task> => {
      Object.assign(service.resources[SYSTEM] as object, { PowerState: 'Off' });
      bios.progress(state);
      const { task } = bench();
      await apply(task, named({ NumCores: 12 }));
      Object.assign(service.resources[SYSTEM] as object, { PowerState: 'On' });
      return task;
    };
    it.each(['None', 'SystemHardwareInitializationComplete'])('at %s ends the boot after a time', async (state) => {
      const task = await begun(state);
      bios.restart();
      for (let minute = 0; minute < 14; minute += 7) {
        expect((await poll(task)).kind).toBe('wait');
        await minutes(task, 7);
      }
      await minutes(task, 1);
      expect(await poll(task)).toEqual({ kind: 'done' });
    });
    it('does not count while the machine is off, or when the stage of the maker changes', async () => {
      const task = await begun('OEM');
      const show = (more: object): void => void Object.assign(service.resources[SYSTEM] as object, more);
      for (const more of [{ PowerState: 'Off' }, { PowerState: 'On' }, { BootProgress: { LastState: 'OEM', OemLastState: 'Setup' } }]) {
        show(more);
        expect((await poll(task)).kind).toBe('wait');
        await minutes(task, 14);
      }
      expect(await poll(task)).toEqual({ kind: 'wait' });
    });
    it('does not hold up the timeout while settings are not in effect', async () => {
      const task = await begun('MemoryInitializationStarted');
      expect(await poll(task)).toEqual({ kind: 'wait' });
      await minutes(task, 15);
      expect(await poll(task)).toEqual({ kind: 'wait', quiet: true });
    });
  });
  it('takes settings in effect for the end of the boot if BootProgress shows none of its stages', async () => {
    const { task } = bench();
    await apply(task, named({ NumCores: 12 }));
    bios.progress('OEM');
    expect((await poll(task)).kind).toBe('wait');
    bios.restart();
    expect(await poll(task)).toEqual({ kind: 'done' });
  });
  it('takes the return of the agent for the end of the boot, whatever BootProgress shows', async () => {
    const { task } = bench({ agent: true });
    await apply(task, named({ NumCores: 12 }));
    bios.restart();
    bios.progress('SystemHardwareInitializationComplete');
    expect(await poll(task)).toMatchObject({ kind: 'wait' });
    await task.saveInternal({ agent_url: 'http://192.0.2.50:9999' });
    expect(await poll(task)).toEqual({ kind: 'done' });
  });
  it('fails with the messages of the BIOS', async () => {
    const { task } = bench();
    await apply(task, named({ NumCores: 12 }));
    bios.restart({
      only: [],
      messages: [
        { Severity: 'OK', Message: 'fine' },
        { Severity: 'Warning', Message: 'NumCores cannot be 12.' },
      ],
    });
    expect(await poll(task)).toEqual({
      kind: 'failed',
      reason: "Redfish BIOS apply_configuration step failed. Attributes {'NumCores': 12} are not updated. NumCores cannot be 12.",
    });
  });
  it('waits while the service is unavailable', async () => {
    const { task } = bench();
    await apply(task, named({ NumCores: 12 }));
    service.reply = () => ({ status: 503 });
    expect(await poll(task)).toEqual({ kind: 'wait', quiet: true });
  });
  it('after a restart of the conductor, reboots only if settings are not in effect', async () => {
    const { task, events } = bench();
    await apply(task, named({ NumCores: 12 }));
    await apply(task, named({ NumCores: 12 }));
    expect(events).toEqual(['power: rebooting', 'power: rebooting']);
    expect(sent('PATCH')).toHaveLength(1);
    bios.restart();
    expect(await apply(task, named({ NumCores: 12 }))).toMatchObject({ kind: 'wait' });
    expect(events).toHaveLength(2);
  });
});

describe('factory_reset', () => {
  const reset = (task: Task): Promise<Outcome> => stepOf('factory_reset').run(task, {});
  it('resets, reboots, and caches the new settings', async () => {
    const { task, kept, events } = bench();
    expect(await reset(task)).toEqual({ kind: 'wait', pollEvery: 60 });
    expect(service.asked.filter(({ method }) => method === 'POST').map(({ path }) => path)).toEqual([RESET_BIOS]);
    expect(events).toEqual(['power: rebooting']);
    bios.restart();
    expect(await poll(task, 'factory_reset')).toEqual({ kind: 'done' });
    expect(kept).toHaveLength(7);
  });
  it('ends although BootProgress never shows more than None of a machine that was off', async () => {
    Object.assign(service.resources[SYSTEM] as object, { PowerState: 'Off' });
    bios.progress('None');
    const { task } = bench();
    await reset(task);
    Object.assign(service.resources[SYSTEM] as object, { PowerState: 'On' });
    expect(await poll(task, 'factory_reset')).toEqual({ kind: 'wait', quiet: true });
    await task.clock.sleep(15 * 60_000);
    expect(await poll(task, 'factory_reset')).toEqual({ kind: 'done' });
  });
  it('sends no body to a service that refuses an empty object', async () => {
    service.reply = ({ method, body }) => (method === 'POST' && body !== undefined ? { status: 415 } : undefined);
    expect(await reset(bench().task)).toMatchObject({ kind: 'wait' });
    expect(sent('POST')).toEqual([{}, undefined]);
  });
  it('names a type to a service that demands one', async () => {
    service.reply = ({ method, body }) =>
      method === 'POST' && (body as JsonObject | undefined)?.['ResetType'] === undefined ? { status: 400 } : undefined;
    expect(await reset(bench().task)).toMatchObject({ kind: 'wait' });
    expect(sent('POST')).toEqual([{}, undefined, { ResetType: 'default' }]);
  });
  it('fails without a restart where all bodies are refused', async () => {
    service.reply = ({ method }) => (method === 'POST' ? { status: 400 } : undefined);
    const { task, events } = bench();
    await expect(reset(task)).rejects.toMatchObject({ message: expect.stringContaining('Redfish BIOS factory reset failed') as unknown });
    expect(events).toEqual([]);
  });
  it('fails without the action Bios.ResetBios', async () => {
    bios.withoutReset();
    await expect(reset(bench().task)).rejects.toMatchObject({
      message: expect.stringMatching(/Redfish BIOS factory reset failed for node .* does not offer the action #Bios.ResetBios$/) as unknown,
    });
  });
});

describe('helpers', () => {
  it.each<[string, JsonObject, JsonObject, JsonObject, readonly string[]]>([
    ['returns an attribute with another current value', { a: 1 }, { a: 0 }, {}, ['a']],
    ['returns nothing if all values are in effect', { a: 1 }, { a: 1 }, {}, []],
    ['returns an attribute in effect that is pending, if only changes are pending', { a: 1 }, { a: 1 }, { a: 1 }, ['a']],
    ['returns nothing if all attributes are shown as pending', { a: 1 }, { a: 1 }, { a: 1, b: 2 }, []],
    ['returns an attribute that does not exist', { a: null }, {}, {}, ['a']],
  ])('unapplied: %s', (_, asked, current, pending, left) => {
    expect(Object.keys(unapplied(asked as never, current as never, pending as never))).toEqual(left);
  });
  it.each([
    ['its ending', { QuietBoot: 'x' }, { QuietBoot_009F: 'x' }],
    ['its other ending', { PXE: 'x' }, { 'PXE#00F7': 'x' }],
    ['the whole name', { QuietBoot_009F: 'x' }, { QuietBoot_009F: 'x' }],
    ['a name of several attributes', { Twice: 'x' }, { Twice: 'x' }],
    ['a name that is also an attribute', { Own: 'x' }, { Own: 'x' }],
    ['an ending that is none', { Port: 'x' }, { Port: 'x' }],
  ])('convertSettings with names without endings: %s', (_, asked, attributes) => {
    const current = { QuietBoot_009F: 'y', 'PXE#00F7': 'y', Twice_0001: 'y', Twice_0002: 'y', Own: 'y', Own_0003: 'y', Port_1: 'y' };
    expect(convertSettings(new Map(Object.entries(asked)), new Map(), current)).toEqual({ attributes, invalid: [] });
  });
  it('convertSettings without a registry uses the types of the current values', () => {
    const current = { n: 5, b: true, s: 'x' };
    const asked = new Map<string, string>([['n', '6'], ['b', 'False'], ['s', '7'], ['other', '8']]); // prettier-ignore
    expect(convertSettings(asked, new Map(), current)).toEqual({ attributes: { n: 6, b: false, s: '7', other: '8' }, invalid: [] });
  });
  it('registryOf reads Readonly as ReadOnly', () => {
    const Attributes = [{ AttributeName: 'A', Readonly: true }];
    expect(registryOf({ RegistryEntries: { Attributes } }).get('A')).toMatchObject({ read_only: true });
  });
  it('registryOf limits the number of attributes and ignores bounds that are no safe integers', () => {
    const many = Array.from({ length: 10_000 }, (_, n) => ({ AttributeName: `a${n}`, Type: 'String', LowerBound: 1e300 }));
    const registry = registryOf({ RegistryEntries: { Attributes: many } });
    expect(registry.size).toBe(4000);
    expect(registry.get('a1')).toMatchObject({ lower_bound: null });
  });
  it('createRegistryCache discards the least recently used registry', () => {
    const cache = createRegistryCache(2);
    for (const key of ['a', 'b']) cache.put(key, new Map());
    cache.get('a');
    cache.put('c', new Map());
    expect(['a', 'b', 'c'].map((key) => cache.get(key) !== undefined)).toEqual([true, false, true]);
  });
});
