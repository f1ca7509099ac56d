/** Inspection hooks: the changes that they make of an inventory. */
import type { Change, HookOptions, InspectionData } from '../../conductor/inspection/hooks/hook';
import { pciAliases } from '../../conductor/inspection/hooks/devices';
import { HOOKS } from '../../conductor/inspection/hooks';
import { normalMac } from '../../conductor/inspection/hooks/interfaces';
import { applyHooks, newProperties } from '../../conductor/inspection/runner';
import { cidrMap } from '../../conductor/inspection/hooks/switches';
import type { Inventory, JsonObject, NodeRecord, PortChanges, PortRecord } from '../../model/records';
import { nodeRecord, portRecord } from '../support/task';

const OPTIONS: HookOptions = {
  'inspector.add_ports': 'pxe',
  'inspector.keep_ports': 'all',
  'inspector.update_pxe_enabled': true,
  'inspector.cpu_capabilities': { vmx: 'cpu_vt', svm: 'cpu_vt', aes: 'cpu_aes' },
  'inspector.disk_partitioning_spacing': true,
  'inspector.overwrite_existing': true,
  'inspector.overwrite_existing_hooks': [],
  'inspector.extra_hardware_strict': false,
  'inspector.pci_device_alias': ['{"vendor_id": "1", "product_id": "2", "name": "card"}'],
  'inspector.physical_network_cidr_map': ['192.0.2.0/24:left', '2001:db8::/32:right'],
};
const [A, B, C] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b', '52:54:00:00:00:0c'] as const;
interface Given {
  readonly inventory?: unknown;
  readonly data?: Record<string, unknown>;
  readonly node?: Partial<NodeRecord>;
  readonly ports?: readonly PortRecord[];
  readonly options?: Partial<HookOptions>;
  readonly previous?: Inventory;
}
const seen = ({ inventory = {}, data = {}, node, ports = [], options, previous }: Given): InspectionData => ({
  node: nodeRecord(node),
  ports,
  inventory: { interfaces: [], ...(inventory as object) },
  pluginData: data,
  options: { ...OPTIONS, ...options },
  accelerators: [{ vendor_id: '10de', device_id: '2236', type: 'GPU' }],
  ...(previous ? { previous } : {}),
});
const look = (names: readonly string[], given: Given): readonly Change[] => applyHooks(names, seen(given)).changes;
const hidden = (change: Change): boolean =>
  change.on === 'plugin_data' && ['all_interfaces', 'valid_interfaces', 'macs'].includes(change.name);

