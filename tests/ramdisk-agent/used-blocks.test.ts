/** Superblocks as mkfs writes them, and lists as partclone writes them: tests/lab/disks/used-blocks.test.ts has the real ones. */
import { writeFileSync } from 'node:fs';
import { silentLog } from '../../model/log';
import type { Device } from '../../ramdisk-agent/disk/device';
import { freeIn, usedBlocks, withoutFree } from '../../ramdisk-agent/disk/used-blocks';
import { fileDevice, folder, isFull } from './support';

const MiB = 2 ** 20;
const SIZE = 64 * MiB;
/** A list: positions at which the use changes. */
const list = (...ranges: readonly (readonly [size: number, use: '+' | '?'])[]): string => {
  let at = 0;
  const lines = ranges.map(([size, use]) => {
    const line = `0x${at.toString(16).toUpperCase().padStart(8, '0')}  0x${size.toString(16).toUpperCase().padStart(8, '0')}  ${use}`;
    at += size;
    return line;
  });
  return ['# Domain logfile created by unset_name v0.3.23', '0x19000000     ?', '#      pos        size  status', ...lines, ''].join('\n');
};
const LIST = list([4 * MiB, '+'], [20 * MiB, '?'], [8 * MiB, '+'], [32 * MiB, '?']);
const FREE = 52 * MiB;

