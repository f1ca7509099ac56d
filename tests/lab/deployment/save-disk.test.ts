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
  execFileSync('debugfs', ['-w', '-R', `write ${join(folder, 'random')} random`, disk], { stdio: 'ignore' });
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

it('saves a disk: qemu-img finds no difference and no error', async () => {
  const url = `http://10.0.2.2:${(web.address() as AddressInfo).port}/disk.qcow2`;
  const answer = await save({ url, checksum_url: `${url}.sha256`, root_device: { serial: 'VIRTIO1' } });
  expect(answer).toMatchObject({ command_status: 'SUCCEEDED', command_error: null });
  const image = files.get('/disk.qcow2')!;
  const sum = createHash('sha256').update(image).digest('hex');
  expect(files.get('/disk.qcow2.sha256')!.toString()).toBe(`${sum}  disk.qcow2\n`);
  expect(answer['command_result']).toMatchObject({ service_result: { size: image.length, sha256: sum, disk: '/dev/vda' } });
  const saved = join(folder, 'saved.qcow2');
  writeFileSync(saved, image);
  expect(execFileSync('qemu-img', ['check', saved]).toString()).toContain('No errors');
  expect(execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', diskFile(folder, 'vda'), saved]).toString()).toContain(
    'identical',
  );
  expect(image.length).toBeLessThan(readFileSync(diskFile(folder, 'vda')).length / 4);
});

it('fails with the disk that the hints do not find, before it sends anything', async () => {
  const answer = await save({ url: 'http://10.0.2.2:9/disk.qcow2', root_device: { serial: 'OTHER' } });
  expect(answer).toMatchObject({ command_status: 'FAILED' });
  expect(JSON.stringify(answer['command_error'])).toContain('OTHER');
});
