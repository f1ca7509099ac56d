import { createHash } from 'node:crypto';
import {
  announcementOf,
  CHANGE_KINDS,
  changesBetween,
  describeChange,
  digestOf,
  type Component,
  type HardwareChange,
  type HardwareRecord,
} from '../../model/hardware-records';

const disk = (more: object = {}) => ({ name: '/dev/sda', wwn: '0x5000c500a1b2c3d4', serial: 'S1', model: 'ST1', size: 1000, ...more });
const nic = (more: object = {}) => ({ name: 'eth0', mac_address: '52:54:00:00:00:01', vendor: '0x8086', product: '0x1533', ...more });
const dimm = (locator: string, more: object = {}) => ({ locator, size_mb: 16384, serial_number: 'S', part_number: 'P', ...more });
const card = (more: object = {}) => ({ bus: '0000:01:00.0', vendor_id: '10de', product_id: '1', class: '030200', revision: 'a1', ...more });
const record = (more: object = {}): HardwareRecord => ({
  disks: [disk()],
  interfaces: [nic()],
  cpu: { model_name: 'Xeon', count: 8, socket_count: 2, architecture: 'x86_64', frequency: '2000' },
  memory: { physical_mb: 65536, present_mb: 65536, total: 66_000_000_000 },
  system_vendor: { manufacturer: 'A', product_name: 'B', serial_number: 'C', firmware: { vendor: 'V', version: '1', build_date: 'D' } },
  bmc_address: '192.0.2.9',
  bmc_v6address: '::/0',
  ...more,
});

describe('changesBetween', () => {
  it.each<readonly [string, object, object, readonly string[]]>([
    ['no change', {}, {}, []],
    ['a disk that appears', {}, { disks: [disk(), disk({ wwn: null, serial: 'S2' })] }, ['disk S2 appeared']],
    ['a disk that vanishes', {}, { disks: [] }, ['disk 0x5000c500a1b2c3d4 vanished']],
    [
      'a disk that was exchanged',
      {},
      { disks: [disk({ wwn: '0x5000c500a1b2c3d5' })] },
      ['disk 0x5000c500a1b2c3d4 vanished', 'disk 0x5000c500a1b2c3d5 appeared'],
    ],
    ['no disk with another name', {}, { disks: [disk({ name: '/dev/sdb' })] }, []],
    ['no second path to a disk', {}, { disks: [disk(), disk({ name: '/dev/sdb' })] }, []],
    ['a changed size of a disk', {}, { disks: [disk({ size: 2000 })] }, ['disk 0x5000c500a1b2c3d4 changed: size 1000 → 2000']],
    ['no newly known field of a disk', {}, { disks: [disk({ firmware: 'F' })] }, []],
    [
      'a vanished disk without a serial number',
      { disks: [{ name: '/dev/vda', by_path: 'p', size: 1 }] },
      { disks: [] },
      ['disk p vanished'],
    ],
    ['no disk without any identification', {}, { disks: [disk(), {}] }, []],
    ['an interface that appears', {}, { interfaces: [nic(), nic({ mac_address: 'x' })] }, ['interface x appeared']],
    [
      'a changed product of an interface',
      {},
      { interfaces: [nic({ product: '0x1' })] },
      ['interface 52:54:00:00:00:01 changed: product "0x1533" → "0x1"'],
    ],
    ['changed memory', {}, { memory: { physical_mb: 131072, total: 1 } }, ['memory changed: physical_mb 65536 → 131072']],
    [
      'a changed, a vanished and an added memory module',
      { memory: { modules: [dimm('A1'), dimm('B1')] } },
      { memory: { modules: [dimm('A1', { serial_number: 'N' }), dimm('C1')] } },
      ['memory_module A1 changed: serial_number "S" → "N"', 'memory_module B1 vanished', 'memory_module C1 appeared'],
    ],
    ['no vanished modules if they cannot be read', { memory: { modules: [dimm('A1')] } }, { memory: { modules: null } }, []],
    [
      'a changed and an added PCI device',
      { pci_devices: [card()] },
      { pci_devices: [card({ product_id: '2' }), card({ bus: '0000:02:00.0' })] },
      ['pci_device 0000:01:00.0 changed: product_id "1" → "2"', 'pci_device 0000:02:00.0 appeared'],
    ],
    ['no PCI devices if the former record had no list of them', {}, { pci_devices: [card()] }, []],
    [
      'changed firmware of an interface',
      { interfaces: [nic({ firmware: '1' })] },
      { interfaces: [nic({ firmware: '2' })] },
      ['interface 52:54:00:00:00:01 changed: firmware "1" → "2"'],
    ],
    ['no empty manufacturer and firmware', {}, { system_vendor: { manufacturer: '', firmware: { version: '' } } }, []],
    ["no change of the kernel's total memory", {}, { memory: { physical_mb: 65536, total: 1 } }, []],
    ['a changed number of processors', {}, { cpu: { count: 16, frequency: '1' } }, ['cpu changed: count 8 → 16']],
    ['a changed firmware version', {}, { system_vendor: { firmware: { version: '2' } } }, ['firmware changed: version "1" → "2"']],
    ['a changed serial number of the system', {}, { system_vendor: { serial_number: 'X' } }, ['system changed: serial_number "C" → "X"']],
    ['a changed BMC address', {}, { bmc_address: '192.0.2.10' }, ['bmc changed: bmc_address "192.0.2.9" → "192.0.2.10"']],
    ['no BMC address that became unknown', {}, { bmc_address: '0.0.0.0' }, []],
    ['no BMC address that became known', { bmc_address: '0.0.0.0' }, {}, []],
    ['nothing for members of invalid types', {}, { disks: 'many', interfaces: null, cpu: 7, memory: [], system_vendor: null }, []],
    ['a serial number without its NUL', {}, { disks: [disk(), { serial: 'a\0b' }] }, ['disk ab appeared']],
  ])('reports %s', (_, before, after, told) =>
    expect(changesBetween(record(before), record(after), 100).map(describeChange)).toEqual(told),
  );
  it('limits the number of changes', () => {
    const disks = Array.from({ length: 50 }, (_, index) => disk({ wwn: String(index) }));
    expect(changesBetween(record({ disks: [] }), record({ disks }), 10)).toHaveLength(10);
  });
});

