/** Inventories and records as metal3's HardwareDetails. The names and forms are those of the CRDs. */
import { detailsOfInspection, linksDown, withRecord } from '../../metal3/hardware-details';

const disk = (name: string, serial: string, more: object = {}) => ({
  name,
  by_path: `/dev/disk/by-path/pci-0000:00:05.0-${serial}`,
  model: 'M',
  vendor: 'ATA',
  size: 480_103_981_056,
  rotational: false,
  serial,
  wwn: '0x5000c500a1b2c3d4',
  wwn_with_extension: null,
  wwn_vendor_extension: null,
  hctl: '0:0:0:0',
  ...more,
});
const nic = (name: string, mac: string, more: object = {}) => ({
  name,
  mac_address: mac,
  vendor: '0x8086',
  product: '0x1533',
  pci_address: '0000:00:01.0',
  driver: 'igb',
  ...more,
});
const ONE = '52:54:00:00:00:01';
const TWO = '52:54:00:00:00:02';
const INSPECTION = {
  inventory: {
    interfaces: [
      nic('eth0', ONE, { ipv4_address: '192.0.2.5', ipv6_address: '2001:db8::5', speed_mbps: 25_000, has_carrier: true }),
      nic('eth1', TWO, { ipv4_address: null, ipv6_address: null, speed_mbps: null, has_carrier: false }),
      nic('ib0', '00:11'),
    ],
    disks: [disk('/dev/sda', 'A'), disk('/dev/nvme0n1', 'B', { by_path: null }), disk('/dev/sdb', 'C', { rotational: true })],
    cpu: { architecture: 'x86_64', model_name: 'CPU', count: 16, frequency: '2199.998', flags: ['sse', 'aes'] },
    memory: { total: 67_000_000_000, physical_mb: 65_536 },
    system_vendor: {
      manufacturer: 'Maker',
      product_name: 'Box',
      serial_number: 'S1',
      firmware: { vendor: 'V', version: '1.2', build_date: '01/02/2026' },
    },
    hostname: 'ramdisk',
  },
  plugin_data: {
    all_interfaces: { eth0: { pxe_enabled: true }, eth1: { pxe_enabled: false } },
    parsed_lldp: {
      eth0: {
        switch_chassis_id: '00:11:22:33:44:55',
        switch_port_id: 'Ethernet1',
        switch_system_name: 'leaf',
        switch_port_untagged_vlan_id: 7,
        switch_port_vlans: [{ id: 7, name: 'deploy' }, { id: 70_000 }],
      },
    },
  },
};
const inspected = detailsOfInspection(INSPECTION);

it('an inspection gets the form that the operator writes', () => {
  const first = {
    name: 'eth0',
    model: '0x8086 0x1533',
    mac: ONE,
    speedGbps: 25,
    pciAddress: '0000:00:01.0',
    pxe: true,
    lldp: { switchID: '00:11:22:33:44:55', portID: 'Ethernet1', switchSystemName: 'leaf' },
    vlans: [{ id: 7, name: 'deploy' }],
    vlanId: 7,
  };
  expect(inspected).toEqual({
    systemVendor: { manufacturer: 'Maker', productName: 'Box', serialNumber: 'S1' },
    firmware: { bios: { vendor: 'V', version: '1.2', date: '01/02/2026' } },
    ramMebibytes: 65_536,
    hostname: 'ramdisk',
    cpu: { arch: 'x86_64', model: 'CPU', count: 16, clockMegahertz: 2200, flags: ['aes', 'sse'] },
    nics: [
      { ...first, ip: '192.0.2.5' },
      { ...first, ip: '2001:db8::5' },
      { name: 'eth1', model: '0x8086 0x1533', mac: TWO, pciAddress: '0000:00:01.0' },
    ],
    storage: [
      {
        name: '/dev/disk/by-path/pci-0000:00:05.0-A',
        alternateNames: ['/dev/sda', '/dev/disk/by-path/pci-0000:00:05.0-A'],
        type: 'SSD',
        sizeBytes: 480_103_981_056,
        vendor: 'ATA',
        model: 'M',
        serialNumber: 'A',
        wwn: '0x5000c500a1b2c3d4',
        hctl: '0:0:0:0',
      },
      expect.objectContaining({ name: '/dev/nvme0n1', alternateNames: ['/dev/nvme0n1'], type: 'NVME' }),
      expect.objectContaining({ serialNumber: 'C', type: 'HDD', rotational: true }),
    ],
  });
});

