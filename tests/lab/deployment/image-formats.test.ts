/** A machine in QEMU whose agent writes images of other programs, compressed ones among them: the disk has the bytes of the source. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { diskFile, type DiskMachine, DISKS, PATIENCE, startDiskMachine, startImageApi } from '../disks/disk-machine';

const MIB = 2 ** 20;
let folder: string;
let machine: DiskMachine | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'image-formats-'));
});
afterAll(async () => {
  await machine?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A disk of 48 MiB: an MBR with one partition, noise and text between zeros. */
function disk(): Buffer {
  const bytes = Buffer.alloc(48 * MIB);
  bytes[450] = 0x83;
  bytes.writeUInt32LE(2048, 454);
  bytes.writeUInt32LE(20_000, 458);
  bytes.writeUInt16LE(0xaa55, 510);
  randomBytes(5 * MIB).copy(bytes, 2 * MIB);
  bytes.fill('text ', 20 * MIB, 30 * MIB + 512);
  return bytes;
}
type Image = readonly [name: string, convert: readonly string[], packer: readonly string[] | null, declared: string | null];
const IMAGES: readonly Image[] = [
  ['qcow2.xz', ['-O', 'qcow2'], ['xz', '-1'], 'qcow2'],
  ['raw.zst', ['-O', 'raw'], ['zstd', '-q', '-1'], 'raw'],
  ['raw.gz', ['-O', 'raw'], ['gzip', '-1'], null],
  ['stream.vmdk', ['-O', 'vmdk', '-o', 'subformat=streamOptimized'], null, 'vmdk'],
  ['dynamic.vhdx', ['-O', 'vhdx'], null, null],
  ['fixed.vhd', ['-O', 'vpc', '-o', 'subformat=fixed,force_size=on'], null, 'vhd'],
];

it(
  'the agent in the machine writes each image',
  async () => {
    await buildRamdisk();
    const bytes = disk();
    writeFileSync(join(folder, 'source'), bytes);
    const images: Record<string, Buffer> = {};
    for (const [name, convert, packer] of IMAGES) {
      const path = join(folder, name);
      execFileSync('qemu-img', ['convert', '-f', 'raw', ...convert, join(folder, 'source'), path]);
      images[name] = packer ? execFileSync(packer[0]!, [...packer.slice(1), '-c', path], { maxBuffer: 2 ** 28 }) : readFileSync(path);
    }
    images['liar'] = images['stream.vmdk']!;
    const api = await startImageApi(images, { permitted_image_formats: ['raw', 'gpt', 'qcow2', 'iso', 'vmdk', 'vhd', 'vhdx'] });
    const initrd = join(root, '.cache/ramdisk/initrd');
    const disks = { vda: DISKS['vda']! };
    machine = await startDiskMachine(api, { folder, initrd, memoryMiB: 768, words: [], more: [], prepare: () => {}, disks });
    await machine.waitFor('/v1/heartbeat/u');
    const written = async (name: string, declared: string | null) =>
      machine!.command('standby.prepare_image', {
        image_info: {
          id: name,
          urls: [`${machine!.url}/images/${name}`],
          disk_format: declared,
          os_hash_algo: 'sha256',
          os_hash_value: createHash('sha256').update(images[name]!).digest('hex'),
        },
      });
    const file = openSync(diskFile(folder, 'vda'), 'r');
    for (const [name, , , declared] of IMAGES) {
      expect([name, await written(name, declared)]).toEqual([name, expect.objectContaining({ command_status: 'SUCCEEDED' })]);
      const found = Buffer.alloc(bytes.length);
      readSync(file, found, 0, found.length, 0);
      expect([name, found.equals(bytes)]).toEqual([name, true]);
    }
    expect(JSON.stringify(await written('liar', 'raw'))).toContain('Expected format was raw, but image was actually vmdk');
  },
  PATIENCE * 1000,
);
