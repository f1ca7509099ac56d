/** Boot mode, console, indicators, vendor methods and the rest: a conductor asks drivers that have them, fail at them, or lack them. */
import { randomBytes, randomUUID } from 'node:crypto';
import { startConductor, type RunningConductor } from '../../../conductor/index';
import { HARDWARE_TYPES, INTERFACES } from '../../../drivers/index';
import type { Interfaces, ManagementInterface, VendorInterface } from '../../../drivers/interfaces';
import { silentLog } from '../../../model/log';
import { silentMetrics } from '../../../model/metrics';
import { INTERFACE_KINDS, type NewNode, type NodeRecord } from '../../../model/records';
import { testClock } from '../../support/clock';
import { conductorOptions, gate } from '../../support/conductor';
import { useDatabase } from '../../support/database';
import { like } from '../../support/expect';
import { servicesOf } from '../../support/services';

const clock = testClock();
const database = useDatabase({ clock });
let conductor: RunningConductor | undefined;
afterEach(async () => {
  await conductor?.stop();
  await database.clear();
});

const told: string[] = [];
let held = gate();
beforeEach(() => {
  told.length = 0;
  held = gate();
});
const tell = async (what: string): Promise<void> => void told.push(what);
const management: ManagementInterface = {
  ...INTERFACES.management.fake!,
  bootMode: { get: async () => 'bios', set: (_task, mode) => tell(`boot mode ${mode}`) },
  secureBoot: {
    get: async () => Promise.reject(new Error('no answer')),
    set: async (_task, on) => (on ? tell('secure boot') : Promise.reject(new Error('not while it runs'))),
  },
  sensors: async () => ({
    Fan: { '1@System': { identity: '1', health: 'OK', physical_context: 'CPU', reading: 4200, reading_units: 'RPM' } },
    Extra: { unknown: { reading: 'much' } },
  }),
  injectNmi: () => tell('NMI'),
  indicators: {
    ...INTERFACES.management.fake!.indicators!,
    set: (_task, component, indicator, state) => tell(`${component} ${indicator} ${state}`),
  },
  virtualMedia: {
    get: async () => [{ media_types: ['CD'], inserted: true, image: 'x' }],
    attach: (_task, device, url) => tell(`attach ${device} ${url}`),
    detach: (_task, devices) => tell(`detach ${devices?.join() ?? 'all'}`),
  },
};
const vendor: VendorInterface = {
  methods: {
    now: {
      http: ['GET', 'POST'],
      description: 'At once',
      async: false,
      run: async (task, args, http) => ({ http, args, held: task.node.reservation }),
    },
    later: { http: ['POST'], description: 'Later', args: ['a'], run: () => tell('later') },
    shared: {
      http: ['POST'],
      description: 'Without a lock',
      exclusive: false,
      run: async (task) => {
        await held.passed;
        await tell(`shared, ${task.node.reservation ?? 'free'}`);
      },
    },
    broken: { http: ['POST'], description: 'Fails', exclusive: false, run: async () => Promise.reject(new Error('no')) },
  },
  driverMethods: {
    now: { http: ['GET'], description: 'At once', async: false, run: async () => [1] },
    later: { http: ['POST'], description: 'Later', run: () => tell('driver, later') },
  },
};
const MORE: Interfaces = {
  ...INTERFACES,
  management: { ...INTERFACES.management, fake: management },
  vendor: { ...INTERFACES.vendor, fake: vendor },
  console: { ...INTERFACES.console, fake: { ...INTERFACES.console.fake!, stop: async () => Promise.reject(new Error('it is stuck')) } },
};
const kinds = ['bios', 'console', 'firmware', 'inspect', 'raid', 'rescue', 'vendor'];
async function start(interfaces: Interfaces = INTERFACES): Promise<RunningConductor> {
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  return (conductor = await startConductor({
    metrics: silentMetrics,
    store: database.store(),
    clock,
    options: conductorOptions({
      'DEFAULT.enabled_hardware_types': ['fake-hardware'],
      ...Object.fromEntries(INTERFACE_KINDS.map((kind) => [`DEFAULT.enabled_${kind}_interfaces`, ['fake', 'noop', `no-${kind}`]])),
    }),
    log: silentLog,
    random: randomBytes,
    connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf() },
    interfaces,
    hardwareTypes: HARDWARE_TYPES,
  }));
}
const node = async (on: RunningConductor, changes: Partial<NewNode> = {}): Promise<string> =>
  (await on.createNode({ uuid: randomUUID(), driver: 'fake-hardware', ...changes })).uuid;
const after = async (on: RunningConductor, uuid: string): Promise<NodeRecord> => {
  await on.idle();
  return database.store().nodes.find(uuid);
};

it('changes boot mode and secure boot only if they differ, and records the new value or the error', async () => {
  const on = await start(MORE);
  const uuid = await node(on);
  await on.setBootMode(uuid, 'bios');
  expect((await after(on, uuid)).boot_mode).toBeNull();
  await on.setBootMode(uuid, 'uefi');
  expect(await after(on, uuid)).toMatchObject({ boot_mode: 'uefi', last_error: null, reservation: null });
  await on.setSecureBoot(uuid, true);
  expect((await after(on, uuid)).secure_boot).toBe(true);
  await on.setSecureBoot(uuid, false);
  expect(await after(on, uuid)).toMatchObject({
    secure_boot: true,
    last_error: "Failed to change secure_boot state to 'False': not while it runs",
  });
  expect(told).toEqual(['boot mode uefi', 'secure boot']);
});

