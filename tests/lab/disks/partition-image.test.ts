/**
 * Partition images by the agent in its ramdisk: systems that boot by BIOS, by UEFI and by UEFI with Secure Boot, and an ephemeral partition that
 * a rebuild preserves.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, readSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { firmwareArguments, type Firmware, makeConfigDrive, type Reports, startReports } from './direct-boot';
import { diskFile, type DiskMachine, startDiskMachine, startImageApi } from './disk-machine';

jest.setTimeout(3_600_000);
const [MiB, GiB] = [2 ** 20, 2 ** 30];
const DISK = { vda: ['virtio-blk-pci,drive=vda,serial=DISK-a'] };
/** What the image has of boot loaders (demo/lab/image.sh) → its file. */
const KINDS = { packaged: 'packaged.qcow2', folder: 'folder.raw', bls: 'bls.raw', bare: 'bare.raw', signed: 'signed.raw' } as const;
type Kind = keyof typeof KINDS;
let folder: string;
let configDrive: string;
let reports: Reports;
let images: Readonly<Record<string, Buffer>>;

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'partition-image-'));
  reports = await startReports();
  for (const [kind, file] of Object.entries(KINDS)) {
    const env = { ...process.env, PARTITION: kind };
    await promisify(execFile)('bash', [join(root, 'demo/lab/image.sh'), join(folder, file), reports.url, kind], { env });
  }
  images = Object.fromEntries(Object.values(KINDS).map((file) => [file, readFileSync(join(folder, file))]));
  configDrive = makeConfigDrive(folder);
}, 1_000_000);
afterAll(async () => {
  await reports.close();
  rmSync(folder, { recursive: true, force: true });
});

const started: DiskMachine[] = [];
/** A test that fails leaves its machine. */
afterEach(async () => {
  for (const machine of started.splice(0)) await machine.stop().catch(() => undefined);
});

interface Given {
  readonly firmware: Firmware;
  readonly label: 'gpt' | 'msdos';
  readonly kind: Kind;
  readonly sizes?: JsonObject;
  /** Sizes of an attempt before, which the agent has to refuse. */
  readonly refused?: JsonObject;
  /** Called after that attempt. */
  readonly afterRefusal?: () => void;
}
interface Deployed {
  readonly written: JsonObject;
  readonly uuids: JsonObject;
  readonly installed: JsonObject | undefined;
}
/** Boots the ramdisk, has it write the image, and install the boot loader, with what a conductor sends. */
async function deploy(place: string, { firmware, label, kind, sizes = {}, refused, afterRefusal }: Given): Promise<Deployed> {
  const machine = await startDiskMachine(await startImageApi(images), {
    folder: place,
    initrd: join(root, '.cache/ramdisk/initrd'),
    memoryMiB: 1024,
    words: ['ipa-disk-wait-attempts=1'],
    more: firmwareArguments(firmware, place),
    prepare: () => {},
    disks: DISK,
  });
  started.push(machine);
  await machine.waitFor('/v1/heartbeat/u');
  const file = KINDS[kind];
  const image = {
    id: kind,
    urls: [`${machine.url}/images/${file}`],
    disk_format: file.endsWith('.raw') ? 'raw' : 'qcow2',
    os_hash_algo: 'sha256',
    os_hash_value: createHash('sha256').update(images[file]!).digest('hex'),
    image_type: 'partition',
    root_mb: 256,
    swap_mb: 32,
    ephemeral_mb: 64,
    ephemeral_format: 'ext4',
    preserve_ephemeral: false,
    boot_option: 'local',
    deploy_boot_mode: firmware,
  };
  const write = (more: JsonObject) =>
    machine.command('deploy.execute_deploy_step', {
      step: { step: 'write_image', interface: 'deploy', args: { image_info: { ...image, ...more }, configdrive: configDrive } },
      node: { uuid: 'u', properties: { capabilities: `boot_mode:${firmware},disk_label:${label}` }, driver_internal_info: {} },
      ports: [],
    });
  if (refused) {
    expect(await write(refused)).toMatchObject({ command_status: 'FAILED', command_error: { type: 'DeploymentError' } });
    afterRefusal?.();
  }
  const written = await write(sizes);
  const uuids = ((await machine.command('standby.get_partition_uuids', {}))['command_result'] ?? {}) as JsonObject;
  const install = () =>
    machine.command('image.install_bootloader', {
      root_uuid: uuids['root uuid'] ?? null,
      efi_system_part_uuid: uuids['efi system partition uuid'] ?? null,
      prep_boot_part_uuid: null,
      target_boot_mode: firmware,
    });
  let installed: JsonObject | undefined;
  if (written['command_status'] === 'SUCCEEDED') {
    installed = await install();
    // A conductor that lost the answer asks again.
    expect(await install()).toMatchObject({ command_status: installed?.['command_status'] });
  }
  const ended = once(machine.process, 'exit');
  await machine.command('standby.power_off', {}).catch(() => undefined);
  await ended;
  await machine.stop();
  execFileSync('sync');
  return { written, uuids, installed };
}

