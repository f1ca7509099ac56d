import { createHash } from 'node:crypto';
import { changesBetween, describeChange, digestOf, type HardwareRecord } from '../../model/hardware';

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

describe('what is told of two records', () => {
  it.each<readonly [string, object, object, readonly string[]]>([
    ['nothing', {}, {}, []],
    ['a disk that appears', {}, { disks: [disk(), disk({ wwn: null, serial: 'S2' })] }, ['disk S2 appeared']],
    ['a disk that vanishes', {}, { disks: [] }, ['disk 0x5000c500a1b2c3d4 vanished']],
    [
      'a disk that was exchanged',
      {},
      { disks: [disk({ wwn: '0x5000c500a1b2c3d5' })] },
      ['disk 0x5000c500a1b2c3d4 vanished', 'disk 0x5000c500a1b2c3d5 appeared'],
    ],
    ['a disk of another name', {}, { disks: [disk({ name: '/dev/sdb' })] }, []],
    ['a disk that two ways lead to', {}, { disks: [disk(), disk({ name: '/dev/sdb' })] }, []],
    ['a disk of another size', {}, { disks: [disk({ size: 2000 })] }, ['disk 0x5000c500a1b2c3d4 changed: size 1000 → 2000']],
    ['a disk of which more is known', {}, { disks: [disk({ firmware: 'F' })] }, []],
    ['a disk without a serial number', { disks: [{ name: '/dev/vda', by_path: 'p', size: 1 }] }, { disks: [] }, ['disk p vanished']],
    ['a disk that nothing is known of', {}, { disks: [disk(), {}] }, []],
    ['an interface that appears', {}, { interfaces: [nic(), nic({ mac_address: 'x' })] }, ['interface x appeared']],
    [
      'an interface in another slot',
      {},
      { interfaces: [nic({ product: '0x1' })] },
      ['interface 52:54:00:00:00:01 changed: product "0x1533" → "0x1"'],
    ],
    ['memory', {}, { memory: { physical_mb: 131072, total: 1 } }, ['memory changed: physical_mb 65536 → 131072']],
    [
      'a module that was exchanged, one that was taken, one that came',
      { memory: { modules: [dimm('A1'), dimm('B1')] } },
      { memory: { modules: [dimm('A1', { serial_number: 'N' }), dimm('C1')] } },
      ['memory_module A1 changed: serial_number "S" → "N"', 'memory_module B1 vanished', 'memory_module C1 appeared'],
    ],
    ['modules, by who may not read of them', { memory: { modules: [dimm('A1')] } }, { memory: { modules: null } }, []],
    [
      'a card in a slot',
      { pci_devices: [card()] },
      { pci_devices: [card({ product_id: '2' }), card({ bus: '0000:02:00.0' })] },
      ['pci_device 0000:01:00.0 changed: product_id "1" → "2"', 'pci_device 0000:02:00.0 appeared'],
    ],
    ['cards, by a newer recorder', {}, { pci_devices: [card()] }, []],
    [
      'the firmware of an interface',
      { interfaces: [nic({ firmware: '1' })] },
      { interfaces: [nic({ firmware: '2' })] },
      ['interface 52:54:00:00:00:01 changed: firmware "1" → "2"'],
    ],
    ['the maker, by who may not read it', {}, { system_vendor: { manufacturer: '', firmware: { version: '' } } }, []],
    ['memory that the kernel counts otherwise', {}, { memory: { physical_mb: 65536, total: 1 } }, []],
    ['processors', {}, { cpu: { count: 16, frequency: '1' } }, ['cpu changed: count 8 → 16']],
    ['a BIOS', {}, { system_vendor: { firmware: { version: '2' } } }, ['firmware changed: version "1" → "2"']],
    ['a board', {}, { system_vendor: { serial_number: 'X' } }, ['system changed: serial_number "C" → "X"']],
    ['a BMC elsewhere', {}, { bmc_address: '192.0.2.10' }, ['bmc changed: bmc_address "192.0.2.9" → "192.0.2.10"']],
    ['a BMC that does not say', {}, { bmc_address: '0.0.0.0' }, []],
    ['a BMC that says for the first time', { bmc_address: '0.0.0.0' }, {}, []],
    ['what is no list', {}, { disks: 'many', interfaces: null, cpu: 7, memory: [], system_vendor: null }, []],
    ['NUL in a name', {}, { disks: [disk(), { serial: 'a\0b' }] }, ['disk ab appeared']],
  ])('%s', (_, before, after, told) => expect(changesBetween(record(before), record(after), 100).map(describeChange)).toEqual(told));
  it('is bounded', () => {
    const disks = Array.from({ length: 50 }, (_, index) => disk({ wwn: String(index) }));
    expect(changesBetween(record({ disks: [] }), record({ disks }), 10)).toHaveLength(10);
  });
});

it('tells of what a host says at length only so much', () => {
  const long = { model: 'x'.repeat(100_000), vendor: { deep: 'y'.repeat(100_000) } };
  const [appeared] = changesBetween(record({ disks: [] }), record({ disks: [disk(long)] }), 10);
  expect(JSON.stringify(appeared).length).toBeLessThan(1000);
  const [changed] = changesBetween(record(), record({ disks: [disk({ ...long, vendor: 'v' })] }), 10);
  expect(JSON.stringify(changed).length).toBeLessThan(1000);
});

it('is the same record in any order of its members', () => {
  const { cpu, ...rest } = record();
  expect(digestOf({ cpu, ...rest })).toBe(digestOf({ ...rest, cpu, missing: undefined }));
  expect(digestOf(record({ memory: {} }))).not.toBe(digestOf(record()));
  const json = '{"b":[1,null,{"c":true,"d":"x"}]}';
  expect(digestOf({ b: [1, null, { d: 'x', c: true }], a: undefined })).toBe(createHash('sha256').update(json).digest('hex'));
});
