/**
 * Software RAID by the agent in its ramdisk: arrays of all levels, a system on a mirror that boots from either disk alone, by BIOS and by UEFI,
 * and the removal of what is left of it.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../../model/records';
import { until } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { diskFile, type DiskMachine, PATIENCE, startDiskMachine, startImageApi } from './disk-machine';

jest.setTimeout(3_600_000);
const GiB = 2 ** 30;
const DISKS = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, [`virtio-blk-pci,drive=${name},serial=DISK-${name}`]]));
const MIRROR = [{ serial: 'DISK-a' }, { serial: 'DISK-b' }];
const OVMF = '/usr/share/OVMF/OVMF_CODE_4M.fd';
let folder: string;
let image: Buffer;
let configDrive: string;
let reports: Server;
let reported: string[] = [];

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'software-raid-'));
  reports = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      reported.push(Buffer.concat(parts).toString());
      response.end();
    });
  });
  await new Promise<void>((resolve) => reports.listen(0, '127.0.0.1', resolve));
  const raw = join(folder, 'image.raw');
  const url = `http://10.0.2.2:${(reports.address() as AddressInfo).port}/`;
  const env = { ...process.env, MDADM: join(root, '.cache/mdadm/sbin/mdadm') };
  await promisify(execFile)('bash', [join(root, 'demo/lab/image.sh'), raw, url, 'mirrored'], { env });
  image = readFileSync(raw);
  const content = join(folder, 'drive');
  mkdirSync(join(content, 'openstack/latest'), { recursive: true });
  writeFileSync(join(content, 'openstack/latest/meta_data.json'), '{"uuid":"of the instance"}');
  execFileSync('genisoimage', ['-quiet', '-R', '-V', 'config-2', '-o', `${content}.iso`, content]);
  configDrive = gzipSync(readFileSync(`${content}.iso`)).toString('base64');
}, 1_000_000);
afterAll(async () => {
  reports.closeAllConnections();
  await new Promise((closed) => reports.close(closed));
  rmSync(folder, { recursive: true, force: true });
});

type Firmware = 'uefi' | 'bios';
/** QEMU's arguments for the firmware, which remembers its boot entries. */
function firmwareArguments(firmware: Firmware, place: string): readonly string[] {
  if (firmware === 'bios') return [];
  const file = (path: string, more: string) => ['-drive', `if=pflash,format=raw,file=${path}${more}`];
  return [...file(OVMF, ',readonly=on'), ...file(join(place, 'vars.fd'), '')];
}

interface Ramdisk extends DiskMachine {
  step(kind: 'clean' | 'deploy', step: string, node: JsonObject, args?: JsonObject): Promise<JsonObject>;
  end(): Promise<void>;
}
const bare = (place: string, disks: readonly string[]) => ({
  folder: place,
  initrd: join(root, '.cache/ramdisk/initrd'),
  memoryMiB: 1024,
  words: [],
  more: [],
  prepare: () => {},
  disks: Object.fromEntries(disks.map((name) => [name, DISKS[name]!])),
});
/** A test that fails leaves its machine. */
const started: DiskMachine[] = [];
afterEach(async () => {
  for (const machine of started.splice(0)) await machine.stop().catch(() => undefined);
});
async function ramdisk(firmware: Firmware, place: string, disks: readonly string[]): Promise<Ramdisk> {
  const machine = await startDiskMachine(await startImageApi({ image }), {
    ...bare(place, disks),
    words: ['ipa-disk-wait-attempts=1'],
    more: firmwareArguments(firmware, place),
  });
  started.push(machine);
  await machine.waitFor('/v1/heartbeat/u');
  return {
    ...machine,
    step: (kind, step, node, args = {}) =>
      machine.command(`${kind}.execute_${kind}_step`, { step: { step, interface: 'raid', args }, node, ports: [] }),
    async end() {
      const ended = once(machine.process, 'exit');
      await machine.command('standby.power_off', {}).catch(() => undefined);
      await ended;
      await machine.stop();
    },
  };
}
async function writeTo(machine: Ramdisk, node: JsonObject): Promise<JsonObject> {
  const sum = createHash('sha256').update(image).digest('hex');
  const info = { id: 'i', urls: [`${machine.url}/images/image`], disk_format: 'raw', os_hash_algo: 'sha256', os_hash_value: sum };
  return machine.step('deploy', 'write_image', node, { image_info: info, configdrive: configDrive });
}
/** Starts the machine from these disks, and returns what its system reports. */
async function boot(firmware: Firmware, place: string, disks: readonly string[]): Promise<string> {
  reported = [];
  const consoleFile = join(place, `system-${disks.join('')}.log`);
  const drives = disks.flatMap((name) => {
    const drive = `if=none,id=${name},format=raw,cache=unsafe,file=${diskFile(place, name)}`;
    return ['-drive', drive, '-device', DISKS[name]![0]!];
  });
  const machine = spawn('qemu-system-x86_64', [
    ...'-machine q35,accel=tcg -cpu max -m 768 -nodefaults -display none -no-reboot'.split(' '),
    ...`-serial file:${consoleFile} -netdev user,id=n -device virtio-net-pci,netdev=n,romfile=`.split(' '),
    ...firmwareArguments(firmware, place),
    ...drives,
  ]);
  try {
    await until(
      PATIENCE,
      () => readFileSync(consoleFile, 'latin1').slice(-2000),
      () => reported.length > 0,
    );
    return reported[0]!;
  } finally {
    const ended = once(machine, 'exit');
    machine.kill('SIGKILL');
    await ended;
  }
}