it('reports unsupported functions in last_error, or directly in the response', async () => {
  const on = await start();
  const uuid = await node(on);
  const reason = (name: string) => `Driver fake-hardware does not support ${name} (disabled or not implemented).`;
  await on.setBootMode(uuid, 'uefi');
  expect((await after(on, uuid)).last_error).toBe(`Failed to change boot mode to 'uefi: ${reason('set_boot_mode')}`);
  await on.attachVirtualMedia(uuid, 'cdrom', 'http://x', 'local');
  expect((await after(on, uuid)).last_error).toBe(
    `Could not attach device cdrom to node ${uuid}: Publishing images is not supported for driver fake-hardware`,
  );
  await on.detachVirtualMedia(uuid, null);
  expect((await after(on, uuid)).last_error).toBe(`Could not detach device(s) None from node ${uuid}: ${reason('detach_virtual_media')}`);
  for (const [asked, name] of [
    [() => on.injectNmi(uuid), 'inject_nmi'],
    [() => on.setIndicator(uuid, 'system', 'led', 'on'), 'set_indicator_state'],
    [() => on.getVirtualMedia(uuid), 'get_virtual_media'],
  ] as const)
    await expect(asked()).rejects.toMatchObject({ status: 400, message: reason(name) });
});

it('reads the sensors of a machine, or none where its management interface has none', async () => {
  const without = Object.fromEntries(Object.entries(management).filter(([name]) => name !== 'sensors')) as unknown as ManagementInterface;
  const on = await start({ ...MORE, management: { ...INTERFACES.management, fake: management, noop: without } });
  const uuid = await node(on);
  expect(await on.readSensors(uuid)).toEqual([{ kind: 'fan', sensor: '1@System', entity: 'CPU', unit: 'rpm', value: 4200 }]);
  expect(await on.readSensors(await node(on, { management_interface: 'noop' }))).toEqual([]);
});

it('injects an NMI, reads and sets indicators, and changes virtual media through the driver', async () => {
  const on = await start(MORE);
  const uuid = await node(on);
  await on.injectNmi(uuid);
  await on.setIndicator(uuid, 'system', 'led', 'on');
  expect(await on.getIndicator(uuid, 'system', 'led')).toBe('on');
  await expect(on.getIndicator(uuid, 'nosuch', 'led')).rejects.toThrow('Invalid component nosuch specified.');
  expect(Object.keys(await on.listIndicators(uuid))).toEqual(['chassis', 'system']);
  expect(await on.getVirtualMedia(uuid)).toHaveLength(1);
  await on.attachVirtualMedia(uuid, 'cdrom', 'http://x', 'local');
  await on.idle();
  await on.detachVirtualMedia(uuid, ['cdrom']);
  await on.idle();
  expect(told).toEqual(['NMI', 'system led on', 'attach cdrom http://x', 'detach cdrom']);
});

it('refuses virtual media for a node with a power failure', async () => {
  const on = await start(MORE);
  const uuid = await node(on, { maintenance: true, fault: 'power failure' });
  await expect(on.attachVirtualMedia(uuid, 'cdrom', 'http://x', 'local')).rejects.toMatchObject({ status: 503 });
});

it('enables and disables a console, and records why that failed', async () => {
  const on = await start(MORE);
  const uuid = await node(on);
  expect(await on.consoleInfo(uuid)).toBeNull();
  await on.setConsole(uuid, true);
  expect((await after(on, uuid)).console_enabled).toBe(true);
  expect(await on.consoleInfo(uuid)).toEqual({});
  await on.setConsole(uuid, false);
  expect(await after(on, uuid)).toMatchObject({
    console_enabled: true,
    last_error: `Error disabling the console on node ${uuid}. Reason: it is stuck`,
  });
});

it('stores the target RAID configuration, but only for a node with RAID support', async () => {
  const on = await start();
  const uuid = await node(on);
  const config = { logical_disks: [{ size_gb: 1, raid_level: '1' }] };
  await on.setRaidConfig(uuid, config);
  expect((await after(on, uuid)).target_raid_config).toEqual(config);
  await expect(on.setRaidConfig(uuid, { x: 1 }, 'x is wrong')).rejects.toMatchObject({ status: 400, message: 'x is wrong' });
  await on.setRaidConfig(uuid, {}, 'nothing is there');
  expect((await after(on, uuid)).target_raid_config).toEqual({});
  const bare = await node(on, Object.fromEntries(kinds.map((kind) => [`${kind}_interface`, `no-${kind}`])));
  await expect(on.setRaidConfig(bare, { x: 1 }, 'x is wrong')).rejects.toMatchObject({ status: 404, name: 'RaidNotSupported' });
  await on.setRaidConfig(bare, {});
  await expect(on.setConsole(bare, false)).rejects.toThrow('Driver fake-hardware does not support console (disabled or not implemented).');
});

