import { crc32 } from 'node:zlib';
import type { Device } from '../../ramdisk-agent/disk/device';
import { entriesOf, lastUsable, readGpt, withEntry, writeGpt } from '../../ramdisk-agent/disk/gpt';
import { addAtEnd, diskIdentifier, partitionPath, readPartitions, repairGpt } from '../../ramdisk-agent/disk/partitions';
import { fileDevice } from './support';

type Gpt = Parameters<typeof writeGpt>[1];
const MiB = 2 ** 20;
const GUID = '00112233-4455-6677-8899-aabbccddeeff';
const DISK = '01020304-0506-0708-090a-0b0c0d0e0f10';
const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4';

function mbr(...entries: readonly (readonly [number, number, number])[]): Buffer {
  const bytes = Buffer.alloc(512);
  bytes.writeUInt32LE(0x89abcdef, 440);
  entries.forEach(([type, start, sectors], index) => {
    bytes[446 + index * 16 + 4] = type;
    bytes.writeUInt32LE(start, 446 + index * 16 + 8);
    bytes.writeUInt32LE(sectors, 446 + index * 16 + 12);
  });
  bytes.writeUInt16LE(0xaa55, 510);
  return bytes;
}
const empty: Gpt = { diskGuid: DISK, firstUsable: 34, arrayLba: 2, entrySize: 128, array: Buffer.alloc(128 * 128) };
/** A GPT made for a disk of that many MiB, with one partition from 1 to 5 MiB. */
async function putGpt(device: Device, madeFor: number): Promise<void> {
  const sector = device.sectorSize;
  await device.write(mbr([0xee, 1, madeFor * (MiB / sector) - 1]), 0);
  const { gpt } = withEntry(empty, { type: LINUX, guid: GUID, first: MiB / sector, last: (5 * MiB) / sector - 1, name: 'root' });
  await writeGpt({ ...device, size: madeFor * MiB }, gpt);
}

describe.each([512, 4096])('GPT with sectors of %s bytes', (sectorSize) => {
  it('repairGpt moves the backup to the end of a larger disk', async () => {
    const device = await fileDevice(100 * MiB, sectorSize);
    await putGpt(device, 10);
    await repairGpt(device);
    const end = (100 * MiB) / sectorSize - 1;
    const last = await device.read(end * sectorSize, sectorSize);
    expect(last.toString('latin1', 0, 8)).toBe('EFI PART');
    expect([last.readBigUInt64LE(24), last.readBigUInt64LE(32), last.readBigUInt64LE(48)]).toEqual([
      BigInt(end),
      1n,
      BigInt(end - 1 - 16384 / sectorSize),
    ]);
    const first = await device.read(sectorSize, sectorSize);
    expect([first.readBigUInt64LE(24), first.readBigUInt64LE(32), first.readBigUInt64LE(72)]).toEqual([1n, BigInt(end), 2n]);
    for (const header of [first, last]) {
      const checked = Buffer.from(header.subarray(0, 92));
      checked.writeUInt32LE(0, 16);
      expect(header.readUInt32LE(16)).toBe(crc32(checked));
    }
    expect((await device.read(0, 512)).readUInt32LE(446 + 12)).toBe(end);
    expect(await readPartitions(device)).toEqual({
      label: 'gpt',
      partitions: [{ number: 1, start: MiB, size: 4 * MiB, type: LINUX, name: 'root' }],
    });
  });

  it('addAtEnd adds a partition at the end of the disk', async () => {
    const device = await fileDevice(100 * MiB, sectorSize);
    await putGpt(device, 10);
    const added = await addAtEnd(device, 64 * MiB, MiB, '99999999-8888-7777-6666-555555555555');
    expect(added).toMatchObject({ number: 2, start: 35 * MiB, size: 64 * MiB });
    const table = (await readGpt(device))!;
    expect(entriesOf(table)[1]).toMatchObject({
      guid: '99999999-8888-7777-6666-555555555555',
      name: 'config-2',
      first: (35 * MiB) / sectorSize,
    });
    expect(lastUsable(table, device) * sectorSize).toBeGreaterThanOrEqual(99 * MiB);
  });
});

it('a damaged primary GPT is replaced by its backup', async () => {
  const device = await fileDevice(10 * MiB);
  await putGpt(device, 10);
  await device.zero(512, 512);
  expect((await readPartitions(device))?.partitions).toHaveLength(1);
  await repairGpt(device);
  expect((await device.read(512, 8)).toString()).toBe('EFI PART');
});

