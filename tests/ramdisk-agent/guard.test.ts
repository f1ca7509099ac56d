/** What the guard of disks refuses, and that there is no way around it. */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../model/clock';
import { sourceFiles } from '../../scripts/checks/sources.js';
import type { Device } from '../../ramdisk-agent/disk/device';
import { withEntry, writeGpt } from '../../ramdisk-agent/disk/gpt';
import { openToWrite, protectsShared } from '../../ramdisk-agent/disk/guard';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileDevice, fileTree } from './support';

const MiB = 2 ** 20;
const SIZE = 20 * MiB;
const nothing = {
  tree: tree(fileTree({ empty: '' })),
  clock: systemClock,
  limitMs: 60_000,
  run: async () => '',
  media: [],
  kept: [],
  protectsShared: true,
};
type Prepare = (device: Device) => Promise<void>;
async function diskWith(prepare: Prepare, sectorSize = 512) {
  const device = await fileDevice(SIZE, sectorSize);
  await prepare(device);
  return { name: device.path, size: SIZE, logical_sectors: sectorSize };
}
const bytes =
  (parts: Readonly<Record<number, string>>): Prepare =>
  async (device) => {
    for (const [place, hex] of Object.entries(parts)) await device.write(Buffer.from(hex, 'hex'), Number(place));
  };
/** A table with one partition of that type, from 1 MiB. */
const mbr =
  (type: number, mib = 10): Prepare =>
  async (device) => {
    const table = Buffer.alloc(512);
    table[450] = type;
    table.writeUInt32LE(MiB / device.sectorSize, 454);
    table.writeUInt32LE((mib * MiB) / device.sectorSize, 458);
    table.writeUInt16LE(0xaa55, 510);
    await device.write(table, 0);
  };
const gpt =
  (...types: readonly string[]): Prepare =>
  async (device) => {
    await mbr(0xee, 20)(device);
    const sectors = MiB / device.sectorSize;
    let table = { diskGuid: GUID, firstUsable: 34, arrayLba: 2, entrySize: 128, array: Buffer.alloc(128 * 128) };
    for (const [index, type] of types.entries())
      table = withEntry(table, { type, guid: GUID, first: (index + 1) * sectors, last: (index + 2) * sectors - 1, name: '' }).gpt as never;
    await writeGpt(device, table);
  };
const all =
  (...steps: readonly Prepare[]): Prepare =>
  async (device) => {
    for (const step of steps) await step(device);
  };
const erased =
  (from: number, to: number): Prepare =>
  (device) =>
    device.zero(from, to - from);
const GUID = '00112233-4455-6677-8899-aabbccddeeff';
const VMFS = 'aa31e02a-400f-11db-9590-000c2911d1b8';
const GPFS = '37affc90-ef7d-4e96-91c3-2d7ae055b174';
const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4';
const GFS2 = '01161970';

it.each<[string, Prepare, RegExp, number?]>([
  ['VMFS in a GPT', gpt(VMFS), /Protected VMware VMFS Partition \(GPT\) located on device/],
  ['VMFS in a GPT of a 4K disk', gpt(VMFS), /VMFS Partition \(GPT\)/, 4096],
  ['GPFS', gpt(LINUX, GPFS), /IBM GPFS/],
  ['a GPT whose first copy is lost', all(gpt(VMFS), erased(512, 1024)), /VMFS Partition/],
  ['a GPT whose protective MBR is lost', all(gpt(VMFS), erased(0, 512)), /VMFS Partition/],
  ['VMFS in an MBR', mbr(0xfb), /VMFS Partition \(MBR\)/],
  ['VMFS on the whole LUN', bytes({ [MiB]: '0dd001c0' }), /VMFS volume/],
  ['GFS2 on the whole LUN', bytes({ 65536: GFS2 }), /Red Hat Global File System 2/],
  ['GFS2 in a partition', all(mbr(0x83), bytes({ [MiB + 65536]: GFS2 })), /Red Hat Global File System 2/],
])('openToWrite refuses %s, unless the operator allows it', async (_, prepare, reason, sectorSize = 512) => {
  const disk = await diskWith(prepare, sectorSize);
  await expect(openToWrite(disk, nothing)).rejects.toMatchObject({
    type: 'ProtectedDeviceError',
    message: expect.stringMatching(reason) as string,
  });
  await (await openToWrite(disk, { ...nothing, protectsShared: false })).close();
});

it.each<[string, Prepare]>([
  ['an empty disk', async () => {}],
  ['an MBR', mbr(0x83)],
  ['a partition beyond the end of the disk', mbr(0x83, 100)],
  ['a GPT', gpt(LINUX)],
])('openToWrite opens other disks: %s', async (_, prepare) => {
  await (await openToWrite(await diskWith(prepare), nothing)).close();
});

it('openToWrite refuses media of the ramdisk, disks to keep and write-protected disks by their names', async () => {
  const disk = await diskWith(async () => {});
  const medium = { ...nothing, media: [disk.name], protectsShared: false };
  await expect(openToWrite(disk, medium)).rejects.toMatchObject({
    type: 'ProtectedDeviceError',
    message: expect.stringContaining(disk.name) as string,
  });
  const kept = { ...nothing, kept: [disk.name], protectsShared: false };
  await expect(openToWrite(disk, kept)).rejects.toMatchObject({
    type: 'ProtectedDeviceError',
    message: expect.stringContaining('is to be kept') as string,
  });
  const readOnly = { ...nothing, tree: tree(fileTree({ 'sys/block/sdx/ro': '1\n' })) };
  await expect(openToWrite({ ...disk, name: '/dev/sdx' }, readOnly)).rejects.toThrow('Device /dev/sdx is write-protected');
});

it.each<[boolean, object, boolean]>([
  [true, {}, true],
  [false, {}, false],
  [true, { driver_info: { wipe_special_filesystems: 'True' } }, false],
  [true, { driver_info: { wipe_special_filesystems: false } }, true],
  [true, { driver_info: { guard_special_filesystems: 'no' } }, false],
  [true, { driver_info: { guard_special_filesystems: true } }, true],
  [true, { driver_info: null }, true],
])('protectsShared: parameter %s, node %j', (parameter, node, expected) => {
  expect(protectsShared(parameter, node as never)).toBe(expected);
});

it('only the guard opens disks for writing, and no program that changes disks is run without it', () => {
  const sources = sourceFiles().filter((file) => file.startsWith('ramdisk-agent/') && file.endsWith('.ts'));
  expect(sources.length).toBeGreaterThan(40);
  const violations = sources.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const opens = /\bopenDevice\(/.test(text) && !['ramdisk-agent/disk/device.ts', 'ramdisk-agent/disk/guard.ts'].includes(file);
    const programs = /\b(?:run|query)\(\s*'(?:dd|wipefs|sgdisk|parted|mdadm|blkdiscard|mkfs[.a-z]*|sfdisk|shred)'/.test(text);
    const commands = [...text.matchAll(/\b(?:run|query)\(\s*'(hdparm|nvme)',\s*\[\s*'([^']*)'/g)].some(
      ([, , first]) => !['-I', 'id-ctrl', 'list-ns', 'sanitize-log', '--sanitize-status'].includes(first!),
    );
    const runsPrograms = ['ramdisk-agent/disk/device.ts', 'ramdisk-agent/raid/mdadm.ts'].includes(file);
    return opens || ((programs || commands) && !runsPrograms) ? [file] : [];
  });
  expect(violations).toEqual([]);
});