it('changesBetween truncates long values', () => {
  const long = { model: 'x'.repeat(100_000), vendor: { deep: 'y'.repeat(100_000) } };
  const [appeared] = changesBetween(record({ disks: [] }), record({ disks: [disk(long)] }), 10);
  expect(JSON.stringify(appeared).length).toBeLessThan(1000);
  const [changed] = changesBetween(record(), record({ disks: [disk({ ...long, vendor: 'v' })] }), 10);
  expect(JSON.stringify(changed).length).toBeLessThan(1000);
});

it('digestOf is independent of the order of members', () => {
  const { cpu, ...rest } = record();
  expect(digestOf({ cpu, ...rest })).toBe(digestOf({ ...rest, cpu, missing: undefined }));
  expect(digestOf(record({ memory: {} }))).not.toBe(digestOf(record()));
  const json = '{"b":[1,null,{"c":true,"d":"x"}]}';
  expect(digestOf({ b: [1, null, { d: 'x', c: true }], a: undefined })).toBe(createHash('sha256').update(json).digest('hex'));
});

/** Component → a record with one of it, and its key. */
const ONE: Readonly<Record<Component, readonly [of: (thing: object) => HardwareRecord, key: object]>> = {
  disk: [(thing) => ({ disks: [thing] }), { wwn: 'w' }],
  interface: [(thing) => ({ interfaces: [thing] }), { mac_address: 'm' }],
  pci_device: [(thing) => ({ pci_devices: [thing] }), { bus: 'b' }],
  cpu: [(thing) => ({ cpu: thing }), {}],
  memory: [(thing) => ({ memory: thing }), {}],
  memory_module: [(thing) => ({ memory: { modules: [thing] } }), { locator: 'l' }],
  system: [(thing) => ({ system_vendor: thing }), {}],
  firmware: [(thing) => ({ system_vendor: { firmware: thing } }), {}],
  bmc: [(thing) => ({ ...thing }), {}],
};
it.each<[Component, string]>([
  ['disk', 'model vendor size serial firmware rotational logical_sectors physical_sectors'],
  ['interface', 'vendor product pci_address firmware'],
  ['pci_device', 'vendor_id product_id class revision'],
  ['cpu', 'model_name architecture count socket_count'],
  ['memory', 'physical_mb present_mb'],
  ['memory_module', 'size_mb manufacturer part_number serial_number speed_mts'],
  ['system', 'manufacturer product_name serial_number'],
  ['firmware', 'vendor version build_date'],
  ['bmc', 'bmc_address bmc_v6address bmc_mac bmc_firmware'],
])('changesBetween compares these members of the component %s only: %s', (component, members) => {
  const [of, key] = ONE[component];
  const whole = (value: string): HardwareRecord =>
    of({ ...key, ...Object.fromEntries([...members.split(' '), 'name', 'other'].map((member) => [member, value])) });
  const all = (value: string): HardwareRecord => Object.fromEntries(members.split(' ').map((member) => [member, value]));
  const name = (Object.values(key)[0] as string | undefined) ?? component;
  expect(changesBetween(whole('1'), whole('2'), 100)).toEqual([
    { kind: 'changed', component, key: name, before: all('1'), after: all('2') },
  ] satisfies HardwareChange[]);
});