type Change = (block: Buffer) => void;
function ext(change: Change = () => {}): Buffer {
  const block = Buffer.alloc(1024);
  block.writeUInt32LE(SIZE / 4096, 0x04);
  block.writeUInt32LE(FREE / 4096, 0x0c);
  block.writeUInt32LE(2, 0x18);
  block.writeUInt16LE(0xef53, 0x38);
  block.writeUInt16LE(1, 0x3a);
  block.writeUInt32LE(0x2c2, 0x60);
  change(block);
  return Buffer.concat([Buffer.alloc(1024), block]);
}
function xfs(change: Change = () => {}): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes.write('XFSB', 'latin1');
  bytes.writeUInt32BE(4096, 4);
  bytes.writeBigUInt64BE(BigInt(SIZE / 4096), 8);
  bytes.writeBigUInt64BE(20n, 48);
  bytes.writeUInt32BE(SIZE / 4096, 84);
  bytes.writeUInt32BE(1, 88);
  bytes.writeUInt16BE(5, 100);
  bytes.writeUInt16BE(512, 102);
  bytes.writeBigUInt64BE(BigInt(FREE / 4096 + 3), 144);
  bytes.write('XAGF', 512, 'latin1');
  bytes.writeUInt32BE(4, 512 + 48);
  bytes.writeUInt32BE(FREE / 4096 - 4, 512 + 52);
  change(bytes);
  return bytes;
}
function swap(change: Change = () => {}): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes.writeUInt32LE(1, 1024);
  bytes.writeUInt32LE(SIZE / 4096 - 1, 1028);
  bytes.write('SWAPSPACE2', 4086, 'latin1');
  change(bytes);
  return bytes;
}
/** A table whose records 2, 3 and 6 count, a journal, and a map of the clusters. */
const [TABLE, LOG, MAP] = [4 * 4096, 16 * 4096, 32 * 4096];
interface NtfsParts {
  readonly boot: Buffer;
  readonly records: readonly Buffer[];
  readonly log: Buffer;
  readonly map: Buffer;
}
/** A file with one attribute: its value, or where its content is, in clusters. */
function record(type: number, content: Buffer | readonly [length: number, first: number]): Buffer {
  const bytes = Buffer.alloc(1024);
  bytes.write('FILE', 'latin1');
  bytes.writeUInt16LE(0x30, 4);
  bytes.writeUInt16LE(3, 6);
  bytes.writeUInt16LE(0x38, 0x14);
  // An attribute with a name comes first, which does not count.
  bytes.writeUInt32LE(type, 0x38);
  bytes.writeUInt32LE(24, 0x3c);
  bytes.writeUInt8(1, 0x41);
  const at = 0x50;
  bytes.writeUInt32LE(type, at);
  if (Buffer.isBuffer(content)) {
    bytes.writeUInt32LE(40, at + 4);
    bytes.writeUInt16LE(24, at + 0x14);
    content.copy(bytes, at + 24);
  } else {
    bytes.writeUInt32LE(80, at + 4);
    bytes.writeUInt8(1, at + 8);
    bytes.writeUInt16LE(64, at + 0x20);
    bytes.writeUInt8(0x22, at + 64);
    bytes.writeUInt16LE(content[0], at + 65);
    bytes.writeInt16LE(content[1], at + 67);
  }
  // The last bytes of each half are in the update sequence.
  for (const half of [1, 2]) {
    bytes.copy(bytes, 0x30 + 2 * half, half * 512 - 2, half * 512);
    bytes.writeUInt16LE(0x0707, half * 512 - 2);
  }
  bytes.writeUInt16LE(0x0707, 0x30);
  return bytes;
}
/** A restart page. */
function restart(page: Buffer, newest: number, { clients = 0, flags = 0 }): void {
  page.write('RSTR', 'latin1');
  page.writeUInt16LE(0x30, 0x18);
  page.writeBigUInt64LE(BigInt(newest), 0x30);
  page.writeUInt16LE(clients, 0x3c);
  page.writeUInt16LE(flags, 0x3e);
}
function ntfs(change: (parts: NtfsParts) => void = () => {}): Buffer {
  const boot = Buffer.alloc(512);
  boot.write('NTFS    ', 3, 'latin1');
  boot.writeUInt16LE(512, 0x0b);
  boot.writeUInt8(8, 0x0d);
  boot.writeBigUInt64LE(BigInt(SIZE / 512), 0x28);
  boot.writeBigUInt64LE(BigInt(TABLE / 4096), 0x30);
  boot.writeInt8(-10, 0x40);
  const map = Buffer.alloc(4096, 0xff);
  map.fill(0, 0, FREE / 4096 / 8);
  const parts: NtfsParts = {
    boot,
    records: [record(0x80, [2, LOG / 4096]), record(0x70, Buffer.alloc(16)), record(0x80, [1, MAP / 4096])],
    log: Buffer.alloc(8192, 0xff),
    map,
  };
  change(parts);
  const bytes = Buffer.alloc(MAP + 4096);
  boot.copy(bytes);
  [2, 3, 6].forEach((number, at) => parts.records[at]!.copy(bytes, TABLE + number * 1024));
  parts.log.copy(bytes, LOG);
  parts.map.copy(bytes, MAP);
  return bytes;
}
const inUse = (pages: Buffer, clean: { readonly clients?: number; readonly flags?: number } = {}): void => {
  pages.fill(0);
  restart(pages, 5, { clients: 0xffff });
  restart(pages.subarray(4096), 6, clean);
};
async function disk(...pieces: readonly (readonly [at: number, bytes: Buffer])[]): Promise<Device> {
  const device = await fileDevice(SIZE);
  for (const [at, bytes] of pieces) await device.write(bytes, at);
  return device;
}
const CLEAN = '    log tail: 2 head: 2 state: <CLEAN>\n';
/** partclone and xfs_logprint; undefined: the program fails. */
const found = (device: Device, answers: { readonly list?: string | undefined; readonly log?: string } = {}) =>
  usedBlocks(device, {
    run: async (program, args) => {
      if (program === 'xfs_logprint') return answers.log ?? CLEAN;
      if ('list' in answers && answers.list === undefined) throw new Error('no such program');
      writeFileSync(args[args.indexOf('-O') + 1]!, answers.list ?? LIST);
      return '';
    },
    log: silentLog,
    signal: new AbortController().signal,
    temporary: folder(),
    partition: (number) => `/dev/vda${number}`,
  });

it.each<[string, Buffer, string, number]>([
  ['ext', ext(), 'ext', FREE],
  ['xfs', xfs(), 'xfs', FREE],
  ['swap', swap(), 'swap', SIZE - 4096],
  ['ntfs', ntfs(), 'ntfs', FREE],
  ['ntfs whose journal is closed', ntfs(({ log }) => inUse(log, { clients: 0xffff })), 'ntfs', FREE],
  ['ntfs whose journal says that it is clean', ntfs(({ log }) => inUse(log, { flags: 2 })), 'ntfs', FREE],
])('leaves out what a file system does not use: %s', async (_, bytes, name, leftOut) => {
  const { partitions } = await found(await disk([0, bytes]));
  expect(partitions).toEqual([{ number: 0, start: 0, size: SIZE, file_system: name, blocks: 'used', left_out: leftOut, reason: null }]);
});

