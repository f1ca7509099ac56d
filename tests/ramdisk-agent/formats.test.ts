/** Images of other programs, written from files that the builders make; tests/lab/deployment/formats.test.ts has those of qemu-img. */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { ImageWriter, Sink } from '../../ramdisk-agent/disk/image';
import { contentOf } from '../../ramdisk-agent/formats/content';
import { writerFor } from '../../ramdisk-agent/formats/writers';
import { unpackHead } from '../../wire/compression/unpack';
import { formatsOf, HEAD_LENGTH } from '../../wire/images/inspection';
import { descriptor, dynamicVhd, fixedVhd, vhdFooter, vhdx, vmdkHeader, vmdkSparse, vmdkStream } from './image-builders';
import { isFull } from './support';

const [KIB, MIB] = [2 ** 10, 2 ** 20];
/** Zeros, noise, zeros up to the end, in a size that no unit divides. */
const DISK = Buffer.alloc(5 * MIB + 3 * 512);
randomBytes(300 * KIB).copy(DISK, 64 * KIB);
randomBytes(MIB).copy(DISK, 3 * MIB + 512);

/** A sink that is full of other bytes at first, so that unwritten parts are seen. */
function memory(size = DISK.length + MIB): Sink & { readonly bytes: Buffer } {
  const bytes = Buffer.alloc(size, 0xaa);
  return {
    size,
    bytes,
    write: async (content, position) => bytes.set(content, position),
    zero: async (position, length) => void bytes.fill(0, position, position + length),
  };
}
async function passesOf(file: Buffer, writer: ImageWriter, chunk: number): Promise<number> {
  for (let passes = 1; ; passes++) {
    for (let at = 0; at < file.length; at += chunk) await writer.take(file.subarray(at, at + chunk));
    if ((await writer.end()) === 'done') return passes;
  }
}
const write = (file: Buffer, sink: Sink, chunk = 64 * KIB, declared: string | null = null): Promise<number> =>
  passesOf(file, writerFor(sink, formatsOf(file.subarray(0, HEAD_LENGTH))[0]!, declared)!, chunk);

describe.each<[what: string, file: Buffer, declared?: string]>([
  ['VMDK streamOptimized', vmdkStream(DISK)],
  ['VMDK monolithicSparse', vmdkSparse(DISK)],
  ['VHDX', vhdx(DISK)],
  ['dynamic VHD', dynamicVhd(DISK)],
  ['fixed VHD', fixedVhd(DISK), 'vhd'],
])('%s', (_, file, given) => {
  const declared = given ?? null;
  it.each([1000, 64 * KIB, 16 * MIB])('is written in one pass from chunks of %d bytes', async (chunk) => {
    const sink = memory();
    expect(await write(file, sink, chunk, declared)).toBe(1);
    expect(sink.bytes.subarray(0, DISK.length).equals(DISK)).toBe(true);
    expect(isFull(sink.bytes.subarray(DISK.length), 0xaa)).toBe(true);
  });
  it('is refused if the disk is smaller, and nothing is written beyond it', async () => {
    const small = memory(DISK.length - 512);
    await expect(write(file, small, 64 * KIB, declared)).rejects.toThrow(/larger than the disk of \d+ bytes/);
  });
  it('is refused if it is cut in its content', async () => {
    await expect(write(file.subarray(0, file.length - 1500 * KIB), memory(), 64 * KIB, declared)).rejects.toThrow(
      declared ? /its footer|it has no footer/ : /./,
    );
  });
});

