import { bootOf, inOrder, keptVolumes, layoutOf, placeVolumes, readVolumes } from '../../../model/agent/software-raid';
import type { JsonObject } from '../../../model/records';

const GiB = 2 ** 30;
const MiB = 2 ** 20;
const DISKS = ['sda', 'sdb', 'sdc', 'sdd'].map((name, at) => ({ name: `/dev/${name}`, size: 10 * GiB, serial: `S${at}` }));
const mirror = { controller: 'software', raid_level: '1', size_gb: 'MAX' };
const small = { ...mirror, size_gb: 2 };
const config = (...disks: readonly JsonObject[]): JsonObject => ({ logical_disks: disks });
const node = (properties: JsonObject = {}): JsonObject => ({ uuid: 'u', properties });
const skipping = node({ skip_block_devices: [{ volume_name: 'data' }, { serial: 'S9' }] });
const placed = (...disks: readonly JsonObject[]) => inOrder(placeVolumes(readVolumes(config(...disks), node(), 4), DISKS));

it.each<[string, JsonObject, RegExp, JsonObject?, number?]>([
  ['no volume', config(), /^Software RAID caused unknown error: RAID config contains no logical disks$/],
  ['three volumes', config(small, small, mirror), /for u: Software RAID configuration requires one or two logical disks$/],
  [
    'a volume of another controller',
    config(small, { ...mirror, controller: 'RAID.1' }),
    /requires all logical disks to have 'controller'='software'/,
  ],
  [
    'no RAID-1 at first',
    config({ ...mirror, raid_level: '0' }),
    /for u: Software RAID Configuration requires RAID-1 for the first logical disk$/,
  ],
  ['twice MAX', config(mirror, mirror), /Software RAID can have only one RAID device with size 'MAX'/],
  [
    'a level that mdadm lacks',
    config(small, { ...mirror, raid_level: '5+0' }),
    /does not support RAID level 5\+0; There is no RAID level 5\+0/,
  ],
  ['a level named as a method', config(small, { ...mirror, raid_level: 'constructor' }), /does not support RAID level constructor;/],
  [
    'RAID-5 on two disks',
    config(small, { ...mirror, raid_level: '5' }),
    /is not possible for RAID level 5 with only 2 block devices found\.$/,
    node(),
    2,
  ],
  [
    'RAID-6 on three disks',
    config(small, { ...mirror, raid_level: '6' }),
    /is not possible for RAID level 6 with only 3 block devices found\.$/,
    node(),
    3,
  ],
  [
    'a name twice',
    config({ ...small, volume_name: 'a' }, { ...mirror, volume_name: 'a' }),
    /Duplicate software RAID device name a detected/,
  ],
  [
    'two root volumes',
    config({ ...small, is_root_volume: true }, { ...mirror, is_root_volume: true }),
    /allows only one logical disk to be marked as is_root_volume/,
  ],
  [
    'no name beside one that is skipped',
    config(mirror),
    /All logical disks are required to have a volume name specified as a volume name is mentioned in the property skip block devices\./,
    skipping,
  ],
  ['one physical disk', config({ ...mirror, physical_disks: [{ serial: 'S1' }] }), /must be a list with at least 2 items, each/],
  [
    'physical disks by name',
    config({ ...mirror, physical_disks: ['/dev/sda', '/dev/sdb'] }),
    /must be a list of device hints \(dictionaries\)/,
  ],
  ['an unknown hint', config({ ...mirror, physical_disks: [{ colour: 'red' }, { serial: 'S1' }] }), /The hints "colour" are invalid/],
  ['the size 0', config({ ...mirror, size_gb: 0 }), /size_gb of a logical disk is a number of GiB above zero, or 'MAX', and not 0/],
  ['no size', config({ controller: 'software', raid_level: '1' }), /and not missing/],
  ['a name for the EFI system partitions', config({ ...mirror, volume_name: 'esp' }), /is that of the EFI system partitions/],
  ['a name with an option', config({ ...mirror, volume_name: '-x' }), /does not start with -/],
  ['a name of two lines', config({ ...mirror, volume_name: 'a\nb' }), /of the characters/],
])('readVolumes refuses %s', (_, given, message, of = node(), count = 4) => {
  expect(() => readVolumes(given, of, count)).toThrow(
    expect.objectContaining({ type: 'SoftwareRAIDError', message: expect.stringMatching(message) as string }) as Error,
  );
});

it('readVolumes names all that is wrong', () => {
  expect(() => readVolumes(config({ ...mirror, raid_level: '5' }, { ...mirror, raid_level: '9' }), node(), 4)).toThrow(
    'Could not validate Software RAID config for u: Software RAID Configuration requires RAID-1 for the first logical disk; ' +
      "Software RAID can have only one RAID device with size 'MAX'; Software RAID configuration does not support RAID level 9; " +
      'There is no RAID level 9 for software RAID',
  );
});

