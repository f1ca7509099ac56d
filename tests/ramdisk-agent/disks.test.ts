/** The disks of a machine, from trees as the kernel and udev make them. */
import { rootDisk } from '../../model/agent/root-disk';
import type { JsonObject } from '../../model/records';
import { findDisks, inventoried, mediaOf } from '../../ramdisk-agent/inventory/disks';
import { readHardware } from '../../ramdisk-agent/record-hardware';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

type Files = Readonly<Record<string, string | Buffer>>;
const host = (files: Files, bootedFromMedium = false) => ({ tree: tree(fileTree(files)), bootedFromMedium });
const inventory = (files: Files): readonly JsonObject[] => findDisks(host(files)).map(inventoried);

let minor = 0;
const prefixed = (prefix: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([file, content]) => [`${prefix}/${file}`, content]));
const database = (properties: Readonly<Record<string, string>>, links: readonly string[] = []): string =>
  ['I:1', ...Object.entries(properties).map(([name, value]) => `E:${name}=${value}`), ...links.map((link) => `S:${link}`), 'V:1', ''].join(
    '\n',
  );
/** A disk of 4 GiB below that path of /sys. `address`: of a SCSI device. */
function disk(name: string, path: string, files: Files, udev?: string, address?: string): Files {
  const number = `8:${minor++}`;
  const block = `sys${path}/block/${name}`;
  return {
    [`sys/block/${name}`]: `->..${path}/block/${name}`,
    [`${block}/dev`]: `${number}\n`,
    [`${block}/size`]: '8388608\n',
    [`${block}/queue/rotational`]: '0\n',
    [`${block}/queue/logical_block_size`]: '512\n',
    [`${block}/queue/physical_block_size`]: '4096\n',
    [`${block}/device`]: '->../..',
    ...prefixed(`sys${path}/block/${name}`, Object.fromEntries(Object.entries(files).filter(([file]) => !file.startsWith('device/')))),
    ...prefixed(
      `sys${path}`,
      Object.fromEntries(
        Object.entries(files).flatMap(([file, content]) => (file.startsWith('device/') ? [[file.slice(7), content]] : [])),
      ),
    ),
    ...(address === undefined ? {} : { [`sys${path}/scsi_device/${address}/x`]: '' }),
    ...(udev === undefined ? {} : { [`run/udev/data/b${number}`]: udev }),
  };
}
const PCI = '/devices/pci0000:00/0000:00:1f.2';