it.each<[string, Given, readonly Change[] | string]>([
  ['ramdisk-error', { data: { error: '' } }, []],
  ['ramdisk-error', { data: { error: 'no disk' } }, 'Failed to inspect hardware. Reason: Ramdisk reported error: no disk'],
  ['architecture', { inventory: { cpu: { architecture: 'aarch64' } } }, [{ on: 'property', name: 'cpu_arch', value: 'aarch64' }]],
  ['architecture', {}, 'Inventory has malformed or missing CPU architecture information: None'],
  ['architecture', { inventory: { cpu: { architecture: 7 } } }, 'Inventory has malformed or missing CPU architecture information'],
  ['memory', { inventory: { memory: { physical_mb: 4096 } } }, [{ on: 'property', name: 'memory_mb', value: 4096 }]],
  ['memory', { inventory: { memory: {} } }, 'Inventory has missing memory information: {}'],
  ['cpus', { inventory: { cpu: { count: 8 } } }, [{ on: 'property', name: 'cpus', value: 8 }]],
  ['cpus', {}, []],
  [
    'cpu-capabilities',
    { inventory: { cpu: { flags: ['svm', 'vmx', 'aes', 'constructor', 3] } } },
    [
      { on: 'capability', name: 'cpu_vt', value: 'true' },
      { on: 'capability', name: 'cpu_aes', value: 'true' },
    ],
  ],
  ['boot-mode', { inventory: { boot: { current_boot_mode: 'uefi' } } }, [{ on: 'capability', name: 'boot_mode', value: 'uefi' }]],
  ['boot-mode', { inventory: { boot: { current_boot_mode: 'x,y:z' } } }, []],
  [
    'root-device',
    { data: { root_disk: { name: '/dev/sda', size: 20 * 1024 ** 3 } } },
    [
      { on: 'plugin_data', name: 'root_disk', value: { name: '/dev/sda', size: 20 * 1024 ** 3 } },
      { on: 'plugin_data', name: 'local_gb', value: 19 },
      { on: 'property', name: 'local_gb', value: 19 },
    ],
  ],
  [
    'root-device',
    {},
    [
      { on: 'plugin_data', name: 'local_gb', value: 0 },
      { on: 'property', name: 'local_gb', value: 0 },
    ],
  ],
  [
    'root-device',
    {
      inventory: {
        disks: [
          { name: '/dev/sda', size: 1024 ** 3 },
          { name: '/dev/sdb', size: 50 * 1024 ** 3 },
          { name: '/dev/sdc', size: 60 * 1024 ** 3 },
        ],
      },
      node: { properties: { root_device: { size: '> 10' }, skip_block_devices: [{ name: '/dev/sdb' }] } },
      options: { 'inspector.disk_partitioning_spacing': false },
    },
    [
      { on: 'plugin_data', name: 'root_disk', value: { name: '/dev/sdc', size: 60 * 1024 ** 3 } },
      { on: 'plugin_data', name: 'local_gb', value: 60 },
      { on: 'property', name: 'local_gb', value: 60 },
    ],
  ],
  [
    'root-device',
    { inventory: { disks: [] }, node: { properties: { root_device: { size: '> 10' } } } },
    'No disks satisfied root device hints for node',
  ],
  ['root-device', { inventory: { disks: 3 }, node: { properties: { root_device: { colour: 'red' } } } }, 'because they failed to validate'],
  [
    'accelerators',
    { data: { pci_devices: [{ vendor_id: '10de', product_id: '2236', bus: '0:1' }, { vendor_id: '1', product_id: '2' }, 7] } },
    [{ on: 'property', name: 'accelerators', value: [{ vendor_id: '10de', device_id: '2236', type: 'GPU', pci_address: '0:1' }] }],
  ],
  [
    'accelerators',
    { inventory: { pci_devices: [{ vendor_id: '1', product_id: '2' }] } },
    [{ on: 'property', name: 'accelerators', value: [] }],
  ],
  ['accelerators', {}, []],
  [
    'pci-devices',
    {
      data: {
        pci_devices: [
          { vendor_id: '1', product_id: '2' },
          { vendor_id: '1', product_id: '2' },
          { vendor_id: '1', product_id: '3' },
        ],
      },
    },
    [{ on: 'capability', name: 'card', value: '2' }],
  ],
  ['pci-devices', { data: { pci_devices: 'x' } }, []],
  ['raid-device', { inventory: { disks: [{ serial: 'a' }, { serial: 'b' }] } }, []],
  [
    'raid-device',
    { inventory: { disks: [{ serial: 'a' }, { serial: 'b' }] }, previous: { disks: [{ name: '/dev/sda', serial: 'a' }] } as never },
    [{ on: 'property', name: 'root_device', value: { serial: 'b' } }],
  ],
  ['raid-device', { inventory: { disks: [{ serial: 'a' }, { serial: 'b' }] }, previous: { disks: [] } as never }, []],
  [
    'raid-device',
    { inventory: { disks: [{ serial: 'b' }] }, previous: { disks: [] } as never, node: { properties: { root_device: { wwn: 1 } } } },
    [],
  ],
  [
    'extra-hardware',
    { data: { data: [['disk', 'sda', 'size', '12'], ['disk', 'sda', 'name', 'x'], ['cpu', 'all', '__proto__', 4], ['short']] } },
    [
      {
        on: 'plugin_data',
        name: 'extra',
        value: { disk: { sda: { size: 12, name: 'x' } }, cpu: { all: Object.fromEntries([['__proto__', 4]]) }, short: {} },
      },
      { on: 'plugin_data', name: 'data', value: undefined },
    ],
  ],
  ['extra-hardware', { data: { data: 'x' } }, []],
  [
    'extra-hardware',
    { data: { data: [['short']] }, options: { 'inspector.extra_hardware_strict': true } },
    [{ on: 'plugin_data', name: 'data', value: undefined }],
  ],
])('the hook %s makes the expected changes, or refuses: %j', (name, given, expected) => {
  if (typeof expected === 'string') expect(() => look([name], given)).toThrow(expected);
  else expect(look([name], given)).toEqual(expected);
});

