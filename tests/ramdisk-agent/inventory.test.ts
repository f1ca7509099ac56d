import { readFileSync } from 'node:fs';
import { readInterfaces, readPciDevices } from '../../ramdisk-agent/inventory/interfaces';
import { bootMode, readInventory } from '../../ramdisk-agent/inventory/inventory';
import { readCpu, readMemory } from '../../ramdisk-agent/inventory/processor';
import { readSmbios } from '../../ramdisk-agent/inventory/smbios';
import { type Tree, tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

const of = (files: Readonly<Record<string, string | Buffer>>): Tree => tree(fileTree(files));
const nothing = (): Tree => of({ empty: '' });

describe('readCpu', () => {
  const block = (number: number): string =>
    `processor\t: ${number}\nmodel name\t: Best CPU @ 3.00GHz\ncpu MHz\t\t: 2999.998\nflags\t\t: fpu vme\tsse\npower management:\n`;
  it('counts processors and sockets', () => {
    const files = { 'proc/cpuinfo': `${block(0)}\n${block(1)}\n${block(2)}\n` };
    const sockets = { cpu0: '0', cpu1: '0', cpu2: '1' };
    const topology = Object.entries(sockets).map(([cpu, id]) => [`sys/devices/system/cpu/${cpu}/topology/physical_package_id`, `${id}\n`]);
    expect(readCpu(of({ ...files, ...(Object.fromEntries(topology) as object) }), 'x86_64')).toEqual({
      model_name: 'Best CPU @ 3.00GHz',
      frequency: '2999.998',
      count: 3,
      architecture: 'x86_64',
      flags: ['fpu', 'vme', 'sse'],
      socket_count: 2,
    });
  });
  it('uses the maximum frequency if the kernel reports it', () => {
    const files = { 'proc/cpuinfo': block(0), 'sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq': '3600000\n' };
    expect(readCpu(of(files), 'x86_64')).toMatchObject({ frequency: '3600.0000' });
  });
  it('reads features of ARM processors, which have no model name', () => {
    const arm = 'processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n\nprocessor\t: 1\nFeatures\t: fp asimd\n';
    expect(readCpu(of({ 'proc/cpuinfo': arm }), 'aarch64')).toMatchObject({
      model_name: '',
      frequency: '',
      count: 2,
      flags: ['fp', 'asimd'],
    });
  });
  it('returns no processors if nothing can be read', () => {
    expect(readCpu(nothing(), 'x86_64')).toMatchObject({ count: 0, flags: [], socket_count: 0 });
  });
});

it("readMemory returns the kernel's total and the installed memory", () => {
  expect(readMemory(of({ 'proc/meminfo': 'MemTotal:         482304 kB\nMemFree: 1 kB\n' }), 512)).toEqual({
    total: 493879296,
    physical_mb: 512,
  });
  expect(readMemory(nothing(), null)).toEqual({ total: null, physical_mb: null });
});

describe('readSmbios', () => {
  /** One structure: the formatted area after the header, and its strings. */
  const structure = (type: number, area: Buffer, ...strings: readonly string[]): Buffer =>
    Buffer.concat([
      Buffer.of(type, area.length + 4, 0, 0),
      area,
      strings.length > 0 ? Buffer.from(strings.map((string) => `${string}\0`).join('')) : Buffer.of(0),
      Buffer.of(0),
    ]);
  const at = (length: number, ...values: readonly (readonly [number, number, number])[]): Buffer => {
    const area = Buffer.alloc(length);
    for (const [offset, size, value] of values) area.writeUIntLE(value, offset - 4, size);
    return area;
  };
  const end = structure(127, Buffer.alloc(0));
  const bios = structure(0, at(0x14, [4, 1, 1], [5, 1, 2], [8, 1, 3]), 'Firm Co', '1.2', '01/02/2026');
  const system = structure(1, at(0x17, [4, 1, 1], [5, 1, 2], [7, 1, 3]), 'Maker', 'Model 7 ', 'SN1');
  const device = (...values: readonly (readonly [number, number, number])[]): Buffer => structure(17, at(0x24, ...values), 'DIMM 0');

  it('reads manufacturer, product and firmware', () => {
    expect(readSmbios(Buffer.concat([bios, system, end]))).toEqual({
      firmware: { vendor: 'Firm Co', version: '1.2', build_date: '01/02/2026' },
      manufacturer: 'Maker',
      product_name: 'Model 7',
      serial_number: 'SN1',
      physical_mb: null,
      modules: [],
    });
  });
  it('reads memory modules with unique locators', () => {
    const table = (...texts: readonly string[]) =>
      structure(
        17,
        at(0x22, [0x0c, 2, 16384], [0x10, 1, 1], [0x11, 1, 2], [0x15, 2, 3200], [0x17, 1, 3], [0x18, 1, 4], [0x1a, 1, 5]),
        ...texts,
      );
    const words = ['DIMM_A1', 'BANK 0', 'Samsung', '0x03D1', 'M393A2K40DB3'];
    const old = structure(17, at(0x15, [0x0c, 2, 512], [0x10, 1, 1]), 'DIMM_B1');
    const all = Buffer.concat([table(...words), device([0x0c, 2, 0]), table(...words), device([0x0c, 2, 8]), old, end]);
    const module = {
      locator: 'BANK 0 DIMM_A1',
      size_mb: 16384,
      manufacturer: 'Samsung',
      part_number: 'M393A2K40DB3',
      serial_number: '0x03D1',
      speed_mts: 3200,
    };
    const bare = { manufacturer: '', part_number: '', serial_number: '', speed_mts: null };
    expect(readSmbios(all).modules).toEqual([
      module,
      { ...module, locator: 'BANK 0 DIMM_A1#2' },
      { locator: '#1', size_mb: 8, ...bare },
      { locator: 'DIMM_B1', size_mb: 512, ...bare },
    ]);
  });
  it.each<[string, readonly Buffer[], number | null]>([
    ['two modules', [device([0x0c, 2, 8192]), device([0x0c, 2, 8192])], 16384],
    ['an empty slot', [device([0x0c, 2, 8192]), device([0x0c, 2, 0])], 8192],
    ['an unknown size', [device([0x0c, 2, 0xffff])], null],
    ['a size in KiB', [device([0x0c, 2, 0x8000 | 2048])], 2],
    ['an extended size', [device([0x0c, 2, 0x7fff], [0x1c, 4, 65536])], 65536],
    [
      'only address ranges',
      [structure(19, at(0x1b, [4, 4, 0], [8, 4, 524287])), structure(19, at(0x1b, [4, 4, 1048576], [8, 4, 1572863]))],
      1024,
    ],
    ['a range in bytes', [structure(19, at(0x1f, [4, 4, 0xffffffff], [8, 4, 0xffffffff], [0x17, 6, 2 ** 33 - 1]))], 8192],
  ])('sums up the memory: %s', (_, structures, expected) => {
    expect(readSmbios(Buffer.concat([...structures, end])).physical_mb).toBe(expected);
  });
  it.each<[string, Buffer | null]>([
    ['no table', null],
    ['an empty table', Buffer.alloc(0)],
    ['an invalid length', Buffer.of(1, 2, 0, 0, 0, 0)],
    ['a truncated table', system.subarray(0, 10)],
    ['missing strings', structure(1, at(0x17, [4, 1, 9], [5, 1, 9], [7, 1, 200]))],
  ])('tolerates %s', (_, table) => {
    expect(readSmbios(table)).toMatchObject({ manufacturer: '', product_name: '', serial_number: '' });
  });
});

describe('readInterfaces', () => {
  const files = {
    'sys/class/net/lo/address': '00:00:00:00:00:00\n',
    'sys/class/net/eth0': '->../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/address': '52:54:00:AA:BB:CC\n',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/carrier': '1\n',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/speed': '-1\n',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/device': '->../../../virtio0',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/vendor': '0x1af4\n',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/device': '0x0001\n',
    'sys/devices/pci0000:00/0000:00:03.0/virtio0/driver': '->../../../../bus/virtio/drivers/virtio_net',
    'sys/class/net/ib0/address': '80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:52\n',
    'sys/class/net/ib0/type': '32\n',
    'sys/class/net/ib0/speed': '100000\n',
    'sys/class/net/ib0/device': '->../../../devices/pci0000:00/0000:05:00.0',
    'sys/devices/pci0000:00/0000:05:00.0/vendor': '0x15b3\n',
  };
  it('returns interfaces with a device behind them', () => {
    const addresses = {
      eth0: [
        { address: 'fe80::1', family: 'IPv6' },
        { address: '192.0.2.5', family: 'IPv4' },
        { address: '2001:db8::5', family: 'IPv6' },
      ],
      ib0: [{ address: 'fe80::2', family: 'IPv6' }],
    };
    expect(readInterfaces(of(files), addresses)).toMatchObject([
      {
        name: 'eth0',
        mac_address: '52:54:00:aa:bb:cc',
        ipv4_address: '192.0.2.5',
        ipv6_address: '2001:db8::5',
        has_carrier: true,
        lldp: null,
        vendor: '0x1af4',
        product: '0x0001',
        client_id: null,
        speed_mbps: null,
        pci_address: '0000:00:03.0',
        driver: 'virtio_net',
      },
      {
        name: 'ib0',
        mac_address: '7c:fe:90:29:26:52',
        client_id: 'ff:00:00:00:00:00:02:00:00:02:c9:00:7c:fe:90:03:00:29:26:52',
        ipv4_address: null,
        ipv6_address: 'fe80::2',
        has_carrier: false,
        speed_mbps: 100000,
        driver: null,
      },
    ]);
  });
});

it('readInterfaces returns bonds and VLANs too, and the permanent addresses of bonded interfaces', () => {
  const interfaces = readInterfaces(
    of({
      'sys/class/net/eth0/device': '->../../../devices/0',
      'sys/class/net/eth0/address': '52:54:00:00:00:01\n',
      'sys/class/net/eth1/device': '->../../../devices/1',
      'sys/class/net/eth1/address': '52:54:00:00:00:01\n',
      'sys/class/net/eth1/bonding_slave/perm_hwaddr': '52:54:00:00:00:02\n',
      'sys/class/net/bond0/address': '52:54:00:00:00:01\n',
      'sys/class/net/bond0/bonding/mode': '802.3ad 4\n',
      'sys/class/net/bond0.5/address': '52:54:00:00:00:01\n',
      'sys/class/net/dummy0/address': '52:54:00:00:00:09\n',
    }),
    { 'bond0.5': [{ address: '192.0.2.5', family: 'IPv4' }] },
  );
  expect(interfaces.map(({ name, mac_address: mac, ipv4_address: address }) => [name, mac, address])).toEqual([
    ['bond0', '52:54:00:00:00:01', null],
    ['bond0.5', '52:54:00:00:00:01', '192.0.2.5'],
    ['eth0', '52:54:00:00:00:01', null],
    ['eth1', '52:54:00:00:00:02', null],
  ]);
});

it('readPciDevices returns devices with all attributes', () => {
  const files = {
    'sys/bus/pci/devices/0000:00:03.0/vendor': '0x1af4\n',
    'sys/bus/pci/devices/0000:00:03.0/device': '0x1000\n',
    'sys/bus/pci/devices/0000:00:03.0/class': '0x020000\n',
    'sys/bus/pci/devices/0000:00:03.0/revision': '0x01\n',
    'sys/bus/pci/devices/0000:00:03.0/numa_node': '-1\n',
    'sys/bus/pci/devices/0000:00:04.0/vendor': '0x8086\n',
  };
  expect(readPciDevices(of(files))).toEqual([
    { vendor_id: '1af4', product_id: '1000', class: '020000', revision: '01', bus: '0000:00:03.0', numa_node_id: '-1' },
  ]);
});

describe('readInventory and its parts', () => {
  const around = (
    files: Readonly<Record<string, string | Buffer>>,
    run = async (): Promise<string> => Promise.reject(new Error('no such program')),
  ) => ({
    tree: of(files),
    run,
    addresses: () => ({}),
    machine: 'x86_64',
    hostname: () => 'machine-7',
    bootInterface: '01-52-54-00-aa-bb-cc',
    bootedFromMedium: false,
  });
  it('readInventory returns every part, even of an empty file tree', async () => {
    expect(await readInventory(around({ empty: '' }))).toMatchObject({
      interfaces: [],
      disks: [],
      cpu: { count: 0 },
      memory: { physical_mb: null },
      bmc_address: null,
      bmc_v6address: null,
      system_vendor: { manufacturer: '', firmware: { vendor: '' } },
      boot: { current_boot_mode: 'bios', pxe_interface: '01-52-54-00-aa-bb-cc' },
      hostname: 'machine-7',
    });
  });
  it('readInventory has the UUID of the system, if it can be read', async () => {
    const { system_vendor: vendor } = await readInventory(
      around({ 'sys/class/dmi/id/product_uuid': '7A5ED1B4-8B6C-4B9A-9E0E-0D1C6D1C9F01\n' }),
    );
    expect(vendor).toMatchObject({ system_uuid: '7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f01' });
    expect((await readInventory(around({ empty: '' }))).system_vendor).not.toHaveProperty('system_uuid');
  });
  it('readInventory queries ipmitool for the BMC if the kernel has an IPMI device', async () => {
    const asked: string[] = [];
    const run = async (program: string, args: readonly string[]): Promise<string> => {
      asked.push([program, ...args].join(' '));
      if (args[2] === '1') throw new Error('Invalid channel: 1');
      return 'Set in Progress         : Set Complete\nIP Address              : 192.0.2.99\nMAC Address             : 3C:EC:EF:00:00:01\n';
    };
    expect(await readInventory({ ...around({ 'dev/ipmi0': '' }), run })).toMatchObject({
      bmc_address: '192.0.2.99',
      bmc_mac: '3c:ec:ef:00:00:01',
    });
    expect(asked).toEqual(['ipmitool lan print 1', 'ipmitool lan print 2']);
    expect(await readInventory(around({ 'dev/ipmi0': '' }))).toMatchObject({ bmc_address: '0.0.0.0' });
  });
  it('bootMode detects UEFI by /sys/firmware/efi', () => {
    expect(bootMode(of({ 'sys/firmware/efi/runtime': '' }))).toBe('uefi');
    expect(bootMode(nothing())).toBe('bios');
  });
  it('readCpu reads this computer', () => {
    expect(readCpu(tree(), 'x86_64').count).toBe(readFileSync('/proc/cpuinfo', 'utf8').match(/^processor\s*:/gm)!.length);
  });
});
