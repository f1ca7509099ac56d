/** What the agent writes on disks, compared with the standard programs: qemu-img, sgdisk, sfdisk, blkid, genisoimage. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createReadStream, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeConfigDrive } from '../../../ramdisk-agent/disk/configdrive';
import { type Device, openDevice } from '../../../ramdisk-agent/disk/device';
import { addAtEnd, readPartitions, repairGpt } from '../../../ramdisk-agent/disk/partitions';
import { qcow2Writer } from '../../../ramdisk-agent/formats/qcow2';

const run = promisify(execFile);
const MiB = 2 ** 20;
const GUID = '99999999-8888-4777-a666-555555555555';
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'disks-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
async function disk<T>(mib: number, prepare: (path: string) => Promise<unknown>, work: (device: Device) => Promise<T>): Promise<T> {
  const path = join(folder, `disk-${++count}`);
  writeFileSync(path, '');
  truncateSync(path, mib * MiB);
  await prepare(path);
  const device = await openDevice({ path, size: mib * MiB, sectorSize: 512, mode: 'write' });
  try {
    return await work(device);
  } finally {
    await device.close();
  }
}
interface Sfdisk {
  readonly label: string;
  readonly partitions: readonly {
    readonly node: string;
    readonly start: number;
    readonly size: number;
    readonly type: string;
    readonly name?: string;
  }[];
}
const sfdisk = async (path: string): Promise<Sfdisk> =>
  (JSON.parse((await run('sfdisk', ['--json', path])).stdout) as { partitiontable: Sfdisk }).partitiontable;
/** Our partitions in sfdisk's unit: sectors of 512 bytes. */
const inSectors = (table: Awaited<ReturnType<typeof readPartitions>>): readonly (readonly [number, number])[] =>
  table!.partitions.map(({ start, size }) => [start / 512, size / 512]);

const gpt = (path: string): Promise<unknown> =>
  run('sgdisk', ['-n', '1:2048:+4M', '-t', '1:ef00', '-c', '1:EFI', '-n', '2:0:+20M', '-c', '2:root', path]);

it('sgdisk finds no problem in a GPT of a smaller disk after repairGpt', async () => {
  await disk(
    100,
    async (path) => {
      truncateSync(path, 40 * MiB);
      await gpt(path);
      truncateSync(path, 100 * MiB);
      expect((await run('sgdisk', ['-v', path])).stdout).not.toContain('No problems found');
    },
    async (device) => {
      await repairGpt(device);
      expect((await run('sgdisk', ['-v', device.path])).stdout).toContain('No problems found');
      expect(inSectors(await readPartitions(device))).toEqual(
        (await sfdisk(device.path)).partitions.map(({ start, size }) => [start, size]),
      );
    },
  );
});

it('sgdisk and sfdisk accept a partition that the agent added to a GPT', async () => {
  await disk(100, gpt, async (device) => {
    const added = await addAtEnd(device, 64 * MiB, MiB, GUID);
    expect((await run('sgdisk', ['-v', device.path])).stdout).toContain('No problems found');
    expect((await run('sgdisk', ['-i', String(added.number), device.path])).stdout).toContain(
      `Partition unique GUID: ${GUID.toUpperCase()}`,
    );
    const seen = await sfdisk(device.path);
    expect(seen.partitions[2]).toMatchObject({ start: added.start / 512, size: added.size / 512, name: 'config-2' });
    expect(inSectors(await readPartitions(device))).toEqual(seen.partitions.map(({ start, size }) => [start, size]));
  });
});

it('the agent reads an MBR with logical partitions as sfdisk does, and adds a partition', async () => {
  const script = [
    'label: dos',
    'start=2048, size=8192, type=ef, bootable',
    'start=12288, size=40960, type=5',
    '/dev/x5 : start=14336, size=4096, type=83',
    '/dev/x6 : start=20480, size=8192, type=82',
  ].join('\n');
  await disk(
    100,
    async (path) => {
      writeFileSync(`${path}.script`, script);
      await run('sh', ['-c', `sfdisk -q ${path} < ${path}.script`]);
    },
    async (device) => {
      const before = await sfdisk(device.path);
      expect(before.partitions).toHaveLength(4);
      expect(inSectors(await readPartitions(device))).toEqual(before.partitions.map(({ start, size }) => [start, size]));
      const added = await addAtEnd(device, 64 * MiB, MiB, GUID);
      expect((await sfdisk(device.path)).partitions.find(({ start }) => start === added.start / 512)).toMatchObject({
        size: added.size / 512,
        type: 'c',
      });
      expect((await run('sfdisk', ['--verify', device.path])).stdout).toContain('No errors detected');
    },
  );
});