const interfaces = (boot?: string) => ({
  interfaces: [
    { name: 'lo', mac_address: '00:00:00:00:00:00', ipv4_address: '127.0.0.1' },
    { name: 'eth0', mac_address: A.toUpperCase(), ipv4_address: '192.0.2.1', ipv6_address: 'fe80::1%eth0' },
    { name: 'eth1', mac_address: B, client_id: 'ff:00' },
    { name: '', mac_address: C },
    { name: 'ib0', mac_address: '80:00:02:08' },
    { name: 'tun0' },
    null,
    7,
  ],
  ...(boot ? { boot: { pxe_interface: boot } } : {}),
});
const port = (mac: string, pxeEnabled: boolean): Change => ({ on: 'port', mac, pxeEnabled });
it.each<[string, Given, readonly Change[] | string]>([
  ['create a port for the interface that booted', { inventory: interfaces(A) }, [port(A, true)]],
  ['accept the boot interface in the form of pxelinux', { inventory: interfaces(`01-${A.replaceAll(':', '-')}`) }, [port(A, true)]],
  [
    'create ports for all interfaces if none is known to have booted',
    { inventory: interfaces() },
    [port(A, false), { ...port(B, false), clientId: 'ff:00' } as Change],
  ],
  [
    'create ports for all interfaces with add_ports = all',
    { inventory: interfaces(A), options: { 'inspector.add_ports': 'all' } },
    [port(A, true), { ...port(B, false), clientId: 'ff:00' } as Change],
  ],
  [
    'create ports for interfaces with an address with add_ports = active',
    { inventory: interfaces(), options: { 'inspector.add_ports': 'active' } },
    [port(A, false)],
  ],
  ['create no ports with add_ports = disabled', { inventory: interfaces(A), options: { 'inspector.add_ports': 'disabled' } }, []],
  ['do not create a port that exists', { inventory: interfaces(A), ports: [portRecord({ address: A })] }, []],
  [
    'update pxe_enabled of existing ports',
    { inventory: interfaces(A), ports: [portRecord({ uuid: 'p', address: B })] },
    [port(A, true), { on: 'port update', mac: B, changes: { pxe_enabled: false, extra: { 'client-id': 'ff:00' } } }],
  ],
  [
    'remove ports that the machine does not have with keep_ports = present',
    {
      inventory: interfaces(A),
      ports: [
        portRecord({ uuid: 'p', address: B, pxe_enabled: false, extra: { 'client-id': 'ff:00' } }),
        portRecord({ uuid: 'q', address: C }),
      ],
      options: { 'inspector.keep_ports': 'present' },
    },
    [port(A, true), { on: 'port removal', uuid: 'q' }],
  ],
  [
    'remove ports that were not added with keep_ports = added',
    { inventory: interfaces(A), ports: [portRecord({ uuid: 'p', address: B })], options: { 'inspector.keep_ports': 'added' } },
    [port(A, true), { on: 'port removal', uuid: 'p' }],
  ],
  [
    'refuse an inventory without an interface for add_ports',
    { inventory: { interfaces: [{ name: 'lo', mac_address: A }] } },
    'no network interfaces match the configuration (add_ports set to "pxe")',
  ],
  ['refuse an inventory without interfaces', { inventory: { interfaces: [] } }, 'no valid network interfaces'],
  ['refuse interfaces that are not a list', { inventory: { interfaces: 'eth0' } }, 'no interfaces present in inventory'],
])('the hooks validate-interfaces and ports %s', (_name, given, expected) => {
  const run = (): readonly Change[] => look(['validate-interfaces', 'ports'], given).filter((change) => !hidden(change));
  if (typeof expected === 'string') expect(run).toThrow(expected);
  else expect(run()).toEqual(expected);
});

