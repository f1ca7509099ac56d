import { readDmi } from '../../ramdisk-agent/inventory/dmi';
import { receiveLldp, tlvsOf } from '../../ramdisk-agent/inventory/lldp';
import { readNuma } from '../../ramdisk-agent/inventory/numa';
import { tree } from '../../ramdisk-agent/system/tree';
import { readUsbDevices } from '../../ramdisk-agent/inventory/usb';
import { fileTree } from './support';

const of = (files: Readonly<Record<string, string>>): ReturnType<typeof tree> => tree(fileTree(files));

describe('LLDP', () => {
  const header = '0180c200000e0200000000aa88cc';
  it.each<[string, string, readonly (readonly [number, string])[]]>([
    [
      'up to the end TLV, without the padding',
      '020704020000000001' + '0403055031' + '06020078' + '0000' + '00000000',
      [
        [1, '04020000000001'],
        [2, '055031'],
        [3, '0078'],
        [0, ''],
      ],
    ],
    ['a TLV of 511 bytes', `07ff${'ab'.repeat(511)}`, [[3, 'ab'.repeat(511)]]],
    ['up to a truncated TLV', '0403055031' + '0a20aa', [[2, '055031']]],
    ['up to a truncated header', '0403055031' + '0a', [[2, '055031']]],
    ['none of an empty frame', '', []],
  ])('tlvsOf returns the TLVs of an LLDP frame: %s', (_, hex, expected) => {
    expect(tlvsOf(Buffer.from(header + hex, 'hex'))).toEqual(expected);
  });
  it('receiveLldp listens only on interfaces with a link', async () => {
    const device = (name: string, carrier: string): Record<string, string> => ({
      [`sys/class/net/${name}/address`]: '52:54:00:00:00:01',
      [`sys/class/net/${name}/device`]: '->../x',
      [`sys/class/net/${name}/carrier`]: carrier,
    });
    const asked: unknown[] = [];
    const frames = async (...given: readonly unknown[]): Promise<ReadonlyMap<string, Buffer>> => {
      asked.push(given.slice(0, 3));
      return new Map([['eth1', Buffer.from(`${header}06020078`, 'hex')]]);
    };
    const around = { addresses: () => ({}), frames };
    const { signal } = new AbortController();
    const files = { ...device('eth0', '1'), ...device('eth1', '1'), ...device('eth2', '0') };
    expect(await receiveLldp({ ...around, tree: of(files) }, 7000, signal)).toEqual({ eth0: [], eth1: [[3, '0078']], eth2: [] });
    expect(await receiveLldp({ ...around, tree: of(device('eth0', '0')) }, 7000, signal)).toEqual({ eth0: [] });
    expect(asked).toEqual([[['eth0', 'eth1'], 0x88cc, 7000]]);
  });
});

describe('readNuma', () => {
  it('returns memory, cores and interfaces of each NUMA node', () => {
    const files: Record<string, string> = {
      'sys/devices/system/node/possible': '0-1',
      'sys/devices/system/node/node0/meminfo': 'Node 0 MemTotal:        1024 kB\nNode 0 MemFree: 1 kB',
      'sys/devices/system/node/node1/meminfo': 'Node 1 MemTotal:        2048 kB',
      'sys/devices/system/node/node0/cpulist': '0-1,10',
      'sys/class/net/eth0/device/numa_node': '1\n',
      'sys/class/net/lo/mtu': '1',
    };
    for (const [node, cpu, core] of [
      [0, 0, 0],
      [0, 10, 0],
      [0, 1, 1],
      [1, 2, 0],
    ])
      files[`sys/devices/system/node/node${node}/cpu${cpu}/topology/core_id`] = `${core}\n`;
    expect(readNuma(of(files))).toEqual({
      ram: [
        { numa_node: 0, size_kb: 1024 },
        { numa_node: 1, size_kb: 2048 },
      ],
      cpus: [
        { cpu: 0, numa_node: 0, thread_siblings: [0, 10] },
        { cpu: 1, numa_node: 0, thread_siblings: [1] },
        { cpu: 0, numa_node: 1, thread_siblings: [2] },
      ],
      nics: [{ name: 'eth0', numa_node: 1 }],
    });
  });
  it('returns null if the kernel does not report NUMA nodes', () => {
    expect(readNuma(of({ empty: '' }))).toBeNull();
  });
});

it('readUsbDevices omits hubs', () => {
  const device = (name: string, kind: string, number: number, more: object): Record<string, string> =>
    Object.fromEntries(
      Object.entries({ busnum: '2', devnum: String(number), bDeviceClass: kind, ...more }).map(([file, text]) => [
        `sys/bus/usb/devices/${name}/${file}`,
        text,
      ]),
    );
  const files = {
    ...device('usb2', '09', 1, {}),
    ...device('2-1', '00', 2, { product: 'Key', manufacturer: 'ACME' }),
    ...device('2-2', 'ff', 3, {}),
    'sys/bus/usb/devices/2-1:1.0/bInterfaceClass': '08',
  };
  expect(readUsbDevices(of(files))).toEqual([
    { product: 'Key', vendor: 'ACME', handle: 'USB:2:2' },
    { product: '', vendor: '', handle: 'USB:2:3' },
  ]);
});

describe('readDmi', () => {
  const array = (places: number): string =>
    `Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System Board\n\tNumber Of Devices: ${places}\n`;
  it('reads firmware, processors and memory', () => {
    const said = [
      '# dmidecode 3.4\nGetting SMBIOS data from sysfs.\n',
      'Handle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n\tVendor: Firm: Co\n\tCharacteristics:\n\t\tPCI is supported\n\t\tACPI\n\tRevision: 1.2\n',
      'Handle 0x0400, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU 0\n',
      'Handle 0x0401, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU 1\n',
      array(2),
      array(1),
      'Handle 0x1100, DMI type 17, 40 bytes\nMemory Device\n\tSize: 16 GB\n',
      'Handle 0x7F00, DMI type 127, 4 bytes\nEnd Of Table\n',
    ].join('\n');
    expect(readDmi(said)).toEqual({
      bios: {
        Handle: 'Handle 0x0000, DMI type 0, 26 bytes',
        Vendor: 'Firm: Co',
        Characteristics: ['PCI is supported', 'ACPI'],
        Revision: '1.2',
      },
      cpu: [
        { Handle: 'Handle 0x0400, DMI type 4, 48 bytes', 'Socket Designation': 'CPU 0' },
        { Handle: 'Handle 0x0401, DMI type 4, 48 bytes', 'Socket Designation': 'CPU 1' },
      ],
      memory: {
        Location: 'System Board',
        'Number Of Devices': 3,
        devices: [{ Handle: 'Handle 0x1100, DMI type 17, 40 bytes', Size: '16 GB' }],
      },
    });
  });
  it('accepts empty output', () => {
    expect(readDmi('')).toEqual({ bios: {}, cpu: [], memory: { devices: [] } });
  });
});
