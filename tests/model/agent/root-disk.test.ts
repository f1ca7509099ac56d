import type { InventoryDisk } from '../../../model/records';
import { rootDisk, usableDisks } from '../../../model/agent/root-disk';

const GiB = 2 ** 30;
const disks: readonly InventoryDisk[] = [
  { name: '/dev/sdc', size: 8 * GiB, serial: 'C' },
  { name: '/dev/sda', size: 3 * GiB, serial: 'A' },
  { name: '/dev/sdb', size: 8 * GiB, serial: 'B' },
  { name: '/dev/sdd', size: 100 * GiB, serial: 'D', rotational: true },
];

it.each<[object, string]>([
  [{}, '/dev/sdb'],
  [{ properties: {}, instance_info: {} }, '/dev/sdb'],
  [{ properties: { root_device: { serial: 'D' } } }, '/dev/sdd'],
  [{ properties: { root_device: { serial: 'D' } }, instance_info: { root_device: { name: 's== /dev/sdc' } } }, '/dev/sdc'],
  [{ properties: { root_device: { size: 3 } } }, '/dev/sda'],
  [{ properties: { root_device: { size: '= 8' } } }, '/dev/sdc'],
  [{ properties: { skip_block_devices: [{ serial: 'B' }] } }, '/dev/sdc'],
  [{ properties: { skip_block_devices: [{ volume_name: 'x' }] } }, '/dev/sdb'],
])('rootDisk of a node with %j is %s', (node, name) => {
  expect(rootDisk(disks, { ...node }).name).toBe(name);
});

it.each<[readonly InventoryDisk[], object, RegExp]>([
  [disks, { properties: { root_device: { serial: 'X' } } }, /using these hints {"serial":"X"}/],
  [disks, { properties: { root_device: { colour: 'red' } } }, /failed to validate. Error: The hints "colour" are invalid/],
  [disks, { properties: { root_device: { serial: 'D' }, skip_block_devices: [{ serial: 'D' }] } }, /using these hints/],
  [[disks[1]!], {}, /all found block devices are smaller than 4294967296B/],
  [[], {}, /root device hints were not provided/],
])('rootDisk throws if no disk qualifies, case %#', (given, node, reason) => {
  expect(() => rootDisk(given, { ...node })).toThrow(reason);
});

it('usableDisks omits the disks of skip_block_devices', () => {
  expect(
    usableDisks(disks, { properties: { skip_block_devices: [{ rotational: true }, { serial: 'A' }] } }).map((disk) => disk.serial),
  ).toEqual(['C', 'B']);
});