it('names the hooks that refuse, in the words of Ironic', () => {
  const failing = (names: readonly string[], given: Given) => () => look(names, { ...given, node: { uuid: 'U' } });
  const invalid = 'Inventory for node U is invalid: no valid network interfaces';
  const before = 'Failed to inspect hardware. Reason: ';
  const both = failing(['ramdisk-error', 'validate-interfaces', 'ports'], { data: { error: 'no disk' } });
  expect(both).toThrow(
    `${before}The following failures happened while running preprocess hooks for node U:\n` +
      `Error in preprocess hook ramdisk-error: ${before}Ramdisk reported error: no disk\n` +
      `Unexpected exception InvalidNodeInventory during preprocess hook validate-interfaces: ${invalid}`,
  );
  expect(failing(['memory'], {})).toThrow(
    `${before}Unexpected exception InvalidNodeInventory during processing for node: U. Error: Inventory for node U is invalid: ` +
      'Inventory has missing memory information: None for node U.',
  );
  expect(failing(['root-device'], { node: {}, inventory: { disks: [] } })).not.toThrow();
});

it('validate-interfaces keeps the interfaces in plugin_data', () => {
  const { data: after } = applyHooks(['validate-interfaces'], seen({ inventory: interfaces(A) }));
  expect(after.pluginData).toMatchObject({
    macs: [A],
    valid_interfaces: { eth0: { mac_address: A, pxe_enabled: true, ipv6_address: 'fe80::1' } },
  });
  expect(Object.keys(after.pluginData.all_interfaces as object)).toEqual(['lo', 'eth0', 'eth1']);
});

it('newProperties() merges new capabilities with the existing ones', () => {
  const changes: readonly Change[] = [
    { on: 'capability', name: 'boot_mode', value: 'uefi' },
    { on: 'capability', name: 'cpu_vt', value: 'true' },
    { on: 'property', name: 'cpus', value: 4 },
  ];
  expect(newProperties({ capabilities: 'boot_mode:bios,x:y', local_gb: 3 }, changes)).toEqual({
    capabilities: 'boot_mode:uefi,x:y,cpu_vt:true',
    local_gb: 3,
    cpus: 4,
  });
});

it.each([
  ['AA-BB-CC-00-11-22', 'aa:bb:cc:00:11:22'],
  ['aa:bb:cc:00:11', undefined],
  [12, undefined],
  [null, undefined],
])('normalMac() of %s is %s', (given, normal) => expect(normalMac(given)).toBe(normal));
it('pxeMac() finds no boot interface if pxe_interface is not a MAC address', () =>
  expect(look(['validate-interfaces'], { inventory: interfaces('x') })).toContainEqual({ on: 'plugin_data', name: 'macs', value: [A, B] }));
it('each hook has a unique name', () => expect(new Set(HOOKS.map(({ name }) => name)).size).toBe(HOOKS.length));

/** The chassis 52:54:00:aa:bb:cc, its port p1 and its name sw. */
const LLDP = [
  [1, '04525400aabbcc'],
  [2, '057031'],
  [5, '7377'],
];
const link = { port_id: 'p1', switch_id: '52:54:00:aa:bb:cc', switch_info: 'sw' };
const heard = { interfaces: [{ name: 'eth0', mac_address: A, ipv4_address: '192.0.2.1', lldp: LLDP }] };
it.each<[string, Given, readonly Change[]]>([
  ['local-link-connection', { inventory: heard }, [{ on: 'port update', mac: A, changes: { local_link_connection: link } }]],
  [
    'local-link-connection',
    { inventory: heard, ports: [portRecord({ address: A, local_link_connection: { switch_id: 'mine', port_id: 'x' } })] },
    [{ on: 'port update', mac: A, changes: { local_link_connection: { switch_id: 'mine', port_id: 'x', switch_info: 'sw' } } }],
  ],
  ['local-link-connection', { inventory: heard, data: { lldp_raw: { eth0: [[2, 'zz']] } } }, []],
  ['local-link-connection', { inventory: heard, data: { lldp_raw: { eth0: 7 } } }, []],
  [
    'parse-lldp',
    { inventory: heard, data: { parsed_lldp: { other: 1 } } },
    [
      {
        on: 'plugin_data',
        name: 'parsed_lldp',
        value: { other: 1, eth0: { switch_chassis_id: '52:54:00:aa:bb:cc', switch_port_id: 'p1', switch_system_name: 'sw' } },
      },
    ],
  ],
  ['physical-network', { inventory: heard }, [{ on: 'port update', mac: A, changes: { physical_network: 'left' } }]],
  ['physical-network', { inventory: heard, ports: [portRecord({ address: A, physical_network: 'left' })] }, []],
  [
    'physical-network',
    { inventory: { interfaces: [{ name: 'e', mac_address: A, ipv4_address: 'x', ipv6_address: '2001:db8::5' }] } },
    [{ on: 'port update', mac: A, changes: { physical_network: 'right' } }],
  ],
])('the hook %s makes the expected changes of interfaces and LLDP data: %j', (name, given, expected) => {
  const changes = look(['validate-interfaces', name], { ...given, options: { 'inspector.add_ports': 'all' } });
  expect(changes.filter((change) => !hidden(change))).toEqual(expected);
});