const RECORD = {
  disks: INSPECTION.inventory.disks,
  interfaces: [nic('ens1', ONE, { has_carrier: true, speed_mbps: 25_000 }), nic('ens2', TWO, { has_carrier: false, speed_mbps: null })],
  cpu: { architecture: 'x86_64', model_name: 'CPU', count: 16 },
  memory: { physical_mb: 65_536, present_mb: 64_512, modules: [] },
  system_vendor: { manufacturer: 'Maker', product_name: '', serial_number: '', firmware: { vendor: '', version: '1.3', build_date: '' } },
  hostname: 'web-1',
};

it('a record keeps what only inspection finds, and what the recorder may not read', () => {
  const details = withRecord(inspected, RECORD);
  expect(details).toMatchObject({
    systemVendor: { manufacturer: 'Maker', productName: 'Box', serialNumber: 'S1' },
    firmware: { bios: { vendor: 'V', version: '1.3', date: '01/02/2026' } },
    cpu: { clockMegahertz: 2200, flags: ['aes', 'sse'] },
    hostname: 'web-1',
    ramMebibytes: 65_536,
  });
  expect(details.storage).toEqual(inspected.storage);
  expect(details.nics).toMatchObject([
    { name: 'ens1', mac: ONE, ip: '192.0.2.5', pxe: true, lldp: { switchSystemName: 'leaf' }, speedGbps: 25 },
    { name: 'ens1', mac: ONE, ip: '2001:db8::5', speedGbps: 25 },
    { name: 'ens2', mac: TWO },
  ]);
});
it.each([
  [
    'a disk is pulled',
    { disks: RECORD.disks.slice(1) },
    (details: typeof inspected) => details.storage?.map((item) => item['serialNumber']),
    ['B', 'C'],
  ],
  ['all disks are pulled', { disks: [] }, ({ storage }: typeof inspected) => storage, []],
  ['a memory module is lost', { memory: { physical_mb: 49_152 } }, ({ ramMebibytes }: typeof inspected) => ramMebibytes, 49_152],
  [
    'a link is lost',
    { interfaces: [{ ...RECORD.interfaces[0], has_carrier: false, speed_mbps: null }, RECORD.interfaces[1]] },
    ({ nics }: typeof inspected) => nics?.map((item) => item['speedGbps']),
    [undefined, undefined, undefined],
  ],
  [
    'a link is slower',
    { interfaces: [{ ...RECORD.interfaces[0], speed_mbps: 10_000 }] },
    ({ nics }: typeof inspected) => nics?.map((item) => item['speedGbps']),
    [10, 10],
  ],
  [
    'a recorder of an older release does not know links',
    { interfaces: [nic('ens1', ONE)] },
    ({ nics }: typeof inspected) => nics?.map((item) => item['speedGbps']),
    [25, 25],
  ],
  [
    'the system has a bond, and a new card',
    { interfaces: [nic('bond0', '52:54:00:00:00:99', { driver: null, pci_address: null }), nic('ens9', '52:54:00:00:00:98')] },
    ({ nics }: typeof inspected) => nics?.map(({ name }) => name),
    ['ens9'],
  ],
])('%s', (_, more, part: (details: typeof inspected) => unknown, expected) =>
  expect(part(withRecord(inspected, { ...RECORD, ...more }))).toEqual(expected),
);
it('names the interfaces without a link', () => expect(linksDown(RECORD)).toEqual(['ens2']));

it('without an inspection, all is from the record', () => {
  const details = withRecord({}, RECORD);
  expect(details.cpu).toEqual({ arch: 'x86_64', model: 'CPU', count: 16 });
  expect(details.nics).toMatchObject([{ name: 'ens1', speedGbps: 25 }, { name: 'ens2' }]);
});
it('values of other types, and more than an object can hold, are left out', () => {
  const long = 'x'.repeat(100_000);
  const many = Array.from({ length: 5000 }, (_, at) => disk(`/dev/sd${at}`, long));
  const details = withRecord(
    { ramMebibytes: 1 },
    {
      disks: many,
      interfaces: [{ mac_address: 'none' }, 7, { mac_address: ONE, name: 7, driver: 'x', speed_mbps: 'fast', has_carrier: true }],
      cpu: { count: -1, architecture: {}, flags: 'all', frequency: 'NaN', model_name: 'a\u0000b' },
      memory: { physical_mb: 1e300 },
      system_vendor: 'none',
      hostname: [],
    },
  );
  expect(details).toMatchObject({ cpu: { model: 'a\ufffdb' }, nics: [{ mac: ONE }], ramMebibytes: 1 });
  expect(Object.keys(details).sort()).toEqual(['cpu', 'nics', 'ramMebibytes', 'storage']);
  expect(JSON.stringify(details).length).toBeLessThan(1_000_000);
});
