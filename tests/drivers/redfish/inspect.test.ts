import { redfishInspect } from '../../../drivers/redfish/inspect';
import type { InspectionFindings, Outcome } from '../../../drivers/interfaces';
import type { JsonObject } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { NODE_UUID } from '../../support/task';
import { SYSTEM, redfishError, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';

const GIB = 1024 ** 3;
let service: RedfishService;
let pool: RedfishPool;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
});
afterEach(async () => {
  await pool.close();
  await service.close();
});

const ref = (path: string): JsonObject => ({ '@odata.id': path });
/** Adds a collection with its members to the service. */
function collection(path: string, members: readonly JsonObject[]): void {
  service.resources[path] = { Members: members.map((_, index) => ref(`${path}/${index}`)) };
  members.forEach(
    (member, index) => (service.resources[`${path}/${index}`] = { '@odata.id': `${path}/${index}`, Id: String(index), ...member }),
  );
}
const system = (more: JsonObject): void => void Object.assign(service.resources[SYSTEM] as object, more);

const HEALTHY = { State: 'Enabled', Health: 'OK' };
/** A machine with one of everything. */
function wholeMachine(): void {
  system({
    Manufacturer: 'ACME',
    Model: 'Anvil',
    SerialNumber: 'S1',
    UUID: 'u-u-i-d',
    MemorySummary: { TotalSystemMemoryGiB: 96 },
    Processors: ref(`${SYSTEM}/Processors`),
    EthernetInterfaces: ref(`${SYSTEM}/EthernetInterfaces`),
    Storage: ref(`${SYSTEM}/Storage`),
    SimpleStorage: ref(`${SYSTEM}/SimpleStorage`),
    PCIeDevices: [ref('/redfish/v1/Chassis/1/PCIeDevices/0')],
    Links: { Chassis: [ref('/redfish/v1/Chassis/1')] },
  });
  collection(`${SYSTEM}/Processors`, [
    { ProcessorType: 'GPU', TotalThreads: 9999 },
    { ProcessorType: 'CPU', InstructionSet: 'x86-64', Model: 'Fast', MaxSpeedMHz: 2400, TotalThreads: 16 },
    { InstructionSet: 'x86-64', Model: 'Fast', TotalThreads: '16' },
  ]);
  collection(`${SYSTEM}/EthernetInterfaces`, [
    { MACAddress: 'AA:BB:CC:00:00:01', SpeedMbps: 10000 },
    { MACAddress: 'aa-bb-cc-00-00-02', SpeedMbps: null },
    { MACAddress: 'none' },
    {},
  ]);
  collection(`${SYSTEM}/Storage`, [
    {
      Name: 'RAID',
      Drives: [ref('/drives/0'), ref('/drives/1')],
      Volumes: ref('/volumes'),
      StorageControllers: [
        {
          MemberId: '0',
          Name: 'HBA',
          SupportedRAIDTypes: ['RAID1'],
          SpeedGbps: 12,
          SupportedControllerProtocols: ['PCIe'],
          Status: HEALTHY,
        },
      ],
    },
  ]);
  const drive = { Name: 'Bay 0', MediaType: 'HDD', Manufacturer: 'M', Model: 'D', SerialNumber: 'd0', Revision: '7', Protocol: 'SAS' };
  service.resources['/drives/0'] = { Id: '0', ...drive, CapacityBytes: 500 * GIB, Status: HEALTHY };
  service.resources['/drives/1'] = { Id: '1', Name: 'Bay 1', MediaType: 'SSD', CapacityBytes: 100 * GIB };
  collection('/volumes', [{ CapacityBytes: 2 * GIB }, { CapacityBytes: 400 * GIB }]);
  collection(`${SYSTEM}/SimpleStorage`, [
    {
      Devices: [
        { Name: 'sda', CapacityBytes: 450 * GIB, Status: HEALTHY },
        { Name: 'gone', CapacityBytes: 10 * GIB, Status: { State: 'Absent' } },
      ],
    },
  ]);
  service.resources['/redfish/v1/Chassis/1/PCIeDevices/0'] = { PCIeFunctions: ref('/functions') };
  collection('/functions', [{ DeviceClass: 'NetworkController', DeviceId: '0x1', VendorId: '0x2', RevisionId: '0x3' }, {}]);
  service.resources['/redfish/v1/Chassis/1'] = { NetworkAdapters: ref('/adapters') };
  collection('/adapters', [{ Ports: ref('/ports') }]);
  collection('/ports', [
    { Ethernet: { LLDPReceive: { ChassisId: 'c', PortId: 'p', SystemName: 's', ManagementVlanId: 7 } } },
    { Ethernet: { LLDPReceive: {} } },
    {},
  ]);
}