const changed = (bytes: Buffer, change: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
};
/** Where the first grain of the stream is. */
const FIRST = 128 * 512;
it.each<[string, Buffer, RegExp]>([
  [
    'VMDK whose grains are in another order',
    changed(vmdkStream(DISK), (bytes) => bytes.writeBigUInt64LE(2560n, FIRST)),
    /grains are not in their order/,
  ],
  [
    'VMDK with a grain beyond the disk',
    changed(vmdkStream(DISK), (bytes) => bytes.writeBigUInt64LE(2n ** 40n, FIRST)),
    /grains are not in their order/,
  ],
  ['VMDK with a huge grain', changed(vmdkStream(DISK), (bytes) => bytes.writeUInt32LE(2 ** 31, FIRST + 8)), /a grain makes no sense/],
  ['VMDK with a damaged grain', changed(vmdkStream(DISK), (bytes) => bytes.fill(0xff, FIRST + 20, FIRST + 60)), /a grain cannot be read/],
  [
    'VMDK with another footer',
    changed(vmdkStream(DISK), (bytes) => bytes.writeBigUInt64LE(9n, bytes.length - 1024 + 12)),
    /footer does not match/,
  ],
  ['VMDK with an unknown marker', changed(vmdkStream(DISK), (bytes) => bytes.writeUInt32LE(9, bytes.length - 1536 + 12)), /unknown marker/],
  ['VMDK with a parent', vmdkSparse(DISK, descriptor('monolithicSparse', 1, 'parentFileNameHint="x"')), /it has a parent/],
  ['VHDX of a disk with a parent', vhdx(DISK, { state: 7 }), /it has a parent/],
  ['VHDX with an unknown state', vhdx(DISK, { state: 5 }), /a block has an unknown state/],
  ['VHDX with a log', vhdx(DISK, { log: true }), /log is not empty/],
  ['VHD with too few entries', changed(dynamicVhd(DISK), (bytes) => bytes.writeUInt32BE(1, 512 + 28)), /checksum of its header is wrong/],
  ['VHD with a parent', dynamicVhd(DISK, 4), /it has a parent/],
])('%s is refused', async (_, file, reason) => {
  await expect(write(file, memory())).rejects.toThrow(reason);
});
it('a fixed VHD whose footer names another size is refused', async () => {
  await expect(write(Buffer.concat([DISK, vhdFooter(DISK.length - 512, 2)]), memory(), 64 * KIB, 'vhd')).rejects.toThrow(
    /footer does not match/,
  );
});
describe('tables that would fill the memory', () => {
  const SMALLEST = 8;
  /** A disk of that size that keeps nothing. */
  const empty = (size: number): Sink => ({ size, write: async () => {}, zero: async () => {} });
  it('are refused if a VMDK names one table again and again', async () => {
    const tables = 2 ** 13;
    const sectors = tables * 512 * SMALLEST;
    const text = descriptor('monolithicSparse', sectors);
    const head = vmdkHeader({ text, sectors, isStream: false, directory: 21n, overhead: 21 });
    head.writeBigUInt64LE(BigInt(SMALLEST), 20);
    const [directory, table] = [Buffer.alloc(tables * 4), Buffer.alloc(2048)];
    for (let at = 0; at < directory.length; at += 4) directory.writeUInt32LE(21 + directory.length / 512, at);
    // Backwards, so that no grain continues another.
    for (let at = 0; at < table.length; at += 4) table.writeUInt32LE(100_000 - at * SMALLEST, at);
    await expect(write(Buffer.concat([head, directory, table]), empty(sectors * 512))).rejects.toThrow(/tables of the image do not fit/);
  });
  it('are refused if a qcow2 image has too many', async () => {
    const entries = 2 ** 18 + 1;
    const head = Buffer.alloc(512);
    head.write('QFI\xfb', 'latin1');
    head.writeUInt32BE(2, 4);
    head.writeUInt32BE(9, 20);
    head.writeBigUInt64BE(BigInt(entries * 64 * 512), 24);
    head.writeUInt32BE(entries, 36);
    head.writeBigUInt64BE(512n, 40);
    const table = Buffer.alloc(entries * 8);
    for (let at = 0; at < table.length; at += 8) table.writeBigUInt64BE(2n ** 30n, at);
    await expect(write(Buffer.concat([head, table]), empty(2 ** 40))).rejects.toThrow(/tables of the image do not fit/);
  });
});
it('formats without a writer', () => {
  expect(['vdi', 'qed', 'luks', 'toString'].map((format) => writerFor(memory(), format, null))).toEqual(Array(4).fill(undefined));
});

async function* inChunks(file: Buffer, chunk: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < file.length; at += chunk) yield file.subarray(at, at + chunk);
}
async function unpacked(file: Buffer, chunk: number, more: { allowsZstd?: boolean; most?: number } = {}): Promise<Buffer> {
  const { chunks } = await contentOf(inChunks(file, chunk), { allowsZstd: true, most: 64 * MIB, ...more });
  const parts: Buffer[] = [];
  for await (const part of chunks) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}
