import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLog } from '../../model/log';
import { clustersOf } from '../../ramdisk-agent/disk/clusters';
import { compressionFor, type Compression } from '../../ramdisk-agent/disk/compression';
import { openDevice } from '../../ramdisk-agent/disk/device';
import { alignedBuffer, ALIGNMENT } from '../../ramdisk-agent/system/aligned';
import { openZstd } from '../../ramdisk-agent/system/zstd';
import { folder } from './support';

const MiB = 2 ** 20;
const { signal } = new AbortController();

/** A compression that tells each haste, and ends when it is released. */
function heldCompression() {
  const hastes: number[] = [];
  const held: (() => void)[] = [];
  let isHeld = true;
  const compression: Compression = {
    name: 'zstd',
    type: 1,
    async compress(_cluster, _room, haste) {
      hastes.push(haste);
      if (isHeld) await new Promise<void>((release) => held.push(release));
      return undefined;
    },
  };
  const release = (): void => {
    isHeld = false;
    held.forEach((one) => one());
  };
  return { compression, hastes, release };
}
const disk = { path: 'disk', size: 32 * MiB, read: async (_: number, length: number) => Buffer.alloc(length, 'x') };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

it.each([
  [true, 1],
  [false, 0],
])('hurries while compression keeps the disk waiting (keepsUp: %s)', async (keepsUp, most) => {
  const { compression, hastes, release } = heldCompression();
  const clusters = clustersOf(disk, { clusterSize: MiB, compression, keepsUp, signal });
  const first = clusters.next();
  await settled();
  // The first batches find nothing before them.
  expect(hastes.slice(0, 3)).toEqual([0, 0, 0]);
  expect(Math.max(...hastes)).toBe(most);
  release();
  await first;
  for await (const group of clusters) expect(group).toHaveLength(1);
});

it('compresses less, and faster, in haste; the bytes are the same after it', async () => {
  const compression = await compressionFor(silentLog);
  const zstd = (await openZstd())!;
  const lines = Array.from({ length: 30_000 }, (_, at) => `line ${at} of ${(at * 7919) % 10_007} tells ${(at * 31) % 997}\n`);
  const cluster = Buffer.from(lines.join('')).subarray(0, MiB);
  const sizes: number[] = [];
  for (const haste of [0, 0.25, 0.5, 1]) {
    const small = (await compression.compress(cluster, Buffer.alloc(cluster.length), haste))!;
    const back = Buffer.alloc(cluster.length);
    zstd.decompress(small, back);
    expect(back.equals(cluster)).toBe(true);
    sizes.push(small.length);
  }
  expect(sizes).toEqual([...sizes].sort((left, right) => left - right));
  expect(new Set(sizes).size).toBe(4);
});

it('does not try what does not shrink, and tries what shrinks in a part', async () => {
  const compression = await compressionFor(silentLog);
  const noise = randomBytes(MiB);
  expect(await compression.compress(noise, Buffer.alloc(MiB), 0)).toBeUndefined();
  const half = Buffer.concat([noise.subarray(0, MiB / 2), Buffer.alloc(MiB / 2, 'text ')]);
  expect((await compression.compress(half, Buffer.alloc(MiB), 0))!.length).toBeLessThan(0.6 * MiB);
});

it('reads the same into aligned memory and into other memory', async () => {
  const path = join(folder(), 'disk');
  const content = randomBytes(2 * MiB + 512);
  await writeFile(path, content);
  const device = await openDevice({ path, size: content.length, sectorSize: 512, mode: 'read' });
  const aligned = await alignedBuffer(MiB);
  expect(aligned).toHaveLength(MiB);
  const rooms = [aligned, aligned.subarray(0, MiB - 16), Buffer.alloc(MiB + ALIGNMENT).subarray(1)];
  for (const room of rooms)
    for (const position of [0, 512, MiB, 2 * MiB - 4096, 2 * MiB]) {
      const bytes = await device.read(position, room.length, room);
      expect(bytes.equals(content.subarray(position, position + room.length))).toBe(true);
    }
  await device.close();
});