const bench = (options: object = {}): ReturnType<typeof bmcTask> =>
  bmcTask({
    node: { driver: 'redfish', driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM } },
    driver: { inspect: redfishInspect },
    options,
    connections: { redfish: pool },
  });
async function found(given = bench()): Promise<InspectionFindings> {
  const outcome: Outcome | InspectionFindings = await redfishInspect.inspect(given.task);
  if (outcome.kind !== 'found') throw new Error(outcome.kind);
  return outcome;
}

it('returns the inventory of a complete machine', async () => {
  wholeMachine();
  expect(await found()).toEqual({
    kind: 'found',
    properties: { memory_mb: 98304, local_gb: 399 },
    capabilities: { boot_mode: 'uefi' },
    essential: ['memory_mb', 'local_gb'],
    hooks: ['validate-interfaces', 'ports', 'architecture'],
    pluginData: {
      parsed_lldp: { 0: { switch_chassis_id: 'c', switch_port_id: 'p', switch_system_name: 's', switch_vlan_id: 7 } },
    },
    inventory: {
      memory: { physical_mb: 98304 },
      cpu: { count: 32, architecture: 'x86_64', model_name: 'Fast', frequency: 2400 },
      disks: [
        { name: 'Bay 0', size: 500 * GIB, vendor: 'M', model: 'D', serial: 'd0', rotational: true },
        { name: 'Bay 1', size: 100 * GIB, vendor: null, model: null, serial: null, rotational: false },
      ],
      storage_controllers: [
        {
          id: '0',
          name: 'RAID',
          storage_controllers: [
            {
              member_id: '0',
              name: 'HBA',
              raid_types: ['RAID1'],
              speed_gbps: 12,
              controller_protocols: ['PCIe'],
              device_protocols: [],
              status: { health: 'OK', state: 'Enabled' },
            },
          ],
          drives: [
            {
              id: '0',
              name: 'Bay 0',
              size: 500 * GIB,
              media_type: 'HDD',
              serial_number: 'd0',
              manufacturer: 'M',
              model: 'D',
              revision: '7',
              protocol: 'SAS',
              status: { health: 'OK', state: 'Enabled' },
            },
            {
              id: '1',
              name: 'Bay 1',
              size: 100 * GIB,
              media_type: 'SSD',
              serial_number: null,
              manufacturer: null,
              model: null,
              revision: null,
            },
          ],
        },
      ],
      interfaces: [
        { mac_address: 'aa:bb:cc:00:00:01', name: '0', speed_mbps: 10000 },
        { mac_address: 'aa:bb:cc:00:00:02', name: '1' },
      ],
      pci_devices: [{ class: 'NetworkController', product_id: '0x1', vendor_id: '0x2', revision: '0x3' }],
      system_vendor: { product_name: 'Anvil', serial_number: 'S1', manufacturer: 'ACME', system_uuid: 'u-u-i-d' },
      boot: { current_boot_mode: 'uefi' },
    },
  });
});

describe('values that the service omits', () => {
  it('are omitted from the inventory', async () => {
    system({ Boot: {} });
    const { inventory, properties, capabilities, pluginData } = await found();
    expect({ inventory, properties, capabilities, pluginData }).toEqual({
      inventory: { cpu: { count: 0, architecture: '' }, interfaces: [] },
      properties: { local_gb: 0 },
      capabilities: {},
      pluginData: {},
    });
  });
  it('are read from the settings resource', async () => {
    system({ Boot: {}, '@Redfish.Settings': { SettingsObject: ref('/settings') } });
    service.resources['/settings'] = { Boot: { BootSourceOverrideMode: 'Legacy' } };
    expect((await found()).capabilities).toEqual({ boot_mode: 'bios' });
  });
});