it.each<[string, readonly (readonly [number, Buffer])[], Parameters<typeof found>[1], string]>([
  ['journal was not replayed', [[0, ext((block) => block.writeUInt32LE(0x2c6, 0x60))]], {}, 'its journal has not been replayed'],
  ['system died', [[0, ext((block) => block.writeUInt16LE(0, 0x3a))]], {}, 'it was not unmounted'],
  ['errors are known', [[0, ext((block) => block.writeUInt16LE(3, 0x3a))]], {}, 'it has errors'],
  ['blocks are in clusters', [[0, ext((block) => block.writeUInt32LE(0x200, 0x64))]], {}, 'it has clusters of blocks'],
  ['block size is absurd', [[0, ext((block) => block.writeUInt32LE(60, 0x18))]], {}, 'its superblock makes no sense'],
  [
    'size is more than that of its partition',
    [[0, ext((block) => block.writeUInt32LE(SIZE, 0x04))]],
    {},
    'the file system is larger than its partition',
  ],
  [
    'count differs from the list',
    [[0, ext((block) => block.writeUInt32LE(FREE / 4096 - 1, 0x0c))]],
    {},
    `${FREE} bytes are listed as free, and the file system counts ${FREE - 4096}`,
  ],
  ['list cannot be made', [[0, ext()]], { list: undefined }, 'partclone.extfs cannot list its blocks'],
  ['list is empty', [[0, ext()]], { list: '' }, 'the list of its blocks is damaged'],
  ['list has a gap', [[0, ext()]], { list: LIST.replace('0x00400000', '0x00300000') }, 'the list of its blocks is damaged'],
  ['list goes beyond its end', [[0, ext()]], { list: list([4 * MiB, '+'], [64 * MiB, '?']) }, 'the list of its blocks is damaged'],
  ['journal was not replayed (xfs)', [[0, xfs()]], { log: CLEAN.replace('CLEAN', 'DIRTY') }, 'its journal has not been replayed'],
  ['journal is elsewhere (xfs)', [[0, xfs((bytes) => bytes.writeBigUInt64BE(0n, 48))]], {}, 'its journal is elsewhere'],
  ['repair is needed (xfs)', [[0, xfs((bytes) => bytes.writeUInt32BE(0x10, 216))]], {}, 'it needs a repair'],
  ['groups are too many (xfs)', [[0, xfs((bytes) => bytes.writeUInt32BE(0xffffffff, 88))]], {}, 'its superblock makes no sense'],
  ['groups are missing (xfs)', [[0, xfs((bytes) => bytes.writeUInt32BE(9, 88))]], {}, 'a group of its blocks cannot be read'],
  ['groups have more than it has (xfs)', [[0, xfs((bytes) => bytes.writeBigUInt64BE(5n, 144))]], {}, 'its groups have more free blocks'],
  ['system died (ntfs)', [[0, ntfs(({ records }) => records[1]!.writeUInt16LE(1, 0x50 + 34))]], {}, 'it was not unmounted'],
  ['repair is needed (ntfs)', [[0, ntfs(({ records }) => records[1]!.writeUInt16LE(0x4000, 0x50 + 34))]], {}, 'it needs a repair'],
  ['journal was not replayed (ntfs)', [[0, ntfs(({ log }) => inUse(log))]], {}, 'its journal has not been replayed'],
  ['journal is damaged (ntfs)', [[0, ntfs(({ log }) => log.fill(0))]], {}, 'its journal has not been replayed'],
  ['map differs from the list (ntfs)', [[0, ntfs(({ map }) => map.writeUInt8(1, 0))]], {}, `${FREE} bytes are listed as free`],
  ['map is too short (ntfs)', [[0, ntfs(({ boot }) => boot.writeBigUInt64LE(BigInt(SIZE), 0x28))]], {}, 'its own files cannot be read'],
  ['clusters are too many (ntfs)', [[0, ntfs(({ boot }) => boot.writeBigUInt64LE(2n ** 60n, 0x28))]], {}, 'its superblock makes no sense'],
  ['sectors are absurd (ntfs)', [[0, ntfs(({ boot }) => boot.writeUInt16LE(7, 0x0b))]], {}, 'its superblock makes no sense'],
  ['records are torn (ntfs)', [[0, ntfs(({ records }) => records[2]!.writeUInt16LE(1, 1022))]], {}, 'its own files cannot be read'],
  ['records are missing (ntfs)', [[0, ntfs(({ records }) => records[2]!.fill(0))]], {}, 'its own files cannot be read'],
  ['map is elsewhere (ntfs)', [[0, ntfs(({ records }) => records[2]!.writeUInt32LE(0x90, 0x50))]], {}, 'its own files cannot be read'],
  [
    'map is beyond its end (ntfs)',
    [[0, ntfs(({ records }) => records[2]!.writeUInt16LE(0x7fff, 0x50 + 67))]],
    {},
    'its own files cannot be read',
  ],
  ['map has holes (ntfs)', [[0, ntfs(({ records }) => records[2]!.writeUInt8(0x02, 0x50 + 64))]], {}, 'its own files cannot be read'],
  ['version is unknown (swap)', [[0, swap((bytes) => bytes.writeUInt32LE(2, 1024))]], {}, 'it has an unknown version'],
  ['signature is that of a saved system', [[0, swap((bytes) => bytes.write('S1SUSPEND\0', 4086))]], {}, 'no file system that is known'],
  [
    'signature is not the only one',
    [
      [0, ext()],
      [512, Buffer.from('LABELONE')],
    ],
    {},
    'it has no file system that is known',
  ],
  ['name is known, and no more', [[0, Buffer.from('LUKS\xba\xbe', 'latin1')]], {}, 'blocks of this kind are read whole'],
])('reads all blocks of a file system whose %s', async (_, pieces, answers, reason) => {
  const { partitions, free } = await found(await disk(...pieces), answers);
  expect(partitions).toMatchObject([{ blocks: 'all', left_out: 0, reason: expect.stringContaining(reason) as unknown }]);
  expect(free).toEqual([]);
});