const mirror = { controller: 'software', raid_level: '1', size_gb: 1, volume_name: 'root', is_root_volume: true };
const nodeWith = (firmware: Firmware, label: string, ...disks: readonly JsonObject[]): JsonObject => ({
  uuid: 'u',
  properties: { capabilities: `boot_mode:${firmware},disk_label:${label}` },
  driver_internal_info: {},
  target_raid_config: { logical_disks: disks },
});
const succeeded = { command_status: 'SUCCEEDED', command_error: null };

/** What earlier users left: arrays with superblocks at the end, on whole disks and on a partition whose partner has gone. */
const LEAVE = `#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci virtio_blk raid1
sleep 2
printf 'n\\np\\n1\\n2048\\n\\nw\\n' | fdisk -u /dev/vdc
mdadm --create /dev/md0 --run --metadata=0.90 --level=1 --raid-devices=2 /dev/vda /dev/vdb
mdadm --create /dev/md1 --run --metadata=0.90 --level=1 --raid-devices=2 missing /dev/vdc1
mdadm --stop /dev/md0 /dev/md1 && echo LEFT
poweroff -f
`;
describe('arrays that earlier users left', () => {
  let place: string;
  const typeOf = (name: string, ...place: readonly string[]): string =>
    execFileSync('sh', ['-c', `blkid -p -o export ${place.join(' ')} ${diskFile(folder, name)} || true`]).toString();
  beforeAll(async () => {
    place = mkdtempSync(join(folder, 'left-'));
    writeFileSync(join(place, 'init'), LEAVE, { mode: 0o755 });
    const cpio = execFileSync('cpio', ['--quiet', '-o', '-H', 'newc', '-R', '0:0'], { cwd: place, input: 'init\n' });
    const first = readFileSync(join(root, '.cache/ramdisk/initrd'));
    const initrd = join(place, 'initrd');
    // The kernel looks for a second archive at a multiple of four.
    writeFileSync(initrd, Buffer.concat([first, Buffer.alloc(-first.length & 3), cpio]));
    for (const name of ['a', 'b', 'c']) {
      writeFileSync(diskFile(folder, name), '');
      truncateSync(diskFile(folder, name), 256 * 2 ** 20);
    }
    const leaving = await startDiskMachine(null, { ...bare(folder, ['a', 'b', 'c']), initrd });
    await once(leaving.process, 'exit');
    expect(leaving.console()).toContain('LEFT');
  });
  it('are stopped and wiped before an image is written, and by the erasure of metadata', async () => {
    for (const [name, ...where] of [['a'], ['b'], ['c', '-O', '1048576']] as const)
      expect([name, typeOf(name, ...where)]).toEqual([name, expect.stringContaining('TYPE=linux_raid_member') as string]);
    const machine = await ramdisk('bios', folder, ['a', 'c']);
    const node = { uuid: 'u', properties: { root_device: { serial: 'DISK-a' } }, driver_internal_info: {} };
    const hardware = (await machine.command('poll.get_hardware_info', {}))['command_result'] as { disks: readonly JsonObject[] };
    expect(hardware.disks.some(({ name }) => String(name).startsWith('/dev/md'))).toBe(true);
    expect(await writeTo(machine, node)).toMatchObject({
      ...succeeded,
      command_result: { deploy_result: { result: expect.stringContaining('/dev/vda') as string } },
    });
    expect(
      await machine.step('clean', 'erase_devices_metadata', { ...node, properties: { skip_block_devices: [{ serial: 'DISK-a' }] } }),
    ).toMatchObject(succeeded);
    await machine.end();
    expect(typeOf('a')).toContain('PTTYPE=dos');
    expect(typeOf('a')).not.toContain('linux_raid_member');
    expect(typeOf('c')).toBe('');
    expect(typeOf('c', '-O', '1048576')).toBe('');
  });
});