// A part of the machine, the path at which the service fails, and the only part of the findings that is lost.
const broken: readonly (readonly [string, string, string])[] = [
  ['Processors', `${SYSTEM}/Processors`, 'cpu'],
  ['one of the interfaces', `${SYSTEM}/EthernetInterfaces/0`, 'interfaces'],
  ['the drives', '/drives/0', 'disks'],
  ['the volumes', '/volumes', 'properties'],
  ['PCIe functions', '/functions', 'pci_devices'],
  ['adapters', '/adapters', 'lldp'],
];
const parts = ({ inventory, properties, pluginData }: InspectionFindings): JsonObject => ({
  ...inventory,
  properties,
  lldp: pluginData.parsed_lldp,
});
describe.each<[string, () => void]>([
  ['500', () => undefined],
  ['404', () => undefined],
  ['no JSON', () => undefined],
  ['a list', () => undefined],
  ['hangs up', () => undefined],
])('a resource that fails with %s', (how) => {
  it.each(broken)('causes only the loss of its own part: %s', async (_, path, part) => {
    wholeMachine();
    const before = parts(await found());
    service.reply = (asked, response) => {
      if (asked.path !== path) return undefined;
      if (how === 'hangs up') {
        response.destroy();
        return 'hang';
      }
      if (how === 'no JSON') {
        response.end('<html>');
        return 'hang';
      }
      return how === 'a list' ? { status: 200, body: [1, null, 'x'] } : { status: Number(how), body: redfishError('no') };
    };
    const after = parts(await found(bench({ 'redfish.connection_attempts': 1 })));
    const changed = Object.keys({ ...before, ...after }).filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
    // The drives are in two members of the inventory.
    expect(changed.filter((key) => part !== 'disks' || key !== 'storage_controllers')).toEqual([part]);
  });
});

describe('a hostile service', () => {
  it('gets at most 1000 requests', async () => {
    let n = 0;
    service.reply = ({ path }) => {
      if (path === SYSTEM) return undefined;
      n++;
      // Endless pages, and members that are collections themselves.
      return {
        status: 200,
        body: { Members: [ref(`/x${n}a`), ref(`/x${n}b`)], 'Members@odata.nextLink': `/next${n}`, PCIeFunctions: ref(`/f${n}`) },
      };
    };
    system({ PCIeDevices: ref('/p'), Processors: ref('/c'), Storage: ref('/s'), EthernetInterfaces: ref('/e') });
    await found();
    expect(n).toBeLessThanOrEqual(1000);
  });
  it('is read once per resource even with circular links', async () => {
    system({ Processors: ref('/c'), EthernetInterfaces: ref('/c') });
    service.resources['/c'] = { Members: [ref('/c'), ref(SYSTEM)], 'Members@odata.nextLink': '/c' };
    await found();
    expect(service.asked.filter(({ path }) => path === '/c').length).toBe(1);
  });
  it('gets no requests on other hosts', async () => {
    system({ Processors: ref('//evil.example/c'), EthernetInterfaces: ref('http://evil.example/e'), Storage: ref('/s') });
    service.resources['/s'] = { Members: [ref('https://evil.example/'), 5, null, 'x', [], { '@odata.id': 7 }] };
    expect((await found()).inventory.interfaces).toEqual([]);
  });
  it('has its invalid values ignored and its long texts truncated', async () => {
    system({
      Manufacturer: { a: 1 },
      Model: 'x'.repeat(5000),
      SerialNumber: 12,
      UUID: ['u'],
      MemorySummary: { TotalSystemMemoryGiB: 'lots' },
      Processors: ref('/c'),
      PCIeDevices: 'no',
      Links: { Chassis: 5 },
    });
    collection('/c', [{ InstructionSet: 'toString', TotalThreads: -1, MaxSpeedMHz: -1, Model: {} }]);
    const { inventory } = await found();
    expect(inventory.cpu).toEqual({ count: 0, architecture: '' });
    expect(inventory.system_vendor).toEqual({ product_name: 'x'.repeat(1024), serial_number: '12' });
    expect(inventory.memory).toBeUndefined();
  });
});