it('each hint of physical_disks chooses another disk', () => {
  const hints = [{ size: '> 5' }, { size: '> 5' }, { serial: 'S3' }];
  expect(placed({ ...mirror, physical_disks: hints })).toMatchObject([{ disks: ['/dev/sda', '/dev/sdb', '/dev/sdd'] }]);
  expect(() => placed({ ...mirror, physical_disks: [{ serial: 'S1' }, { serial: 'S7' }] })).toThrow(
    'No candidates for physical disk {"serial":"S7"}',
  );
  expect(() => placed({ ...mirror, physical_disks: [{ serial: 'S1' }, { serial: 'S1' }] })).toThrow(
    'No candidates left for physical disk {"serial":"S1"} from the list /dev/sdb after picking /dev/sdb for previous volumes',
  );
});

it('a volume needs as many disks as its level', () => {
  expect(() => placeVolumes(readVolumes(config(mirror), node(), 4), DISKS.slice(0, 1))).toThrow(
    'needs at least 2 disks, and has 1: /dev/sda',
  );
});

it.each<[string, readonly JsonObject[], { bootMode: 'uefi' | 'bios'; label: 'gpt' | 'msdos' }, readonly (readonly [number, number])[]]>([
  ['all of the disk, UEFI', [mirror], { bootMode: 'uefi', label: 'gpt' }, [[551, 10 * 1024 - 1]]],
  ['all of the disk, BIOS with a GPT', [mirror], { bootMode: 'bios', label: 'gpt' }, [[8, 10 * 1024 - 1]]],
  ['all of the disk, BIOS', [mirror], { bootMode: 'bios', label: 'msdos' }, [[1, 10 * 1024 - 1]]],
  [
    'what takes all is last',
    [mirror, { ...small, raid_level: '0' }],
    { bootMode: 'uefi', label: 'gpt' },
    [
      [551, 2048],
      [2048, 10 * 1024 - 1],
    ],
  ],
  [
    'two sizes',
    [small, { ...small, raid_level: '1+0', size_gb: '3' }],
    { bootMode: 'bios', label: 'msdos' },
    [
      [1, 2048],
      [2048, 5 * 1024],
    ],
  ],
])('the partitions of a disk: %s', (_, disks, boot, expected) => {
  const { label, partitions } = layoutOf(placed(...disks), DISKS[0]!, boot);
  expect(label).toBe(boot.label);
  expect(partitions.map(({ start, size }) => [start / MiB, (start + size) / MiB])).toEqual(expected);
});

it.each<[readonly JsonObject[], number, 'gpt' | 'msdos', string]>([
  [[{ ...mirror, size_gb: 10 }], 10 * GiB, 'msdos', 'Failed to create partitions on /dev/sda: 10 GiB do not fit on its 10.00 GiB'],
  [[small, mirror], 2 * GiB, 'gpt', 'Failed to create partitions on /dev/sda: 2 GiB do not fit on its 2.00 GiB'],
  [[mirror], 500 * MiB, 'gpt', 'Failed to create partitions on /dev/sda: nothing is left on its 0.49 GiB'],
  [[mirror], 3 * 1024 * GiB, 'msdos', 'larger than 2 TiB, and needs the capability disk_label:gpt'],
])('a disk that is too small, or too large: %j', (disks, size, label, message) => {
  expect(() => layoutOf(placed(...disks), { name: '/dev/sda', size }, { bootMode: label === 'gpt' ? 'uefi' : 'bios', label })).toThrow(
    message,
  );
});

it.each<[JsonObject, 'uefi' | 'bios', string, string]>([
  [{}, 'bios', 'bios', 'msdos'],
  [{}, 'uefi', 'uefi', 'gpt'],
  [{ properties: { capabilities: 'boot_mode:uefi,disk_label:msdos' } }, 'bios', 'uefi', 'gpt'],
  [{ properties: { capabilities: 'disk_label:gpt,boot_mode:bios' } }, 'uefi', 'bios', 'gpt'],
  [{ properties: { capabilities: 'boot_mode:bios' }, instance_info: { capabilities: '{"secure_boot":"true"}' } }, 'bios', 'uefi', 'gpt'],
  [{ instance_info: { deploy_boot_mode: 'BIOS' }, properties: { capabilities: { boot_mode: 'uefi' } } }, 'uefi', 'bios', 'msdos'],
  [{ driver_internal_info: { deploy_boot_mode: 'uefi' } }, 'bios', 'uefi', 'gpt'],
  [{ properties: { capabilities: 'boot_mode:other' } }, 'bios', 'bios', 'msdos'],
])('bootOf %j on a machine in %s', (given, own, bootMode, label) => {
  expect(bootOf(given, own)).toEqual({ bootMode, label });
});

it('keptVolumes takes the names of volumes from skip_block_devices', () => {
  expect(keptVolumes(skipping)).toEqual(['data']);
  expect(keptVolumes(node({ skip_block_devices: 'x' }))).toEqual([]);
  expect(keptVolumes({})).toEqual([]);
});