it.each([
  [() => cidrMap(['10.0.0.0/33:x']), '[inspector]physical_network_cidr_map: 10.0.0.0/33:x is not network/bits:name'],
  [() => cidrMap(['x']), '[inspector]physical_network_cidr_map: x is not'],
  [() => pciAliases(['{"name": "x"}']), '[inspector]pci_device_alias: each entry has exactly'],
  [() => pciAliases(['{']), '[inspector]pci_device_alias: '],
])('refuses invalid options: %s', (read, text) => {
  expect(read).toThrow(text);
});

describe('existing values', () => {
  const properties = { cpu_arch: 'mine', memory_mb: null, capabilities: 'boot_mode:bios' };
  const given: Given = {
    inventory: {
      ...heard,
      cpu: { architecture: 'x86_64', flags: ['aes'] },
      memory: { physical_mb: 1 },
      boot: { current_boot_mode: 'uefi' },
    },
    node: { properties },
  };
  const names = ['architecture', 'memory', 'boot-mode', 'cpu-capabilities'];
  it.each<[string, Partial<HookOptions>, JsonObject]>([
    ['stay', {}, { cpu_arch: 'mine', memory_mb: 1, capabilities: 'boot_mode:bios,cpu_aes:true' }],
    [
      'are overwritten',
      { 'inspector.overwrite_existing': true },
      { cpu_arch: 'x86_64', memory_mb: 1, capabilities: 'boot_mode:uefi,cpu_aes:true' },
    ],
    [
      'are overwritten by one hook',
      { 'inspector.overwrite_existing_hooks': ['boot-mode'] },
      { cpu_arch: 'mine', memory_mb: 1, capabilities: 'boot_mode:uefi,cpu_aes:true' },
    ],
  ])('%s with %j', (_, options, expected) => {
    const changes = look(names, { ...given, options: { 'inspector.overwrite_existing': false, ...options } });
    expect(newProperties(properties, changes)).toEqual(expected);
  });
  it('do not keep root-device from writing plugin_data', () => {
    const data = { root_disk: { size: 20 * 1024 ** 3 } };
    const changes = look(['root-device'], {
      data,
      options: { 'inspector.overwrite_existing': false },
      node: { properties: { local_gb: 1 } },
    });
    expect(changes.map((change) => ('name' in change ? change.name : change.on))).toEqual(['root_disk', 'local_gb']);
  });
  const MINE = { physical_network: 'mine', extra: { 'client-id': 'mine' } };
  it.each<[Partial<PortRecord>, Partial<HookOptions>, PortChanges]>([
    [{}, {}, { physical_network: 'left', extra: { 'client-id': 'ff' } }],
    [{ extra: { a: 1 } }, {}, { physical_network: 'left', extra: { a: 1, 'client-id': 'ff' } }],
    [MINE, {}, {}],
    [{ ...MINE, pxe_enabled: true }, {}, { pxe_enabled: false }],
    [MINE, { 'inspector.overwrite_existing': true }, { physical_network: 'left', extra: { 'client-id': 'ff' } }],
    [MINE, { 'inspector.overwrite_existing_hooks': ['ports'] }, { extra: { 'client-id': 'ff' } }],
  ])('of a port %j with %j change only by %j', (before, options, expected) => {
    const changes = look(['validate-interfaces', 'ports', 'physical-network'], {
      inventory: { interfaces: [{ ...heard.interfaces[0], client_id: 'ff' }] },
      ports: [portRecord({ address: A, pxe_enabled: false, ...before })],
      options: { 'inspector.overwrite_existing': false, ...options },
    });
    expect(Object.assign({}, ...changes.map((change) => (change.on === 'port update' ? change.changes : {})))).toEqual(expected);
  });
});