/** A partition table of an MBR. */
function mbr(...rows: readonly (readonly [start: number, size: number])[]): Buffer {
  const sector = Buffer.alloc(512);
  rows.forEach(([start, size], at) => {
    sector[446 + 16 * at + 4] = 0x83;
    sector.writeUInt32LE(start / 512, 446 + 16 * at + 8);
    sector.writeUInt32LE(size / 512, 446 + 16 * at + 12);
  });
  sector.writeUInt16LE(0xaa55, 510);
  return sector;
}
const small = (block: Buffer): void => {
  block.writeUInt32LE((30 * MiB) / 4096, 0x04);
  block.writeUInt32LE((20 * MiB) / 4096, 0x0c);
};
const SMALL_LIST = list([4 * MiB, '+'], [20 * MiB, '?'], [6 * MiB, '+']);

it('reads partitions of other kinds, and gaps, whole', async () => {
  const device = await disk([0, mbr([MiB, 30 * MiB], [32 * MiB, 8 * MiB])], [MiB, ext(small)]);
  const { partitions, free } = await found(device, { list: SMALL_LIST });
  expect(partitions).toMatchObject([
    { number: 1, blocks: 'used', left_out: 20 * MiB },
    { number: 2, blocks: 'all', file_system: null },
  ]);
  expect(free).toEqual([{ start: 5 * MiB, end: 25 * MiB }]);
});

it('reads partitions whole that overlap', async () => {
  const device = await disk([0, mbr([MiB, 30 * MiB], [20 * MiB, 8 * MiB])], [MiB, ext(small)]);
  const { partitions, free } = await found(device, { list: SMALL_LIST });
  expect(partitions).toMatchObject([{ blocks: 'all', reason: 'it overlaps another partition' }, { blocks: 'all' }]);
  expect(free).toEqual([]);
});

it('reads zeros in place of free ranges, and nothing else', async () => {
  const device = await disk([0, Buffer.alloc(SIZE, 1)]);
  const free = freeIn(LIST, SIZE);
  const saved = withoutFree(device, free);
  const expected = Buffer.alloc(SIZE, 1);
  for (const { start, end } of free) expected.fill(0, start, end);
  const room = Buffer.alloc(MiB, 7);
  for (const [position, length] of [
    [0, MiB],
    [4 * MiB - 100, 300],
    [6 * MiB, MiB],
    [24 * MiB - 1, 2],
    [3 * MiB, 30 * MiB],
    [SIZE - 10, 100],
  ] as const) {
    const bytes = await saved.read(position, length, room);
    expect(bytes.equals(expected.subarray(position, position + length))).toBe(true);
  }
  expect(isFull(room.subarray(MiB - 1), 0) || isFull(room.subarray(MiB - 1), 1)).toBe(true);
});
