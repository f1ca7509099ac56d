import { randomBytes } from 'node:crypto';
import type { Sink } from '../../ramdisk-agent/disk/image';
import { qcow2Writer } from '../../ramdisk-agent/formats/qcow2';
import { openZstd } from '../../ramdisk-agent/system/zstd';
import { CLUSTER, header, type Part, qcow2 } from './qcow2-builder';
import { isFull } from './support';

/** A sink that is full of other bytes at first, so that unwritten parts are seen. */
function memory(size: number): Sink & { readonly bytes: Buffer } {
  const bytes = Buffer.alloc(size, 0xaa);
  return {
    size,
    bytes,
    write: async (content, position) => bytes.set(content, position),
    async zero(position, length) {
      bytes.fill(0, position, position + length);
    },
  };
}
/** Answers how many passes it took. */
async function write(file: Buffer, sink: Sink, chunk: number): Promise<number> {
  const writer = qcow2Writer(sink);
  for (let passes = 1; ; passes++) {
    for (let at = 0; at < file.length; at += chunk) await writer.take(file.subarray(at, at + chunk));
    if ((await writer.end()) === 'done') return passes;
  }
}

const random = randomBytes(CLUSTER);
const guest = {
  clusters: { 0: 1, 1: random, 5: 5, 511: 6, 512: 7, 1500: random, 1501: Buffer.from('text '.repeat(2000).slice(0, CLUSTER)) },
  compressed: [1, 511, 1501],
  zeroed: [5],
  size: 2000 * CLUSTER - 512,
};
function expected(): Buffer {
  const bytes = Buffer.alloc(guest.size);
  bytes.fill(1, 0, CLUSTER);
  random.copy(bytes, CLUSTER);
  bytes.fill(6, 511 * CLUSTER, 512 * CLUSTER);
  bytes.fill(7, 512 * CLUSTER, 513 * CLUSTER);
  random.copy(bytes, 1500 * CLUSTER);
  bytes.write('text '.repeat(2000).slice(0, CLUSTER), 1501 * CLUSTER);
  return bytes;
}

const orders: readonly (readonly [readonly Part[], number])[] = [
  [['l1', 'l2', 'data'], 1],
  [['l1', 'data', 'l2'], 2],
  [['l2', 'l1', 'data'], 2],
  [['data', 'l1', 'l2'], 2],
  [['data', 'l2', 'l1'], 3],
  [['l2', 'data', 'l1'], 2],
];
describe.each(orders)('qcow2 file in the order %s', (order, passes) => {
  it.each([1000, 4096, 100_000, 10_000_000])('is written correctly from chunks of %s bytes', async (chunk) => {
    const sink = memory(guest.size + 1024);
    // A large chunk contains the whole file: one pass is enough.
    expect(await write(qcow2({ ...guest, order }), sink, chunk)).toBe(chunk > 10_000 ? 1 : passes);
    expect(sink.bytes.subarray(0, guest.size).equals(expected())).toBe(true);
    expect(isFull(sink.bytes.subarray(guest.size), 0xaa)).toBe(true);
  });
});

it('an empty image is written as zeros', async () => {
  const sink = memory(10 * CLUSTER);
  expect(await write(qcow2({ clusters: {}, size: 3 * CLUSTER }), sink, 1000)).toBe(1);
  expect(isFull(sink.bytes.subarray(0, 3 * CLUSTER), 0)).toBe(true);
});

it('the last cluster is written only up to the size of the image', async () => {
  const sink = memory(CLUSTER + 100);
  await write(qcow2({ clusters: { 0: 1, 1: 2 }, size: CLUSTER + 100 }), sink, 4096);
  expect(sink.bytes[CLUSTER + 99]).toBe(2);
});

