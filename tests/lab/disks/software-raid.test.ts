/**
 * Software RAID by the agent in its ramdisk: arrays of all levels, a system on a mirror that boots from either disk alone, by BIOS and by UEFI,
 * and the removal of what is left of it.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { buildIpaRamdisk } from '../support/ipa-ramdisk';
import { buildRamdisk } from '../support/ramdisk';
import { root } from '../support/venv';
import { firmwareArguments, type Firmware, makeConfigDrive, type Reports, startReports } from './direct-boot';
import { diskFile, type DiskMachine, overlaid, startDiskMachine, startImageApi } from './disk-machine';

jest.setTimeout(3_600_000);
const GiB = 2 ** 30;
const DISKS = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, [`virtio-blk-pci,drive=${name},serial=DISK-${name}`]]));
const MIRROR = [{ serial: 'DISK-a' }, { serial: 'DISK-b' }];
let folder: string;
let image: Buffer;
/** The same system, whose GRUB is configured as Fedora's. */
let bls: Buffer;
/** Partition images of it: without a configuration of GRUB, and with GRUB for UEFI in /boot/efi (demo/lab/image.sh). */
const roots: Record<string, Buffer> = {};
let configDrive: string;
let reports: Reports;

beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'software-raid-'));
  reports = await startReports();
  const raw = join(folder, 'image.raw');
  const { url } = reports;
  const env = { ...process.env, MDADM: join(root, '.cache/mdadm/sbin/mdadm') };
  await promisify(execFile)('bash', [join(root, 'demo/lab/image.sh'), raw, url, 'mirrored'], { env });
  image = readFileSync(raw);
  await promisify(execFile)('bash', [join(root, 'demo/lab/image.sh'), `${raw}.bls`, url, 'mirrored'], { env: { ...env, BLS: '1' } });
  bls = readFileSync(`${raw}.bls`);
  for (const kind of ['bare', 'folder']) {
    const file = join(folder, `${kind}.raw`);
    await promisify(execFile)('bash', [join(root, 'demo/lab/image.sh'), file, url, 'mirrored'], { env: { ...env, PARTITION: kind } });
    roots[kind] = readFileSync(file);
  }
  configDrive = makeConfigDrive(folder);
}, 1_000_000);
afterAll(async () => {
  await reports.close();
  rmSync(folder, { recursive: true, force: true });
});

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
async function ramdisk(
  firmware: Firmware,
  place: string,
  disks: readonly string[],
  more: { readonly disks?: Readonly<Record<string, readonly string[]>>; readonly initrd?: string } = {},
): Promise<Ramdisk> {
  const machine = await startDiskMachine(await startImageApi({ image, bls, ...roots }), {
    ...bare(place, disks),
    words: ['ipa-disk-wait-attempts=1'],
    more: firmwareArguments(firmware, place),
    ...more,
  });
  if (!more.initrd) started.push(machine);
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
async function writeTo(machine: Ramdisk, node: JsonObject, name = 'image', more: JsonObject = {}): Promise<JsonObject> {
  const sum = createHash('sha256')
    .update({ image, bls, ...roots }[name]!)
    .digest('hex');
  const urls = [`${machine.url}/images/${name}`];
  const info = { id: 'i', urls, disk_format: 'raw', os_hash_algo: 'sha256', os_hash_value: sum, ...more };
  return machine.step('deploy', 'write_image', node, { image_info: info, configdrive: configDrive });
}
/** Starts the machine from these disks, and returns what its system reports. */
const boot = (firmware: Firmware, place: string, disks: readonly string[]): Promise<string> =>
  reports.boot(firmware, place, Object.fromEntries(disks.map((name) => [name, DISKS[name]![0]!])));

/** What the real agent's functions answer (real-raid.py), on a machine with these disks. */
async function realAgent(place: string, asked: readonly (string | JsonObject)[]): Promise<readonly JsonObject[]> {
  const initrd = join(place, 'real-initrd');
  const program = readFileSync(join(__dirname, 'real-raid.py'));
  overlaid(initrd, { 'opt/agent/ironic_python_agent/cmd/agent.py': program }, await buildIpaRamdisk());
  const words = [`raid=${Buffer.from(JSON.stringify(asked)).toString('base64')}`];
  const machine = await startDiskMachine(null, { ...bare(place, Object.keys(DISKS)), initrd, memoryMiB: 3072, words });
  started.push(machine);
  if (machine.process.exitCode === null) await once(machine.process, 'exit');
  const answers = [...machine.console().matchAll(/^real: (\{.*\})\r?$/gm)].map(([, text]) => JSON.parse(text!) as JsonObject);
  if (answers.length < asked.length) throw new Error(machine.console().slice(-3000));
  return answers;
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
    const initrd = join(place, 'initrd');
    overlaid(initrd, { init: LEAVE });
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

/** The programs with their libraries, and the modules with those that they need, in the order of loading. */
function withPrograms(programs: readonly string[], modules: readonly string[]) {
  const files: Record<string, Buffer> = {};
  for (const program of programs) {
    const libraries = execFileSync('sh', ['-c', `ldd ${program} | grep -oE '/[^ ]+'`], { encoding: 'utf8' });
    files[`bin/${basename(program)}`] = readFileSync(program);
    for (const path of libraries.split('\n').filter(Boolean)) files[path.slice(1)] = readFileSync(path);
  }
  const kernel = join(root, '.cache/kernel');
  const [version] = readdirSync(join(kernel, 'lib/modules'));
  const shown = modules.flatMap((module) =>
    execFileSync('/sbin/modprobe', ['-d', kernel, '-S', version!, '--show-depends', module], { encoding: 'utf8' }).split('\n'),
  );
  const paths = [...new Set(shown.flatMap((line) => /^insmod (\S+)/.exec(line)?.[1] ?? []))];
  for (const [index, path] of paths.entries()) files[`more/${String(index).padStart(3, '0')}.ko`] = readFileSync(path);
  return files;
}
/**
 * A mirror with LVM, whose volume is encrypted by LUKS and has a file system, and a disk of bcache. They are in use when the agent starts,
 * although its ramdisk has nothing that starts LVM, LUKS or bcache.
 */
const USE = `#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /run /tmp /etc/lvm
modprobe -a virtio_pci virtio_blk raid1 dm_mod
for module in /more/*.ko; do insmod $module 2> /dev/null; done
sleep 2
echo | mdadm --create /dev/md0 --run --metadata=1.2 --level=1 --raid-devices=2 /dev/vda /dev/vdb
no='activation/udev_sync=0 activation/udev_rules=0 devices/use_devicesfile=0 global/use_lvmlockd=0'
lvm pvcreate --config "$no" /dev/md0
lvm vgcreate --config "$no" volumes /dev/md0
lvm lvcreate --config "$no" -Zn -Wn -n system -L 100M volumes
echo secret > /tmp/key
cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 --disable-locks /dev/mapper/volumes-system /tmp/key
cryptsetup open --disable-locks --key-file /tmp/key /dev/mapper/volumes-system secret && mkfs.vfat /dev/mapper/secret
make-bcache -B /dev/vdc
echo /dev/vdc > /sys/fs/bcache/register
sleep 1
exec /init-itself
`;
describe('what is in use on the disks', () => {
  let place: string;
  let machine: Ramdisk;
  const paths = (name: string, serial: string, wwn: string): readonly string[] =>
    [1, 2].flatMap((path) => [
      `virtio-scsi-pci,id=${name}-bus${path}`,
      `scsi-hd,bus=${name}-bus${path}.0,drive=${name}${path === 1 ? '' : '-2'},serial=${serial},wwn=${wwn},share-rw=on`,
    ]);
  const used = {
    ...Object.fromEntries(['a', 'b', 'c'].map((name) => [name, DISKS[name]!])),
    left: paths('left', 'MULTI1', '0x5000c500a1b2c3e1'),
    right: paths('right', 'MULTI2', '0x5000c500a1b2c3e2'),
  };
  const MULTIPATH = [{ wwn: '0x5000c500a1b2c3e1' }, { wwn: '0x5000c500a1b2c3e2' }];
  const found = (name: string): string =>
    execFileSync('sh', ['-c', `blkid -p -o export ${diskFile(place, name)} || true`])
      .toString()
      .replaceAll('\n', ' ');
  beforeAll(async () => {
    place = mkdtempSync(join(folder, 'used-'));
    for (const name of Object.keys(used)) {
      writeFileSync(diskFile(place, name), '');
      truncateSync(diskFile(place, name), 1.25 * GiB);
    }
    const programs = ['/sbin/lvm', '/sbin/cryptsetup', '/usr/sbin/make-bcache'];
    const modules = ['dm_crypt', 'xts', 'cbc', 'algif_skcipher', 'algif_hash', 'bcache'];
    const initrd = join(place, 'initrd');
    const itself = readFileSync(join(root, 'ramdisk-agent/build/init'));
    overlaid(initrd, { init: USE, 'init-itself': itself, ...withPrograms(programs, modules) });
    machine = await ramdisk('bios', place, [], { disks: used, initrd });
  });
  afterAll(() => machine.end());
  const node = (more: JsonObject = {}): JsonObject => ({ uuid: 'u', properties: {}, driver_internal_info: {}, ...more });

  it('bcache is not in the ramdisk; an extended one that uses a disk by it is told so, and the disk stays', async () => {
    expect(readFileSync(join(root, 'ramdisk-agent/build/modules.txt'), 'utf8')).not.toContain('bcache');
    const properties = { skip_block_devices: [...MIRROR, ...MULTIPATH] };
    const refused = await machine.step('clean', 'erase_devices_metadata', node({ properties }));
    expect(refused).toMatchObject({ command_status: 'FAILED' });
    expect(JSON.stringify(refused['command_error'])).toContain('/dev/vdc is in use by /dev/bcache0, which the agent cannot stop');
    expect(found('c')).toContain('TYPE=bcache');
  });

  it('LUKS on LVM on an array is stopped, and wiped', async () => {
    expect(found('a')).toContain('TYPE=linux_raid_member');
    const properties = { skip_block_devices: [{ serial: 'DISK-c' }, ...MULTIPATH] };
    expect(await machine.step('clean', 'delete_configuration', node({ properties }))).toMatchObject(succeeded);
    const said = machine.console();
    expect(said).toMatch(
      /Stopping \/dev\/dm-\d+, which uses \/dev\/dm-\d+[^]*Stopping \/dev\/dm-\d+, which uses \/dev\/md0[^]*Stopping \/dev\/md0/,
    );
    expect([found('a').trim(), found('b').trim()]).toEqual(['', '']);
  });

  it('an array of multipath devices is made, and deleted', async () => {
    const disks = MULTIPATH;
    const target = { logical_disks: [{ ...mirror, physical_disks: disks }] };
    const wanted = node({ target_raid_config: target, properties: { capabilities: 'boot_mode:bios' } });
    expect(await machine.step('clean', 'create_configuration', wanted)).toMatchObject({
      ...succeeded,
      command_result: { clean_result: target },
    });
    expect(machine.console()).toMatch(/Created \/dev\/md0 on \/dev\/dm-\d+, \/dev\/dm-\d+/);
    for (const name of ['left', 'right']) expect(found(name)).toContain('PTTYPE=dos');
    const properties = { skip_block_devices: [{ serial: 'DISK-c' }] };
    expect(await machine.step('clean', 'delete_configuration', node({ properties }))).toMatchObject(succeeded);
    expect([found('left').trim(), found('right').trim()]).toEqual(['', '']);
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
    const written = await writeTo(machine, node, firmware === 'bios' && label === 'gpt' ? 'bls' : 'image');
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

  if (firmware === 'uefi') {
    it('the real agent reads and deletes these arrays, and ours deploys to its arrays and deletes them', async () => {
      const copies = mkdtempSync(join(folder, 'copies-'));
      for (const name of Object.keys(DISKS)) execFileSync('cp', ['--sparse=always', diskFile(place, name), diskFile(copies, name)]);
      copyFileSync(join(place, 'vars.fd'), join(copies, 'vars.fd'));
      const theirs = { ...mirror, physical_disks: MIRROR, volume_name: 'theirs', is_root_volume: false };
      const striped = { ...theirs, raid_level: '0', size_gb: 'MAX', volume_name: 'striped' };
      const node = nodeWith(firmware, label, theirs, striped);
      const [before, deleted, after, created, made] = await realAgent(copies, ['read', { delete: node }, 'read', { create: node }, 'read']);
      expect(before).toMatchObject({
        arrays: {
          root: { components: ['/dev/vda1', '/dev/vdb1'], holders: ['/dev/vda', '/dev/vdb'], is_md: true },
          esp: { components: ['/dev/vda2', '/dev/vdb2'], holders: ['/dev/vda', '/dev/vdb'], is_md: true },
        },
        scanned: 2,
        esp: true,
      });
      expect(deleted).toEqual({ deleted: null });
      expect(after).toEqual({ arrays: {}, scanned: 0, esp: false });
      expect(created).toEqual({ created: node['target_raid_config'] });
      expect(Object.keys(made!['arrays'] as JsonObject).sort()).toEqual(['striped', 'theirs']);

      const machine = await ramdisk(firmware, copies, Object.keys(DISKS));
      expect(await machine.step('clean', 'create_configuration', node)).toMatchObject({
        command_status: 'FAILED',
        command_error: {
          details: expect.stringContaining('Partitions detected on devices /dev/vda, /dev/vdb during RAID config') as string,
        },
      });
      const hinted = { ...node, properties: { ...(node['properties'] as JsonObject), root_device: { volume_name: 'theirs' } } };
      const written = await writeTo(machine, hinted);
      expect(written).toMatchObject({
        ...succeeded,
        command_result: { deploy_result: { result: expect.stringMatching(/written to device \/dev\/md\d/) as string } },
      });
      expect(await machine.command('image.install_bootloader', { root_uuid: null, target_boot_mode: firmware })).toMatchObject(succeeded);
      expect(await machine.step('clean', 'delete_configuration', node)).toMatchObject(succeeded);
      await machine.end();
      for (const name of ['a', 'b'])
        expect(() => execFileSync('blkid', ['-p', diskFile(copies, name)])).toThrow(expect.objectContaining({ status: 2 }) as Error);
    });
  }

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

describe.each<[Firmware, 'gpt' | 'msdos', kind: string, partitions: number]>([
  ['uefi', 'gpt', 'folder', 4],
  ['bios', 'msdos', 'bare', 3],
])('%s, %s: a partition image', (firmware, label, kind, partitions) => {
  let place: string;
  const disks = ['a', 'b'];
  beforeAll(() => {
    place = mkdtempSync(join(folder, `partitions-${firmware}-`));
    if (firmware === 'uefi') copyFileSync('/usr/share/OVMF/OVMF_VARS_4M.fd', join(place, 'vars.fd'));
    for (const name of disks) {
      writeFileSync(diskFile(place, name), '');
      truncateSync(diskFile(place, name), 3 * GiB);
    }
  });

  it('the agent writes it on a mirror, and its system boots from both disks and from one', async () => {
    const machine = await ramdisk(firmware, place, disks);
    const node = nodeWith(firmware, label);
    const raid_config = { logical_disks: [{ ...mirror, size_gb: 2, physical_disks: MIRROR }] };
    expect(await machine.step('deploy', 'apply_configuration', node, { raid_config })).toMatchObject(succeeded);
    const sizes = { root_mb: 256, swap_mb: 32, ephemeral_mb: 0, ephemeral_format: null, preserve_ephemeral: false };
    expect(await writeTo(machine, node, kind, { image_type: 'partition', ...sizes })).toMatchObject(succeeded);
    const install = () => machine.command('image.install_bootloader', { root_uuid: null, target_boot_mode: firmware });
    expect(await install()).toMatchObject(succeeded);
    // A conductor that lost the answer asks again.
    expect(await install()).toMatchObject(succeeded);
    await machine.end();
    for (const present of [disks, ['b']]) await boots(present);
  });

  async function boots(present: readonly string[]): Promise<void> {
    const report = await boot(firmware, place, present);
    expect(report).toContain('image=mirrored');
    expect(report).toContain(`firmware=${firmware}`);
    expect(report).toMatch(new RegExp(`^root=/dev/md\\d+p${partitions}$`, 'm'));
    expect(report).toMatch(new RegExp(`^configdrive=/dev/md\\d+p${partitions - 1}$`, 'm'));
    expect(report).toContain('file=./openstack/latest/meta_data.json');
  }
});