describe('findDisks', () => {
  it.each<[string, () => Files, object]>([
    [
      'virtio',
      () => disk('vda', '/devices/pci0000:00/0000:00:02.0/virtio1', { serial: 'SER1\n', 'device/vendor': '0x1af4\n' }),
      { name: '/dev/vda', serial: 'SER1', vendor: '0x1af4', model: null, tran: 'virtio', by_path: null, wwn: null, hctl: null },
    ],
    [
      'SATA, whose SCSI model is cut',
      () => ({
        ...disk(
          'sda',
          `${PCI}/ata3/host2/target2:0:0/2:0:0:0`,
          { 'queue/rotational': '1\n', 'device/model': 'SAMSUNG MZ7LH480\n', 'device/vendor': 'ATA     \n' },
          database(
            {
              ID_MODEL: 'SAMSUNG_MZ7LH480HAHQ-00005',
              ID_MODEL_ENC: 'SAMSUNG\\x20MZ7LH480HAHQ-00005\\x20\\x20\\x20',
              ID_SERIAL: 'SAMSUNG_MZ7LH480HAHQ-00005_S45P1',
              ID_SERIAL_SHORT: 'S45P1',
              ID_WWN: '0x5002538e0001',
              ID_WWN_WITH_EXTENSION: '0x5002538e0001',
              ID_PATH: 'pci-0000:00:1f.2-ata-3.0',
              ID_PATH_ATA_COMPAT: 'pci-0000:00:1f.2-ata-3',
            },
            ['disk/by-path/pci-0000:00:1f.2-ata-3', 'disk/by-id/ata-x', 'disk/by-path/pci-0000:00:1f.2-ata-3.0'],
          ),
          '2:0:0:0',
        ),
        'sys/class/scsi_host/host2/proc_name': 'ahci\n',
      }),
      {
        name: '/dev/sda',
        rotational: true,
        model: 'SAMSUNG MZ7LH480HAHQ-00005',
        vendor: 'ATA',
        serial: 'S45P1',
        hctl: '2:0:0:0',
        wwn: '0x5002538e0001',
        wwn_with_extension: '0x5002538e0001',
        wwn_vendor_extension: null,
        tran: 'sata',
        by_path: '/dev/disk/by-path/pci-0000:00:1f.2-ata-3.0',
      },
    ],
    [
      'a volume of a RAID controller',
      () => ({
        ...disk(
          'sdb',
          '/devices/pci0000:00/0000:02:00.0/host0/target0:2:1/0:2:1:0',
          { 'device/model': 'PERC H730P Mini\n' },
          database(
            {
              ID_SCSI_SERIAL: '0011223344',
              ID_SERIAL: '3600508b1001c1234abcd567890abcdef',
              ID_SERIAL_SHORT: '600508b1001c1234abcd567890abcdef',
              ID_WWN: '0x600508b1001c1234',
              ID_WWN_VENDOR_EXTENSION: '0xabcd567890abcdef',
              ID_WWN_WITH_EXTENSION: '0x600508b1001c1234abcd567890abcdef',
              ID_PATH: 'pci-0000:02:00.0-scsi-0:2:1:0',
            },
            ['disk/by-path/pci-0000:02:00.0-scsi-0:2:1:0'],
          ),
          '0:2:1:0',
        ),
        'sys/class/scsi_host/host0/proc_name': 'megaraid_sas\n',
      }),
      {
        model: 'PERC H730P Mini',
        serial: '0011223344',
        tran: null,
        by_path: '/dev/disk/by-path/pci-0000:02:00.0-scsi-0:2:1:0',
        wwn: '0x600508b1001c1234abcd567890abcdef',
        wwn_with_extension: '0x600508b1001c1234abcd567890abcdef',
        wwn_vendor_extension: '0xabcd567890abcdef',
      },
    ],
    [
      'SAS',
      () => {
        const path = '/devices/pci0000:00/0000:03:00.0/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0';
        const by = 'disk/by-path/pci-0000:03:00.0-sas-phy0-lun-0';
        return {
          ...disk('sdc', path, { 'device/sas_device/x': '' }, database({ ID_PATH: 'pci-0000:03:00.0-sas-phy0-lun-0' }, [by]), '1:0:0:0'),
        };
      },
      { tran: 'sas', by_path: '/dev/disk/by-path/pci-0000:03:00.0-sas-phy0-lun-0' },
    ],
    [
      'Fibre Channel',
      () => ({
        ...disk('sdd', '/devices/pci0000:00/0000:04:00.0/host3/rport-3:0-1/target3:0:0/3:0:0:1', {}, database({}), '3:0:0:1'),
        'sys/class/fc_host/host3/symbolic_name': 'a driver\n',
      }),
      { tran: 'fc' },
    ],
    [
      'NVMe without udev',
      () => ({
        ...disk('nvme0n1', '/devices/pci0000:00/0000:00:04.0/nvme/nvme0', {
          'device/serial': 'NV1                 \n',
          'device/model': 'QEMU NVMe Ctrl   \n',
          wwid: 'nvme.1b36-4e5631-51454d55-00000001\n',
        }),
        'dev/disk/by-path/pci-0000:00:04.0-nvme-1': '->../../nvme0n1',
      }),
      {
        name: '/dev/nvme0n1',
        serial: 'NV1',
        model: 'QEMU NVMe Ctrl',
        tran: 'nvme',
        wwn: 'nvme.1b36-4e5631-51454d55-00000001',
        by_path: '/dev/disk/by-path/pci-0000:00:04.0-nvme-1',
      },
    ],
    [
      'a RAID volume without udev',
      () =>
        disk('sde', `${PCI}/host0/target0:2:1/0:2:1:0`, { 'device/wwid': 'naa.600508b1001c1234abcd567890abcdef\n' }, undefined, '0:2:1:0'),
      { wwn: '0x600508b1001c1234abcd567890abcdef', wwn_vendor_extension: '0xabcd567890abcdef' },
    ],
    [
      'USB without udev',
      () => ({
        ...disk('sdf', '/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0', {}, undefined, '6:0:0:0'),
        'sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/serial': 'USB7\n',
      }),
      { serial: 'USB7', tran: 'usb', wwn: null },
    ],
  ])('reads the values that lsblk and udev show: %s', (_, files, expected) => {
    expect(inventory(files())).toMatchObject([{ size: 4294967296, logical_sectors: 512, physical_sectors: 4096, ...expected }]);
  });

  it('omits optical, loop, RAM, empty and hidden devices', () => {
    const files = {
      ...disk('sr0', '/devices/x', {}),
      ...disk('loop0', '/devices/x', {}),
      ...disk('zram0', '/devices/x', {}),
      ...disk('sdd', '/devices/x', { size: '0\n' }),
      ...disk('nvme0c0n1', '/devices/x', { hidden: '1\n' }),
      ...disk('dm-3', '/devices/virtual/x', { 'dm/uuid': 'LVM-abc\n' }),
    };
    expect(inventory(files)).toEqual([]);
  });

  it.each([
    { by_path: '/dev/disk/by-path/pci-0000:00:1f.2-ata-3' },
    { by_path: '/dev/disk/by-path/pci-0000:00:1f.2-ata-3.0' },
    { serial: 'S1' },
    { serial: 'Model_S1' },
    { wwn: '0x600508b1001c1234' },
    { wwn: '0x600508b1001c1234abcd567890abcdef' },
  ])('a hint may have any name of a disk: %j', (hint) => {
    const properties = { ID_PATH: 'pci-0000:00:1f.2-ata-3.0', ID_SERIAL: 'Model_S1', ID_SERIAL_SHORT: 'S1', ID_WWN: '0x600508b1001c1234' };
    const all = { ...properties, ID_WWN_WITH_EXTENSION: '0x600508b1001c1234abcd567890abcdef' };
    const links = ['disk/by-path/pci-0000:00:1f.2-ata-3.0', 'disk/by-path/pci-0000:00:1f.2-ata-3'];
    const found = findDisks(host(disk('sda', `${PCI}/x`, {}, database(all, links))));
    expect(rootDisk(found, { properties: { root_device: hint } })).toMatchObject({ name: '/dev/sda' });
  });
});