const altered = (change: (bytes: Buffer) => void): Buffer => {
  const file = qcow2({ clusters: { 0: 1, 1: 2 }, compressed: [1], size: 4 * CLUSTER });
  change(file);
  return file;
};
/** The first cluster of a file stands at `CLUSTER`: there is room for a longer header. */
function withMethod(method: number, file = altered(() => {})): Buffer {
  file.writeUInt32BE(8, 76);
  file.writeUInt32BE(112, 100);
  file.writeUInt8(method, 104);
  return file;
}
it.each<[string, Buffer, RegExp]>([
  [
    'larger than the disk',
    qcow2({ clusters: { 0: 1 }, size: 20 * CLUSTER }),
    /the image of 81920 bytes is larger than the disk of 40960 bytes/,
  ],
  ['not qcow2', altered((bytes) => bytes.write('XXXX')), /not a qcow2 image/],
  ['version 1', altered((bytes) => bytes.writeUInt32BE(1, 4)), /version 1 is not supported/],
  ['backed by another file', altered((bytes) => bytes.writeBigUInt64BE(512n, 8)), /has a backing file/],
  ['encrypted', altered((bytes) => bytes.writeUInt32BE(1, 32)), /encrypted/],
  ['with external data', altered((bytes) => bytes.writeUInt32BE(4, 76)), /external data file/],
  ['compressed in an unknown way', altered((bytes) => bytes.writeUInt32BE(8, 76)), /an unknown compression/],
  ['compressed with a method of a later version', withMethod(2), /an unknown compression/],
  ['compressed with zlib, and says zstd', withMethod(1), /the image is damaged: a compressed cluster cannot be read/],
  ['with extended tables', altered((bytes) => bytes.writeUInt32BE(16, 76)), /extended tables/],
  ['corrupt', altered((bytes) => bytes.writeUInt32BE(2, 76)), /marked as corrupt/],
  ['with unknown features', altered((bytes) => bytes.writeUInt32BE(32, 76)), /unknown features/],
  ['with an invalid cluster size', altered((bytes) => bytes.writeUInt32BE(40, 20)), /header makes no sense/],
  ['with an invalid table size', altered((bytes) => bytes.writeUInt32BE(0xffffffff, 36)), /header makes no sense/],
  ['with a table that is too short', altered((bytes) => bytes.writeBigUInt64BE(2n ** 40n, 24)), /first table is too short/],
  ['truncated', qcow2({ clusters: { 0: 1 }, size: CLUSTER }).subarray(0, 2 * CLUSTER), /points beyond its end/],
  ['only a header', header(CLUSTER, 1, 2 ** 40), /points beyond its end/],
  ['empty', Buffer.alloc(0), /points beyond its end/],
  ['with a broken cluster', altered((bytes) => bytes.fill(0xff, bytes.length - 20)), /the image is damaged: a compressed cluster/],
])('qcow2Writer rejects a file that is %s', async (_, file, reason) => {
  await expect(write(file, memory(10 * CLUSTER), 4096)).rejects.toThrow(reason);
});

describe('a file that is compressed with zstd', () => {
  const frame = async (content: Buffer): Promise<Buffer> => {
    const zstd = (await openZstd())!;
    const room = Buffer.alloc(content.length + 1000);
    return room.subarray(0, await zstd.compress(content, room, 1));
  };
  const written = async (cluster: Buffer): Promise<Buffer> => {
    const sink = memory(2 * CLUSTER);
    await write(withMethod(1, qcow2({ clusters: { 1: cluster }, compressed: [1], size: 2 * CLUSTER, packed: true })), sink, 4096);
    return sink.bytes.subarray(CLUSTER);
  };
  const half = Buffer.alloc(CLUSTER / 2, 'text');
  const whole = Buffer.concat([half, half]);

  it.each<[string, () => Promise<Buffer>]>([
    ['one frame', () => frame(whole)],
    ['two frames', async () => Buffer.concat([await frame(half), await frame(half)])],
    ['other bytes after the frame', async () => Buffer.concat([await frame(whole), random.subarray(0, 300)])],
  ])('is written from %s', async (_, cluster) => {
    expect((await written(await cluster())).equals(whole)).toBe(true);
  });

  it.each<[string, () => Promise<Buffer>]>([
    ['less than a cluster', () => frame(half)],
    ['more than a cluster', () => frame(Buffer.alloc(CLUSTER + 1))],
    ['a thousand times as much', () => frame(Buffer.alloc(1000 * CLUSTER))],
    ['many empty frames', async () => Buffer.concat(await Promise.all(Array.from({ length: 400 }, () => frame(Buffer.alloc(0)))))],
    ['noise', async () => random.subarray(0, 1000)],
    [
      'a damaged frame',
      async () => {
        const bytes = await frame(random);
        return bytes.fill(0xff, 6, 20);
      },
    ],
  ])('is refused with %s', async (_, cluster) => {
    await expect(written(await cluster())).rejects.toThrow('the image is damaged: a compressed cluster cannot be read');
  });
});

it('qcow2Writer reads a first table that points at itself once as each kind of table, and once as a cluster', async () => {
  const file = qcow2({ clusters: { 0: 1 }, size: 4 * CLUSTER });
  file.writeBigUInt64BE(BigInt(CLUSTER), CLUSTER);
  const sink = memory(10 * CLUSTER);
  expect(await write(file, sink, 1000)).toBe(1);
  expect(sink.bytes.subarray(0, CLUSTER).equals(file.subarray(CLUSTER, 2 * CLUSTER))).toBe(true);
  expect(isFull(sink.bytes.subarray(CLUSTER, 4 * CLUSTER), 0)).toBe(true);
  expect(isFull(sink.bytes.subarray(4 * CLUSTER), 0xaa)).toBe(true);
});