it('blkid finds the label of a config drive that the agent wrote, and a second write uses the same partition', async () => {
  const content = join(folder, 'drive');
  mkdirSync(join(content, 'openstack/latest'), { recursive: true });
  writeFileSync(join(content, 'openstack/latest/meta_data.json'), '{}');
  await run('genisoimage', ['-quiet', '-R', '-V', 'config-2', '-o', `${content}.iso`, content]);
  const iso = createReadStream(`${content}.iso`);
  const parts: Buffer[] = [];
  for await (const part of iso as AsyncIterable<Buffer>) parts.push(part);
  await disk(100, gpt, async (device) => {
    const partition = await writeConfigDrive(device, Buffer.concat(parts), GUID);
    const found = await run('blkid', ['-p', '-O', String(partition.start), '-o', 'export', device.path]);
    expect(found.stdout).toMatch(/LABEL=config-2/);
    // A second write finds the partition by its label, and uses it again.
    expect(await writeConfigDrive(device, Buffer.concat(parts), GUID)).toMatchObject({ number: partition.number });
  });
});

describe('the qcow2 writer', () => {
  let raw: string;
  const SIZE = 48 * MiB + 512;
  beforeAll(async () => {
    raw = join(folder, 'image.raw');
    writeFileSync(raw, '');
    truncateSync(raw, SIZE);
    // Text that compresses well, random bytes that do not, and holes.
    const device = await openDevice({ path: raw, size: SIZE, sectorSize: 512, mode: 'write' });
    await device.write(Buffer.from('all work and no play '.repeat(200_000)), 3 * MiB);
    await device.write(randomBytes(5 * MiB), 20 * MiB + 512);
    await device.write(randomBytes(700), SIZE - 700);
    await device.close();
  });
  const written = async (image: string): Promise<number> =>
    disk(
      60,
      async (path) => writeFileSync(path, Buffer.alloc(60 * MiB, 0xaa)),
      async (device) => {
        const writer = qcow2Writer(device);
        for (let passes = 1; ; passes++) {
          for await (const chunk of createReadStream(image, { highWaterMark: 50_000 }) as AsyncIterable<Buffer>) await writer.take(chunk);
          if ((await writer.end()) === 'again') continue;
          await device.flush();
          await run('cmp', ['-n', String(SIZE), device.path, raw]);
          return passes;
        }
      },
    );
  it.each<[string, readonly string[]]>([
    ['with default options', []],
    ['compressed', ['-c']],
    ['in version 2', ['-o', 'compat=0.10']],
    ['with small clusters', ['-o', 'cluster_size=512']],
    ['with large clusters', ['-o', 'cluster_size=2M']],
    ['with preallocated metadata', ['-o', 'preallocation=metadata']],
    ['with preallocated space', ['-o', 'preallocation=falloc']],
    ['with clusters out of order', ['-W', '-m', '16']],
    ['with lazy reference counts', ['-o', 'lazy_refcounts=on']],
  ])('restores the raw image from a qcow2 image that qemu-img made %s', async (_, options) => {
    const image = join(folder, 'image.qcow2');
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...options, raw, image]);
    expect(await written(image)).toBeLessThanOrEqual(2);
    expect(statSync(image).size).toBeGreaterThan(0);
  });

  it('restores the current contents of an image after random writes, a snapshot, zeroed and discarded clusters', async () => {
    const image = join(folder, 'used.qcow2');
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', image, String(SIZE)]);
    const places = Array.from({ length: 60 }, (_, index) => ((index * 37) % 60) * 800 * 1024);
    const write = (from: number, to: number): Promise<unknown> =>
      run('qemu-io', [image, ...places.slice(from, to).flatMap((place, index) => ['-c', `write -P ${(index % 250) + 1} ${place} 300k`])]);
    await write(0, 40);
    await run('qemu-img', ['snapshot', '-c', 'before', image]);
    await write(20, 60);
    await run('qemu-io', [image, '-c', 'write -z 4M 3M', '-c', 'discard 10M 2M']);
    await run('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', image, raw]);
    expect(await written(image)).toBeLessThanOrEqual(3);
  });
});
