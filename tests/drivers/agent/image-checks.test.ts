/** What is refused of an image before the machine is touched: its size, and its architecture. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { checkArchitecture, checkDiskRoom, checkImageType } from '../../../drivers/agent/image-checks';
import type { JsonObject } from '../../../model/records';
import { vhdx, vmdkStream } from '../../ramdisk-agent/image-builders';
import { header, qcow2 } from '../../ramdisk-agent/qcow2-builder';
import { NODE_UUID, nodeRecord, testTask } from '../../support/task';

const GIB = 2 ** 30;
const DISK = Buffer.alloc(2 ** 20);
DISK[450] = 0x83;
DISK.writeUInt32LE(2048, 454);
DISK.writeUInt32LE(1, 458);
DISK.writeUInt16LE(0xaa55, 510);
const ROOT = Buffer.alloc(2 ** 20);
ROOT.write('XFSB');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'image-checks-'));
  writeFileSync(join(folder, 'raw'), DISK);
  truncateSync(join(folder, 'raw'), 3 * GIB);
  const files = {
    qcow2: Buffer.concat([header(3 * GIB, 1, 4096), Buffer.alloc(8192)]),
    vmdk: vmdkStream(DISK),
    vhdx: vhdx(DISK),
    root: ROOT,
    'root.gz': gzipSync(ROOT),
    'root.qcow2': qcow2({ clusters: { 0: ROOT.subarray(0, 4096) }, compressed: [0], size: 8192 }),
    'disk.qcow2': qcow2({ clusters: { 0: DISK.subarray(0, 4096) }, size: 8192 }),
  };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, 'gz'), gzipSync(DISK));
});
afterAll(() => rmSync(folder, { recursive: true }));

const taskWith = (properties: JsonObject, info: JsonObject, more: object = {}) => {
  const options = {
    'conductor.file_url_allowed_paths': [folder],
    'conductor.permitted_image_formats': ['raw', 'qcow2', 'vmdk', 'vhdx'],
    ...more,
  };
  return testTask({ node: { properties, instance_info: info }, options }).task;
};
const sourceOf = (file: string) => ({ kind: 'file', path: join(folder, file) }) as const;
const check = (file: string, properties: JsonObject, info: JsonObject, stored: number | null = null) =>
  checkDiskRoom(taskWith(properties, info), sourceOf(file), info, stored);
const partition = (root_mb: number): JsonObject => ({ image_type: 'partition', root_mb });

it.each<[string, JsonObject, JsonObject]>([
  ['raw', {}, {}],
  // Inspection leaves out one GiB.
  ['raw', { local_gb: 2 }, {}],
  ['raw', { local_gb: 1 }, { root_device: { size: 100 } }],
  ['raw', {}, partition(3072)],
  ['qcow2', { local_gb: '2' }, {}],
  // Refused by inspectImage.
  ['qcow2', { local_gb: 1 }, { image_disk_format: 'raw' }],
  ['vmdk', {}, partition(1)],
  ['vhdx', {}, partition(1)],
  ['gz', {}, partition(1)],
  ['missing', { local_gb: 1 }, {}],
])('%s on a node with %j and %j is accepted', async (file, properties, info) => {
  await expect(check(file, properties, info)).resolves.toBeUndefined();
});

const onDisk = `The image of image_source does not fit on the disk of node ${NODE_UUID}: it needs 3072 MiB, and properties/local_gb is 1`;
const inRoot = (needed: number, root: number): string =>
  `Root partition is too small for requested image. Image virtual size: ${needed} MB, Root size: ${root} MB`;
it.each<[string, JsonObject, JsonObject, string]>([
  ['raw', { local_gb: 1 }, {}, onDisk],
  ['qcow2', { local_gb: 1 }, { image_disk_format: 'qcow2' }, onDisk],
  ['raw', {}, partition(3071), inRoot(3072, 3071)],
  ['qcow2', { local_gb: 100 }, partition(1024), inRoot(3072, 1024)],
  ['vmdk', {}, partition(0.5), inRoot(1, 0.5)],
  ['vhdx', {}, partition(0.5), inRoot(1, 0.5)],
])('%s on a node with %j and %j is refused', async (file, properties, info, message) => {
  await expect(check(file, properties, info)).rejects.toMatchObject({ status: 400, message });
});
it('the size that Glance tells counts', async () => {
  await expect(check('raw', { local_gb: 3 }, {}, 5 * GIB)).rejects.toThrow(/it needs 5120 MiB/);
});

it.each<[string | null, JsonObject, boolean]>([
  ['x86_64', { hw_architecture: 'x86_64' }, true],
  ['x86_64', { architecture: 'amd64' }, true],
  ['x86_64', { architecture: 'i686' }, true],
  ['aarch64', { architecture: 'ARM64' }, true],
  ['aarch64', {}, true],
  [null, { architecture: 'aarch64' }, true],
  ['x86_64', { hw_architecture: 'aarch64' }, false],
  ['aarch64', { hw_architecture: 'x86_64', architecture: 'aarch64' }, false],
  ['ppc64le', { architecture: 'x86_64' }, false],
  ['riscv64', { architecture: 'riscv64' }, true],
])('a machine with cpu_arch %j and an image with %j: %s', (cpu_arch, image, accepted) => {
  const node = nodeRecord({ uuid: NODE_UUID, properties: cpu_arch === null ? {} : { cpu_arch } });
  const given = (): void => checkArchitecture(node, image as Record<string, string>);
  if (accepted) expect(given).not.toThrow();
  else expect(given).toThrow(/^The image of image_source is for the architecture \w+, and properties\/cpu_arch of node \S+ is \w+\.$/);
});

const asPartition =
  /^The image of image_source does not fit image_type partition: it has a partition table, so .*\. In instance_info, image_type must be whole-disk\.$/;
const asDisk =
  /^The image of image_source does not fit image_type whole-disk: it is a file system \(XFS\) without .*, image_type must be partition, and root_gb must be set\.$/;
it.each<[string, string, RegExp | null]>([
  ['raw', 'whole-disk', null],
  ['raw', 'partition', asPartition],
  ['gz', 'partition', asPartition],
  ['disk.qcow2', 'partition', asPartition],
  ['disk.qcow2', 'whole-disk', null],
  ['root', 'partition', null],
  ['root', 'whole-disk', asDisk],
  ['root.gz', 'whole-disk', asDisk],
  ['root.qcow2', 'whole-disk', asDisk],
  ['root.qcow2', 'partition', null],
  // Nobody knows.
  ['qcow2', 'partition', null],
  ['vhdx', 'partition', null],
  ['missing', 'partition', null],
])('the type of %s: %s', async (file, image_type, refusal) => {
  const given = (more?: object) => checkImageType(taskWith({}, {}, more), sourceOf(file), { image_type });
  if (refusal === null) await expect(given()).resolves.toBeUndefined();
  else await expect(given()).rejects.toMatchObject({ status: 400, message: expect.stringMatching(refusal) as unknown });
  await expect(given({ 'conductor.disable_deep_image_inspection': true })).resolves.toBeUndefined();
});