it.each([
  ['  SN 1 ', 'SN 1'],
  ['To be filled by O.E.M.', undefined],
  ['0', undefined],
  ['000000', undefined],
  ['N/A', undefined],
  ['Not Specified', undefined],
  ['........', undefined],
  ['   ', undefined],
  ['0A1', '0A1'],
])('the serial number %j is %j', async (SerialNumber, expected) => {
  Object.assign(service.resources[SYSTEM] as object, { SerialNumber });
  const { inventory } = await found();
  expect((inventory.system_vendor as JsonObject | undefined)?.['serial_number']).toBe(expected);
});

describe('processors', () => {
  const absent = { ProcessorType: 'CPU', Status: { State: 'Absent' } };
  it.each<[string, readonly JsonObject[], object]>([
    [
      'an empty first socket',
      [absent, { InstructionSet: 'x86-64', Model: 'Fast', TotalThreads: 8 }],
      { architecture: 'x86_64', count: 8, model_name: 'Fast' },
    ],
    [
      'the ProcessorArchitecture alone, behind a socket without one',
      [
        { ...absent, ProcessorArchitecture: 'x86' },
        { ProcessorArchitecture: 'ARM', Model: 'A', TotalThreads: 4 },
      ],
      { architecture: 'aarch64', count: 4, model_name: 'A' },
    ],
    [
      'an InstructionSet of another kind',
      [{ InstructionSet: 'OEM', ProcessorArchitecture: 'x86', TotalThreads: 2 }],
      { architecture: 'x86_64', count: 2 },
    ],
    ['no architecture', [{ Model: 'A', TotalThreads: 4 }], { architecture: '', count: 4, model_name: 'A' }],
    ['empty sockets only', [absent], { architecture: '', count: 0 }],
  ])('with %s', async (_, processors, cpu) => {
    wholeMachine();
    collection(`${SYSTEM}/Processors`, processors);
    expect((await found()).inventory.cpu).toEqual(cpu);
  });
});

it('runs no hook of network interfaces where the service names none with an address', async () => {
  wholeMachine();
  expect((await found()).hooks).toEqual(['validate-interfaces', 'ports', 'architecture']);
  collection(`${SYSTEM}/EthernetInterfaces`, [{ MACAddress: '' }, {}]);
  expect((await found()).hooks).toEqual(['architecture']);
});

it('fails when the service stops responding', async () => {
  wholeMachine();
  let asked = 0;
  service.reply = (_, response) => {
    if (asked++ < 3) return undefined;
    response.destroy();
    return 'hang';
  };
  await expect(found(bench({ 'redfish.connection_attempts': 1 }))).rejects.toMatchObject({
    status: 500,
    message: expect.stringMatching(`^Redfish connection failed for node ${NODE_UUID}: `) as unknown,
  });
  // The first of them is repeated once, since the connection may have been stale.
  expect(asked).toBe(7);
});

describe('local_gb', () => {
  const volumes = (sizes: readonly unknown[]): void => {
    system({ Storage: ref('/s') });
    collection('/s', [{ Volumes: ref('/v'), Drives: [ref('/d')] }]);
    collection(
      '/v',
      sizes.map((CapacityBytes) => ({ CapacityBytes })),
    );
    service.resources['/d'] = { CapacityBytes: 50 * GIB };
  };
  it.each<[string, readonly unknown[], number]>([
    ['the size of the smallest volume of at least 4 GiB, minus 1', [3 * GIB, 20 * GIB, 10 * GIB], 9],
    ['the size of a drive, minus 1, if no volume is large enough', [3 * GIB, null, 'x'], 49],
    ['rounded down to whole GiB', [10 * GIB + 5], 9],
  ])('is %s', async (_, sizes, expected) => {
    volumes(sizes);
    expect((await found()).properties['local_gb']).toBe(expected);
  });
});