describe.each<[Firmware, string]>([
  ['uefi', 'gpt'],
  ['bios', 'msdos'],
  ['bios', 'gpt'],
])('%s, %s', (firmware, label) => {
  let place: string;
  beforeAll(() => {
    place = mkdtempSync(join(folder, `${firmware}-`));
    if (firmware === 'uefi') copyFileSync('/usr/share/OVMF/OVMF_VARS_4M.fd', join(place, 'vars.fd'));
    for (const name of Object.keys(DISKS)) {
      writeFileSync(diskFile(place, name), '');
      truncateSync(diskFile(place, name), 2 * GiB);
    }
  });

  it('the agent creates arrays, writes an image on a mirror and makes both disks bootable', async () => {
    const machine = await ramdisk(firmware, place, Object.keys(DISKS));
    const levels = label === 'msdos' ? ['0', '1+0', '5', '6'] : [];
    for (const level of levels) {
      const node = nodeWith(firmware, label, mirror, { controller: 'software', raid_level: level, size_gb: 'MAX', volume_name: 'data' });
      expect([level, await machine.step('clean', 'create_configuration', node)]).toMatchObject([level, succeeded]);
      expect([level, await machine.step('clean', 'delete_configuration', node)]).toMatchObject([level, succeeded]);
    }
    const wanted = { logical_disks: [{ ...mirror, physical_disks: MIRROR }] };
    const node = nodeWith(firmware, label);
    const applied = await machine.step('deploy', 'apply_configuration', node, { raid_config: wanted });
    expect(applied).toMatchObject({ ...succeeded, command_result: { deploy_result: wanted } });
    const hardware = (await machine.command('poll.get_hardware_info', {}))['command_result'] as { disks: readonly JsonObject[] };
    expect(hardware.disks.map(({ name }) => name)).toEqual(['/dev/md0', '/dev/vda', '/dev/vdb', '/dev/vdc', '/dev/vdd']);
    const written = await writeTo(machine, node);
    expect(written).toMatchObject({
      ...succeeded,
      command_result: { deploy_result: { result: expect.stringContaining('/dev/md0') as string } },
    });
    expect(await machine.command('image.install_bootloader', { root_uuid: null, target_boot_mode: firmware })).toMatchObject(succeeded);
    // A conductor that lost the answer asks again.
    expect(await machine.command('image.install_bootloader', { root_uuid: null, target_boot_mode: firmware })).toMatchObject(succeeded);
    await machine.end();
  });

  it.each([[['a', 'b']], [['b']], [['a']]])('the system boots from %j', async (disks) => {
    const report = await boot(firmware, place, disks);
    expect(report).toContain('image=mirrored');
    expect(report).toContain(`firmware=${firmware}`);
    expect(report).toMatch(/^arrays=.*active raid1/m);
    expect(report).toMatch(/^configdrive=\/dev\/md\d+p2$/m);
    expect(report).toContain('file=./openstack/latest/meta_data.json');
  });

  it('the agent finds the array although a member is missing, and removes what is left', async () => {
    const machine = await ramdisk(firmware, place, ['b']);
    const hardware = (await machine.command('poll.get_hardware_info', {}))['command_result'] as { disks: readonly JsonObject[] };
    expect(hardware.disks.map(({ name }) => name)).toContain('/dev/vda');
    expect(hardware.disks.some(({ name }) => String(name).startsWith('/dev/md'))).toBe(true);
    expect(await machine.step('clean', 'delete_configuration', nodeWith(firmware, label))).toMatchObject(succeeded);
    await machine.end();
    // blkid exits with 2 where it finds nothing.
    expect(() => execFileSync('blkid', ['-p', diskFile(place, 'b')])).toThrow(expect.objectContaining({ status: 2 }) as Error);
  });
});
