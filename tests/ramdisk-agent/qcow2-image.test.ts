import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../model/log';
import { compressionFor, type Compression } from '../../ramdisk-agent/disk/compression';
import { openDevice } from '../../ramdisk-agent/disk/device';
import { imageOf } from '../../ramdisk-agent/disk/qcow2-image';
import { qcow2Writer } from '../../ramdisk-agent/formats/qcow2';

const KiB = 1024;
const MiB = 1024 * KiB;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'image-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function diskWith(size: number, pieces: readonly (readonly [number, Buffer])[]): Promise<string> {
  const path = join(folder, `${randomBytes(4).toString('hex')}.raw`);
  await writeFile(path, '');
  await truncate(path, size);
  const file = await open(path, 'r+');
  for (const [position, bytes] of pieces) await file.write(bytes, 0, bytes.length, position);
  await file.close();
  return path;
}
const making = (compression: Compression, signal = new AbortController().signal) => ({ compression, signal, progress: () => {} });
async function imageFile(
  path: string,
  size: number,
  compression: Compression,
): Promise<{ readonly image: Buffer; readonly announced: number }> {
  const device = await openDevice({ path, size, sectorSize: 512, mode: 'read' });
  try {
    const made = await imageOf(device, making(compression));
    const parts: Buffer[] = [];
    for await (const part of made.content()) parts.push(part);
    return { image: Buffer.concat(parts), announced: made.size };
  } finally {
    await device.close();
  }
}
async function readPart(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  await file.close();
  return buffer.subarray(0, bytesRead);
}
const words = (length: number): Buffer => Buffer.alloc(length, 'what a file system holds, ');

const DISKS: Readonly<Record<string, readonly [size: number, pieces: readonly (readonly [number, Buffer])[]]>> = {
  'an empty disk': [8 * MiB, []],
  'texts, noise and zeros': [
    40 * MiB + 512,
    [
      [0, words(3 * MiB)],
      [5 * MiB + 100, randomBytes(MiB)],
      [17 * MiB, words(700)],
      [40 * MiB, randomBytes(512)],
    ],
  ],
  'several tables': [
    600 * MiB,
    [
      [3 * MiB, randomBytes(200 * KiB)],
      [550 * MiB, words(900 * KiB)],
    ],
  ],
};

const COMPRESSIONS = { zstd: () => compressionFor(silentLog), zlib: () => compressionFor(silentLog, async () => undefined) } as const;
const CASES = Object.entries(DISKS).flatMap(([name, disk]) =>
  Object.entries(COMPRESSIONS).map(([how, open]) => [name, how, disk, open] as const),
);
it.each(CASES)('makes an image that is written back without a difference: %s, %s', async (_, how, [size, pieces], open) => {
  const path = await diskWith(size, pieces);
  const compression = await open();
  expect(compression.name).toBe(how);
  const { image, announced } = await imageFile(path, size, compression);
  expect(image.length).toBe(announced);
  expect(image.length).toBeLessThan(8 * MiB);

  const copy = await diskWith(size, []);
  const target = await openDevice({ path: copy, size, sectorSize: 512, mode: 'write' });
  const writer = qcow2Writer({ size, write: (bytes, at) => target.write(bytes, at), zero: async () => {} });
  await writer.take(image);
  expect(await writer.end()).toBe('done');
  await target.close();
  // The whole of a large disk takes long to compare: nothing but the pieces has content.
  const windows =
    size > 64 * MiB ? pieces.map(([at, { length }]) => [Math.max(0, at - MiB), length + 2 * MiB] as const) : [[0, size] as const];
  for (const [at, length] of windows) {
    const [before, after] = await Promise.all([path, copy].map((name) => readPart(name, at, length)));
    expect(before!.equals(after!)).toBe(true);
  }
});

it('refuses a disk that changes while it is read', async () => {
  const path = await diskWith(8 * MiB, [[0, words(MiB)]]);
  const device = await openDevice({ path, size: 8 * MiB, sectorSize: 512, mode: 'read' });
  const made = await imageOf(device, making(await compressionFor(silentLog)));
  const file = await open(path, 'r+');
  await file.write(randomBytes(KiB), 0, KiB, 4 * MiB);
  await file.close();
  const readAll = async (): Promise<void> => {
    for await (const part of made.content()) expect(part.length).toBeGreaterThan(0);
  };
  await expect(readAll()).rejects.toThrow('has changed while it was read');
  await device.close();
});

it('ends when it is aborted', async () => {
  const path = await diskWith(8 * MiB, []);
  const device = await openDevice({ path, size: 8 * MiB, sectorSize: 512, mode: 'read' });
  await expect(imageOf(device, making(await compressionFor(silentLog), AbortSignal.abort(new Error('stopped'))))).rejects.toThrow(
    'stopped',
  );
  await device.close();
});

it('says that it compresses with zlib where there is no libzstd', async () => {
  const warnings: string[] = [];
  const log = { warn: (text: string) => void warnings.push(text) };
  expect(await compressionFor(log, async () => undefined)).toMatchObject({ name: 'zlib' });
  expect(warnings).toEqual([expect.stringContaining('no libzstd')]);
});
