/** The agent in QEMU saves a disk that mkfs made. qemu-img compares the image with the disk. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildRamdisk } from '../support/ramdisk';
import { diskFile, DISKS, startDiskMachine, startImageApi, type DiskMachine } from './disk-machine';

jest.setTimeout(1_800_000);
const MiB = 2 ** 20;
let folder: string;
let machine: DiskMachine;
let web: Server;
const files = new Map<string, Buffer>();

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'save-disk-'));
  const disk = diskFile(folder, 'vda');
  writeFileSync(disk, '');
  truncateSync(disk, 96 * MiB);
  writeFileSync(join(folder, 'random'), randomBytes(8 * MiB));
  execFileSync('mkfs.ext4', ['-q', '-F', disk]);
  // The content of a removed file stays on the disk.
  for (const command of [`write ${join(folder, 'random')} random`, `write ${join(folder, 'random')} gone`, 'rm gone'])
    execFileSync('debugfs', ['-w', '-R', command, disk], { stdio: 'ignore' });
  web = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      files.set(request.url!, Buffer.concat(parts));
      response.writeHead(201).end();
    });
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  machine = await startDiskMachine(await startImageApi({}), {
    folder,
    initrd: join(process.cwd(), '.cache/ramdisk/initrd'),
    memoryMiB: 1024,
    words: ['ipa-disk-wait-attempts=1'],
    more: [],
    prepare: () => {},
    disks: { vda: DISKS['vda']! },
  });
  await machine.waitFor('/v1/heartbeat/u');
});
afterAll(async () => {
  await machine?.stop();
  await new Promise((closed) => web.close(closed));
  rmSync(folder, { recursive: true, force: true });
});

const save = (args: object) => {
  const step = { interface: 'deploy', step: 'save_disk', args };
  return machine.command('service.execute_service_step', { step, node: { uuid: 'u', properties: {} }, ports: [] });
};

const WHICH = { serial: 'VIRTIO1' };
const compared = (saved: string): string => {
  const run = () => execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', diskFile(folder, 'vda'), saved]);
  return run().toString();
};
it.each(['all', 'used'])('saves a disk, %s blocks: qemu-img finds no error', async (blocks) => {
  const url = `http://10.0.2.2:${(web.address() as AddressInfo).port}/disk.qcow2`;
  const answer = await save({ url, checksum_url: `${url}.sha256`, root_device: WHICH, blocks });
  expect(answer).toMatchObject({ command_status: 'SUCCEEDED', command_error: null });
  const image = files.get('/disk.qcow2')!;
  const sum = createHash('sha256').update(image).digest('hex');
  expect(files.get('/disk.qcow2.sha256')!.toString()).toBe(`${sum}  disk.qcow2\n`);
  expect(answer['command_result']).toMatchObject({
    service_result: { size: image.length, sha256: sum, disk: '/dev/vda', compression: 'zstd', blocks },
  });
  const saved = join(folder, 'saved.qcow2');
  writeFileSync(saved, image);
  expect(execFileSync('qemu-img', ['check', saved]).toString()).toContain('No errors');
  const partitions = (answer['command_result'] as { readonly service_result: { readonly partitions: unknown } }).service_result.partitions;
  if (blocks === 'all') {
    expect(partitions).toEqual([]);
    expect(compared(saved)).toContain('identical');
    return;
  }
  expect(partitions).toMatchObject([{ number: 0, file_system: 'ext', blocks: 'used', reason: null }]);
  expect(image.length).toBeLessThan(12 * MiB);
  const copy = join(folder, 'copy.raw');
  execFileSync('qemu-img', ['convert', '-O', 'raw', saved, copy]);
  execFileSync('e2fsck', ['-f', '-n', copy], { stdio: 'ignore' });
  execFileSync('debugfs', ['-R', `dump random ${join(folder, 'restored')}`, copy], { stdio: 'ignore' });
  expect(readFileSync(join(folder, 'restored')).equals(readFileSync(join(folder, 'random')))).toBe(true);
});

it('fails with the disk that the hints do not find, before it sends anything', async () => {
  const answer = await save({ url: 'http://10.0.2.2:9/disk.qcow2', root_device: { serial: 'OTHER' } });
  expect(answer).toMatchObject({ command_status: 'FAILED' });
  expect(JSON.stringify(answer['command_error'])).toContain('OTHER');
});