it.each<[object, string | undefined]>([
  [{ name: 'n', by_path: 'p', serial: 's', wwn: 'w', wwn_with_extension: 'e' }, 'e'],
  [{ name: 'n', by_path: 'p', serial: 's', wwn: 'w' }, 'w'],
  [{ name: 'n', by_path: 'p', serial: 's', wwn: '' }, 's'],
  [{ name: 'n', by_path: 'p', serial: 7 }, 'p'],
  [{ name: 'n', by_path: null }, 'n'],
  [{ size: 5 }, undefined],
  [{ serial: 'x'.repeat(300) }, 'x'.repeat(255)],
])('changesBetween identifies the disk %j', (thing, key) => {
  const changes = changesBetween({ disks: [] }, { disks: [thing] }, 10);
  expect(changes.map((change) => change.key)).toEqual(key === undefined ? [] : [key]);
});

it('changesBetween tells the keys and the compared members of what appears or vanishes', () => {
  const thing = { name: 'eth0', mac_address: 'm', product: 'p', vendor: null };
  const told = { mac_address: 'm', product: 'p', vendor: null };
  const [without, having] = [{ interfaces: [] }, { interfaces: [thing, 'no object', null] }];
  const found = { component: 'interface', key: 'm' };
  expect(changesBetween(without, having, 10)).toEqual([{ ...found, kind: 'appeared', before: null, after: told }]);
  expect(changesBetween(having, without, 10)).toEqual([{ ...found, kind: 'vanished', before: told, after: null }]);
});

it('changesBetween reports changes of each kind', () => {
  const [before, after] = [
    [dimm('A'), dimm('B')],
    [dimm('B', { size_mb: 1 }), dimm('C')],
  ].map((modules) => record({ memory: { modules } }));
  const kinds = changesBetween(before!, after!, 10).map(({ kind }) => kind);
  expect(kinds.sort()).toEqual([...CHANGE_KINDS].sort());
});
it.each<[unknown, unknown, boolean]>([
  ['a', 'b', true],
  ['a', null, false],
  [undefined, 'a', false],
  ['', 'a', false],
  ['a', '', false],
  [0, 1, true],
  [false, true, true],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, false],
  [[1, 2], [2, 1], true],
])('changesBetween, the model of a disk was %j and is %j: it changed is %s', (old, now, changed) => {
  const of = (model: unknown): HardwareRecord => ({ disks: [{ serial: 's', model }] });
  expect(changesBetween(of(old), of(now), 10)).toHaveLength(changed ? 1 : 0);
});
it.each<[unknown]>([[undefined], [null], [''], ['0.0.0.0'], ['::/0']])('changesBetween ignores the BMC address %j', (address) => {
  const known = { bmc_address: '192.0.2.9', bmc_mac: 'm' };
  expect(changesBetween(known, { ...known, bmc_address: address }, 10)).toEqual([]);
  expect(changesBetween({ bmc_address: address }, known, 10)).toEqual([]);
});
it('changesBetween cuts values after 255 characters', () => {
  const of = (model: unknown): HardwareRecord => ({ disks: [{ serial: 's', model }] });
  const [first, second] = [['x'.repeat(251)], ['y'.repeat(252)]];
  // In JSON, the first list has 255 characters, and the second has 256.
  expect(changesBetween(of(first), of(second), 10)).toMatchObject([
    { before: { model: first }, after: { model: `["${'y'.repeat(252)}"` } },
  ]);
  expect(changesBetween(of('x'.repeat(255)), of('y'.repeat(256)), 10)).toMatchObject([
    { before: { model: 'x'.repeat(255) }, after: { model: 'y'.repeat(255) } },
  ]);
});

it.each<[HardwareChange, string]>([
  [{ kind: 'appeared', component: 'disk', key: 'd', before: null, after: { size: 1 } }, 'disk d appeared'],
  [{ kind: 'vanished', component: 'disk', key: 'd', before: { size: 1 }, after: null }, 'disk d vanished'],
  [
    {
      kind: 'changed',
      component: 'memory',
      key: 'memory',
      before: { physical_mb: 1, present_mb: 2 },
      after: { physical_mb: 3, present_mb: 4 },
    },
    'memory changed: physical_mb 1 → 3, present_mb 2 → 4',
  ],
  [{ kind: 'changed', component: 'disk', key: 'd', before: { model: 'a' }, after: { model: 'b' } }, 'disk d changed: model "a" → "b"'],
])('describeChange of %j is %j', (change, text) => expect(describeChange(change)).toBe(text));

it.each([
  [1, ''],
  [50, ''],
  [51, ', and 1 more'],
  [60, ', and 10 more'],
])('announcementOf names the first 50 of %d changes, and then says%s', (count, more) => {
  const changes = Array.from({ length: count }, (_, at): HardwareChange => ({
    kind: 'appeared',
    component: 'disk',
    key: String(at),
    before: null,
    after: {},
  }));
  const named = changes.slice(0, 50);
  expect(announcementOf(changes, 'recorder')).toEqual({
    payload: { source: 'recorder', count, changes: named.map(({ key }) => ({ kind: 'appeared', component: 'disk', key })) },
    text: named.map(({ key }) => `disk ${key} appeared`).join('; ') + more,
  });
});