describe('a disk that two paths lead to', () => {
  const paths = (): Files => {
    const holders = { 'holders/dm-0/x': '' };
    return {
      ...disk('sda', `${PCI}/host1/1`, holders, database({ ID_SERIAL_SHORT: 'M1' }), '1:0:0:0'),
      ...disk('sdb', `${PCI}/host2/2`, holders, database({ ID_SERIAL_SHORT: 'M1' }), '2:0:0:0'),
      ...disk(
        'dm-0',
        '/devices/virtual',
        { 'dm/uuid': 'mpath-36001\n', 'dm/name': 'mpatha\n', 'slaves/sda/x': '', 'slaves/sdb/x': '' },
        database({ DM_SERIAL: '36001', DM_WWN: '0x6001' }),
      ),
      ...disk('sdc', `${PCI}/host1/3`, {}, database({ ID_SERIAL_SHORT: 'OTHER' }), '1:0:1:0'),
    };
  };
  it('is one disk, with the name of the multipath device', () => {
    expect(inventory(paths())).toMatchObject([
      { name: '/dev/dm-0', serial: '36001', wwn: '0x6001', tran: null, model: null },
      { name: '/dev/sdc', serial: 'OTHER' },
    ]);
  });
  it.each<[string, Files, readonly string[]]>([
    ['local', {}, ['/dev/dm-0', '/dev/sdc']],
    ['by Fibre Channel', { 'sys/class/fc_host/host2/symbolic_name': 'x' }, ['/dev/sdc']],
  ])('is hardware of the host where its paths are: %s', async (_, more, names) => {
    const environment = { ...host({ ...paths(), ...more }), addresses: () => ({}), machine: 'x86_64', hostname: () => 'h' };
    const record = await readHardware({ ...environment, bootInterface: null, run: async () => Promise.reject(new Error('no program')) });
    expect((record as { disks: readonly { name: string }[] }).disks.map(({ name }) => name)).toEqual(names);
  });
});

describe('the medium that the ramdisk is booted from or configured by', () => {
  const usb = '/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0';
  const stick = (label: string, partition?: string): Files => ({
    ...disk('sdb', usb, {}, database({ ID_FS_LABEL: label }), '6:0:0:0'),
    ...(partition === undefined
      ? {}
      : { [`sys${usb}/block/sdb/sdb1/dev`]: '8:999\n', 'run/udev/data/b8:999': database({ ID_FS_LABEL: partition }) }),
  });
  it.each<[string, Files, boolean, boolean]>([
    ['parameters', stick('IR-VFD-DEV'), true, true],
    ['the ISO image', stick('VMEDIA_BOOT_ISO'), true, true],
    ['the ISO image, in a partition', stick('', 'VMEDIA_BOOT_ISO'), true, true],
    ['a config drive', stick('config-2'), true, true],
    ['a deployed system, whose config drive is in a partition', stick('', 'config-2'), true, false],
    ['another volume', stick('data'), true, false],
    ['parameters, when the machine booted from the network', stick('IR-VFD-DEV'), false, false],
    [
      'parameters on a disk that is not removable',
      disk('sdb', `${PCI}/x`, {}, database({ ID_FS_LABEL: 'ir-vfd-dev' }), '1:0:0:0'),
      true,
      false,
    ],
    ['parameters on a removable disk', disk('sdb', `${PCI}/x`, { removable: '1' }, database({ ID_FS_LABEL: 'ir-vfd-dev' })), true, true],
  ])('is not a disk: %s', (_, files, bootedFromMedium, isOmitted) => {
    const machine = host({ ...files, ...disk('sda', `${PCI}/y`, {}, database({})) }, bootedFromMedium);
    expect(findDisks(machine).map(({ name }) => name)).toEqual(isOmitted ? ['/dev/sda'] : ['/dev/sda', '/dev/sdb']);
    expect(mediaOf(machine)).toEqual(isOmitted ? ['/dev/sdb'] : []);
  });
});