/** What `xz -9` and `zstd -19` make of 100 000 times the byte 7. */
const SEVENS = Buffer.alloc(100_000, 7);
const XZ = Buffer.from(
  '/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4YafAFNdAAPv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopNL6MN2X+m44wjEVPgWRjFdYrid/i2lH8MasDedElk4ulcU7IE1rH1lwAAAAC66J1GeY4XKAABb6CNBgAAkORuUbHEZ/sCAAAAAARZWg==',
  'base64',
);
const ZSTD = Buffer.from('KLUv/aSghgEATQAACAcBAJyGORACjCCZhA==', 'base64');
describe('compressed files', () => {
  const content = Buffer.concat([DISK, randomBytes(1000)]);
  it.each([1, 1000, 16 * MIB])('gzip is unpacked from chunks of %d bytes', async (chunk) => {
    const file = gzipSync(chunk === 1 ? content.subarray(0, 70_000) : content);
    expect((await unpacked(file, chunk)).equals(chunk === 1 ? content.subarray(0, 70_000) : content)).toBe(true);
  });
  it.each([
    ['xz', XZ, 1],
    ['two streams of xz with padding', Buffer.concat([XZ, Buffer.alloc(8), XZ, Buffer.alloc(4)]), 2],
    ['zstd', ZSTD, 1],
    ['two frames of zstd', Buffer.concat([ZSTD, ZSTD]), 2],
  ])('%s', async (_, file, times) => {
    for (const chunk of [1, 7, 1000])
      expect((await unpacked(file, chunk)).equals(Buffer.concat(Array.from({ length: times }, () => SEVENS)))).toBe(true);
  });
  it('several gzip members are one file', async () => {
    expect((await unpacked(Buffer.concat([gzipSync(DISK), gzipSync(DISK)]), 64 * KIB)).length).toBe(2 * DISK.length);
  });
  it('what is not compressed stays as it is, however it arrives', async () => {
    for (const chunk of [1, 5, 1000])
      expect((await unpacked(content.subarray(0, 2000), chunk)).equals(content.subarray(0, 2000))).toBe(true);
    expect(await unpacked(Buffer.alloc(0), 1)).toEqual(Buffer.alloc(0));
  });
  it.each<[string, Buffer]>([
    ['a cut gzip file', gzipSync(DISK).subarray(0, 100_000)],
    ['a damaged gzip file', changed(gzipSync(DISK), (bytes) => bytes.fill(0xff, 1000, 2000))],
    ['a cut xz file', XZ.subarray(0, 30)],
    ['a damaged xz file', changed(XZ, (bytes) => bytes.fill(0xff, 14, 30))],
    ['a damaged zstd file', Buffer.concat([Buffer.from('28b52ffd', 'hex'), Buffer.alloc(100, 0xff)])],
    ['a cut zstd file', Buffer.from('28b52ffd0458', 'hex')],
  ])('%s is a failed download, which is repeated', async (_, file) => {
    await expect(unpacked(file, 1000)).rejects.toMatchObject({ type: 'ImageDownloadError' });
  });
  it('a bomb is refused when it unpacks to more than its bound', async () => {
    const bomb = gzipSync(Buffer.alloc(32 * MIB));
    await expect(unpacked(bomb, 64 * KIB, { most: MIB })).rejects.toMatchObject({
      type: 'InvalidImage',
      message: expect.stringMatching(/unpacks to more than 1048576 bytes/) as string,
    });
  });
  it('zstd is refused where the operator says so', async () => {
    await expect(unpacked(Buffer.from('28b52ffd0458', 'hex'), 100, { allowsZstd: false })).rejects.toThrow(
      /disable_zstandard_decompression/,
    );
  });
  it('an error of the download stays what it is', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield gzipSync(DISK).subarray(0, 1000);
      throw new Error('the connection broke');
    }
    const { chunks } = await contentOf(broken(), { allowsZstd: true, most: MIB });
    await expect(
      (async () => {
        for await (const chunk of chunks) expect(chunk.length).toBeGreaterThan(0);
      })(),
    ).rejects.toThrow(/the connection broke/);
  });
  it('the head of a file is unpacked as far as it is there', async () => {
    const file = gzipSync(content);
    expect((await unpackHead(file.subarray(0, 1000), 'gzip', 5000)).equals(content.subarray(0, 5000))).toBe(true);
    expect((await unpackHead(Buffer.from('1f8b08', 'hex'), 'gzip', 5000)).length).toBe(0);
  });
});