it('runs the vendor methods of a node as they are declared', async () => {
  const on = await start(MORE);
  const uuid = await node(on);
  expect((await on.vendorMethods('fake-hardware')).shared).toEqual({
    http_methods: ['POST'],
    async: true,
    description: 'Without a lock',
    attach: false,
    require_exclusive_lock: false,
  });
  expect(await on.callVendor(uuid, 'now', 'GET', { b: 2 })).toEqual({
    async: false,
    result: { http: 'GET', args: { b: 2 }, held: 'here' },
  });
  expect(await on.callVendor(uuid, 'later', 'POST', { a: 1 })).toEqual({ async: true, result: null });
  await on.idle();
  await on.callVendor(uuid, 'shared', 'POST', {});
  expect((await database.store().nodes.find(uuid)).reservation).toBeNull();
  held.open();
  await on.callVendor(uuid, 'broken', 'POST', {});
  expect((await after(on, uuid)).last_error).toBeNull();
  expect(told).toEqual(['later', 'shared, free']);
  for (const [method, http, args, message] of [
    ['nosuch', 'POST', {}, 'No handler for method nosuch'],
    ['constructor', 'POST', {}, 'No handler for method constructor'],
    ['later', 'GET', {}, 'The method later does not support HTTP GET'],
    ['later', 'POST', { a: 1, b: 2 }, 'Unexpected arguments: b'],
  ] as const)
    await expect(on.callVendor(uuid, method, http, args)).rejects.toMatchObject({ status: 400, message });
});

it('runs the vendor methods of a driver without a node', async () => {
  const on = await start(MORE);
  expect(Object.keys(await on.driverVendorMethods('fake-hardware'))).toEqual(['later', 'now']);
  expect(await on.callDriverVendor('fake-hardware', 'now', 'GET', {})).toEqual({ async: false, result: [1] });
  expect((await on.callDriverVendor('fake-hardware', 'later', 'POST', {})).async).toBe(true);
  await on.idle();
  expect(told).toEqual(['driver, later']);
  await expect(on.callDriverVendor('fake-hardware', 'nosuch', 'GET', {})).rejects.toThrow('No handler for method nosuch');
  await expect(on.driverVendorMethods('nobody')).rejects.toMatchObject({ name: 'DriverNotFound' });
});

describe('BIOS settings', () => {
  const settings = async (uuid: string) => (await database.store().biosSettings.ofNode(uuid)).map(({ name, value }) => [name, value]);
  async function clean(on: RunningConductor, uuid: string, step: object): Promise<NodeRecord> {
    await on.provision(uuid, 'clean', { clean_steps: [{ interface: 'bios', ...step }] });
    return after(on, uuid);
  }
  it('are recorded after apply_configuration, and removed after factory_reset', async () => {
    const on = await start();
    const uuid = await node(on);
    await database.store().nodes.update(uuid, { provision_state: 'manageable' });
    const apply = (given: unknown) => clean(on, uuid, { step: 'apply_configuration', args: { settings: given } });
    expect(
      await apply([
        { name: 'a', value: 'on' },
        { name: 'b', value: 5 },
        { name: 'c', value: true },
      ]),
    ).toMatchObject({ provision_state: 'manageable' });
    expect(await settings(uuid)).toEqual([
      ['a', 'on'],
      ['b', '5'],
      ['c', 'True'],
    ]);
    const before = await database.store().biosSettings.ofNode(uuid);
    await apply([
      { name: 'a', value: 'on' },
      { name: 'b', value: null },
    ]);
    expect(await settings(uuid)).toEqual([
      ['a', 'on'],
      ['b', null],
    ]);
    expect((await database.store().biosSettings.ofNode(uuid))[0]).toEqual(before[0]);
    await clean(on, uuid, { step: 'factory_reset' });
    expect(await settings(uuid)).toEqual([]);
  });
  it.each([[[5]], [[{}]], [[{ name: 'a' }]], [[{ name: 5, value: 'x' }]], [[{ name: 'a', value: {} }]]])(
    'fail the step if they are %j',
    async (given) => {
      const on = await start();
      const uuid = await node(on);
      await database.store().nodes.update(uuid, { provision_state: 'manageable' });
      const failed = await clean(on, uuid, { step: 'apply_configuration', args: { settings: given } });
      expect(failed.provision_state).toBe('clean failed');
      expect(failed.last_error).toContain('settings must be a list of objects, each with a name and a value');
      expect(await settings(uuid)).toEqual([]);
    },
  );
  it.each(['x', 5, { a: 1 }])('are refused before cleaning begins if they are not a list: %j', async (given) => {
    const on = await start();
    const uuid = await node(on);
    await database.store().nodes.update(uuid, { provision_state: 'manageable' });
    const refused = clean(on, uuid, { step: 'apply_configuration', args: { settings: given } });
    await expect(refused).rejects.toMatchObject({ status: 400, message: like(/needs list as its argument settings$/) });
    expect((await database.store().nodes.find(uuid)).provision_state).toBe('manageable');
  });
});