describe('MBR', () => {
  it('readPartitions returns primary and logical partitions', async () => {
    const device = await fileDevice(100 * MiB);
    const at = (mib: number): number => mib * 2048;
    await device.write(mbr([0xef, at(1), at(9)], [0, 0, 0], [0x05, at(20), at(30)]), 0);
    await device.write(mbr([0x83, 2048, at(9)], [0x05, at(10), at(10)]), 20 * MiB);
    await device.write(mbr([0x82, 2048, at(5)]), 30 * MiB);
    expect(await readPartitions(device)).toMatchObject({
      label: 'dos',
      partitions: [
        { number: 1, type: 'ef', start: MiB, size: 9 * MiB },
        { number: 3, type: '05', start: 20 * MiB, size: 30 * MiB },
        { number: 5, type: '83', start: 21 * MiB, size: 9 * MiB },
        { number: 6, type: '82', start: 31 * MiB, size: 5 * MiB },
      ],
    });
    expect(await diskIdentifier(device)).toBe('0x89abcdef');
    expect(await addAtEnd(device, 64 * MiB, MiB, GUID)).toMatchObject({ number: 2, type: '0c', start: 50 * MiB, size: 50 * MiB });
  });
  it('addAtEnd places a partition below 2 TiB', async () => {
    const device = await fileDevice(3 * 2 ** 40);
    await device.write(mbr([0x83, 2048, 2048]), 0);
    expect(await addAtEnd(device, 64 * MiB, MiB, GUID)).toMatchObject({ number: 2, start: 2 ** 41 - 64 * MiB });
  });
  it.each([
    ['itself', 0],
    ['the one before', 2048],
  ])('readPartitions returns each logical partition once when an extended boot record names %s as the next', async (_, next) => {
    const device = await fileDevice(10 * MiB);
    await device.write(mbr([0x05, 2048, 5 * 2048]), 0);
    await device.write(mbr([0x83, 1, 1], [0x05, next, 2048]), MiB);
    await device.write(mbr([0x83, 2, 1], [0x05, 0, 2048]), 2 * MiB);
    const { partitions } = (await readPartitions(device))!;
    expect(partitions.map(({ number, start }) => [number, start / 512])).toEqual([
      [1, 2048],
      [5, 2049],
      ...(next === 0 ? [] : [[6, 4098]]),
    ]);
  });
  it('readPartitions returns at most 128 logical partitions', async () => {
    const device = await fileDevice(201 * MiB);
    await device.write(mbr([0x05, 2048, 200 * 2048]), 0);
    for (let mib = 1; mib <= 200; mib++) await device.write(mbr([0x83, 1, 1], [0x05, mib * 2048, 2048]), mib * MiB);
    expect((await readPartitions(device))!.partitions.map(({ number }) => number)).toEqual([
      1,
      ...Array.from({ length: 128 }, (_, index) => 5 + index),
    ]);
  });
  it.each<[string, Buffer, number, RegExp]>([
    ['no table', Buffer.alloc(512), MiB, /no partition table/],
    ['four partitions', mbr([1, 1, 1], [1, 2, 1], [1, 3, 1], [1, 4, 1]), MiB, /already has 4 primary/],
    ['no room', mbr([0x83, 2048, 7 * 2048]), 3 * MiB, /no room: 2097152 bytes are free at the end of the disk, 3145728 are needed/],
    ['a protective MBR without a GPT', mbr([0xee, 1, 100]), MiB, /no partition table/],
  ])('addAtEnd fails with %s', async (_, bytes, least, reason) => {
    const device = await fileDevice(10 * MiB);
    await device.write(bytes, 0);
    await expect(addAtEnd(device, 64 * MiB, least, GUID)).rejects.toThrow(reason);
  });
});

it.each<[string, (header: Buffer) => void]>([
  ['a wrong checksum', (header) => header.writeUInt8(1, 56)],
  ['a header that is too long', (header) => header.writeUInt32LE(4096, 12)],
  ['too many entries', (header) => header.writeUInt32LE(0xffffffff, 80)],
])('readGpt returns null for a GPT with %s', async (_, damage) => {
  const device = await fileDevice(10 * MiB);
  await putGpt(device, 10);
  for (const position of [512, 10 * MiB - 512]) {
    const header = await device.read(position, 512);
    damage(header);
    await device.write(header, position);
  }
  expect(await readGpt(device)).toBeNull();
});

it.each([
  ['/dev/sda', 1, '/dev/sda1'],
  ['/dev/nvme0n1', 2, '/dev/nvme0n1p2'],
])('partitionPath(%s, %s) is %s', (disk, number, path) => {
  expect(partitionPath(disk, number)).toBe(path);
});

it('a device refuses writes beyond its end', async () => {
  const device = await fileDevice(MiB);
  await expect(device.write(Buffer.alloc(2), MiB - 1)).rejects.toThrow('ends at 1048576');
  expect(await device.read(MiB - 1, 10)).toHaveLength(1);
});