const succeeded = { command_error: null, command_status: 'SUCCEEDED' };
function newPlace(name: string): string {
  const place = mkdtempSync(join(folder, `${name}-`));
  writeFileSync(diskFile(place, 'vda'), '');
  truncateSync(diskFile(place, 'vda'), 4 * GiB);
  return place;
}
/** Of sfdisk: number → start and size in MiB, type, name. */
function tableOf(place: string): readonly (readonly [number, number, string])[] {
  const { partitiontable: table } = JSON.parse(execFileSync('sfdisk', ['--json', diskFile(place, 'vda')], { encoding: 'utf8' })) as {
    partitiontable: { partitions: readonly { start: number; size: number; type: string; name?: string; bootable?: boolean }[] };
  };
  return table.partitions.map(({ start, size, type, name, bootable }) => [
    start / 2048,
    size / 2048,
    name ?? `${type}${bootable ? '*' : ''}`,
  ]);
}
const bytesAt = (place: string, start: number, size: number): Buffer => {
  const bytes = Buffer.alloc(size * MiB);
  const file = openSync(diskFile(place, 'vda'), 'r');
  readSync(file, bytes, 0, bytes.length, start * MiB);
  return bytes;
};
const probed = (place: string, start: number): string =>
  execFileSync('blkid', ['-p', '-O', String(start * MiB), '-o', 'export', diskFile(place, 'vda')], { encoding: 'utf8' });

describe.each<[Firmware, 'gpt' | 'msdos', Kind, Kind, readonly (readonly [number, number, string])[]]>([
  [
    'bios',
    'msdos',
    'packaged',
    'bare',
    [
      [1, 64, '83'],
      [65, 32, '82'],
      [97, 1, '83'],
      [98, 256, '83*'],
    ],
  ],
  [
    'bios',
    'gpt',
    'bare',
    'bls',
    [
      [1, 1, 'bios-boot-part'],
      [2, 64, 'ephemeral0'],
      [66, 32, 'swap1'],
      [98, 1, 'config-2'],
      [99, 256, 'root'],
    ],
  ],
  [
    'uefi',
    'gpt',
    'packaged',
    'folder',
    [
      [1, 550, 'efi-part'],
      [551, 64, 'ephemeral0'],
      [615, 32, 'swap1'],
      [647, 1, 'config-2'],
      [648, 256, 'root'],
    ],
  ],
])('%s, %s: an image %s, and after a rebuild %s', (firmware, label, first, second, table) => {
  let place: string;
  const [ephemeral, swap] = [table.findIndex(([, size]) => size === 64), table.findIndex(([, size]) => size === 32)];
  const startOf = (index: number): number => table[index]![0];
  beforeAll(() => {
    place = newPlace(`${firmware}-${label}`);
  });

  it('the agent makes the partitions, and the system boots', async () => {
    const { written, uuids, installed } = await deploy(place, { firmware, label, kind: first });
    expect(written).toMatchObject(succeeded);
    expect(installed).toMatchObject(succeeded);
    expect(tableOf(place)).toEqual(table);
    expect(probed(place, startOf(ephemeral))).toMatch(/LABEL=ephemeral0[\s\S]*TYPE=ext4/);
    expect(probed(place, startOf(swap))).toMatch(/LABEL=swap1[\s\S]*TYPE=swap/);
    expect(probed(place, startOf(table.length - 1))).toContain(`UUID=${String(uuids['root uuid'])}\n`);
    if (firmware === 'uefi') expect(probed(place, 1)).toContain(`UUID=${String(uuids['efi system partition uuid'])}\n`);
    const report = await reports.boot(firmware, place, { vda: 'virtio-blk-pci,drive=vda' });
    expect(report).toContain(`image=${first}\n`);
    expect(report).toContain(`firmware=${firmware}\n`);
    expect(report).toContain(`root=/dev/vda${table.length}\n`);
    expect(report).toContain(`configdrive=/dev/vda${table.length - 1}\n`);
    expect(report).toContain('file=./openstack/latest/meta_data.json');
    const fstab = Buffer.from(/^fstab=(.*)$/m.exec(report)![1]!, 'base64').toString();
    if (firmware === 'uefi') expect(fstab).toContain(`UUID=${String(uuids['efi system partition uuid'])}\t/boot/efi\tvfat`);
  });

  it('a rebuild preserves the ephemeral partition, and the new system boots', async () => {
    const file = openSync(diskFile(place, 'vda'), 'r+');
    writeSync(file, 'data of the tenant', (startOf(ephemeral) + 40) * MiB);
    const hash = (): string =>
      createHash('sha256')
        .update(bytesAt(place, startOf(ephemeral), 64))
        .digest('hex');
    const before = hash();
    const root = (): string =>
      createHash('sha256')
        .update(bytesAt(place, startOf(table.length - 1), 256))
        .digest('hex');
    const rootBefore = root();
    const { written, installed } = await deploy(place, {
      firmware,
      label,
      kind: second,
      sizes: { preserve_ephemeral: true },
      // Another size: nothing is written.
      refused: { preserve_ephemeral: true, ephemeral_mb: 65 },
      afterRefusal: () => expect([hash(), root()]).toEqual([before, rootBefore]),
    });
    expect(written).toMatchObject(succeeded);
    expect(installed).toMatchObject(succeeded);
    expect(hash()).toBe(before);
    const report = await reports.boot(firmware, place, { vda: 'virtio-blk-pci,drive=vda' });
    expect(report).toContain(`image=${second}\n`);
    expect(report).toContain(`root=/dev/vda${table.length}\n`);
    expect(hash()).toBe(before);
  });
});

it('uefi with Secure Boot, gpt: an image with the packages of signed boot loaders', async () => {
  const place = newPlace('secure');
  const { written, installed } = await deploy(place, { firmware: 'uefi', label: 'gpt', kind: 'signed' });
  expect(written).toMatchObject(succeeded);
  expect(installed).toMatchObject(succeeded);
  const report = await reports.boot('uefi with secure boot', place, { vda: 'virtio-blk-pci,drive=vda' });
  expect(report).toContain('image=signed\n');
  expect(report).toMatch(/^lockdown=.*\[integrity\]/m);
  expect(report).toContain('root=/dev/vda5\n');
});
