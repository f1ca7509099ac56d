/**
 * Images of the kinds of docs/image-kinds.md, imitated by their contract: partitions, types, labels. Our agent writes all of them in one boot,
 * each with a config drive as the server makes it. Then the programs of these systems look for it: cloud-init, Ignition, cloudbase-init.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { userDataProblem } from '../../../api/nodes/user-data';
import { configdriveOf } from '../../../drivers/agent/configdrive';
import type { JsonObject } from '../../../model/records';
import { until } from '../../../demo/lab/machines';
import { testTask } from '../../support/task';
import { diskFile, MAC, overlaid, PATIENCE, startDiskMachine, startImageApi } from '../disks/disk-machine';
import { buildRamdisk } from '../support/ramdisk';
import { programs, root } from '../support/venv';

jest.setTimeout(2 * PATIENCE * 1000);
const MiB = 2 ** 20;
const SECTOR = 512;
const MIB = MiB / SECTOR;

/** Types of partitions in a GPT that sfdisk has no short name for. */
const GUID = {
  bios: '21686148-6449-6e6f-744e-656564454649',
  linux: '0fc63daf-8483-4772-8e79-3d69d8477de4',
  usr: '5dfbf5f4-2848-4bac-aa5e-0d9a20b745a6',
  resize: '3884dd41-8582-4404-b9a8-e9b84f2df50e',
  reserved: 'e3c9e316-0b5c-4db8-817d-f92df00215ae',
  data: 'ebd0a0a2-b9e5-4433-87c0-68b6b72699c7',
  esp: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
} as const;
interface Part {
  readonly number: number;
  /** MiB. */
  readonly start: number;
  readonly size: number;
  readonly type: string;
  readonly name?: string;
  /** The program that makes the file system, to which the path of a file is added. */
  readonly make?: readonly string[];
}
const esp = (number: number, start: number, name = 'EFI-SYSTEM'): Part => ({
  number,
  start,
  size: 8,
  type: GUID.esp,
  name,
  make: ['mkfs.vfat', '-n', name.slice(0, 11)],
});
const ext4 = (label: string): readonly string[] => ['mke2fs', '-q', '-F', '-t', 'ext4', '-L', label];
interface Kind {
  readonly label: 'gpt' | 'dos';
  readonly parts: readonly Part[];
  readonly user_data: string | JsonObject;
}
const IGNITION: JsonObject = {
  ignition: { version: '3.3.0' },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA core'] }] },
  storage: { files: [{ path: '/etc/hostname', overwrite: true, mode: 420, contents: { source: 'data:,host1' } }] },
};
const CLOUD_CONFIG = '#cloud-config\nssh_pwauth: false\nusers:\n  - name: operator\n    groups: [sudo]\n';
const KINDS: Readonly<Record<string, Kind>> = {
  ubuntu: {
    label: 'gpt',
    parts: [
      { number: 1, start: 16, size: 32, type: GUID.linux, make: ext4('cloudimg-rootfs') },
      { number: 14, start: 1, size: 4, type: GUID.bios },
      { ...esp(15, 6), name: 'UEFI' },
    ],
    user_data: CLOUD_CONFIG,
  },
  rhel: { label: 'dos', parts: [{ number: 1, start: 1, size: 40, type: '83', make: ext4('root') }], user_data: CLOUD_CONFIG },
  fcos: {
    label: 'gpt',
    parts: [
      { number: 1, start: 1, size: 1, type: GUID.bios, name: 'BIOS-BOOT' },
      esp(2, 2),
      { number: 3, start: 10, size: 16, type: GUID.linux, name: 'boot', make: ext4('boot') },
      { number: 4, start: 26, size: 32, type: GUID.linux, name: 'root', make: ext4('root') },
    ],
    user_data: IGNITION,
  },
  flatcar: {
    label: 'gpt',
    parts: [
      esp(1, 2),
      { number: 2, start: 10, size: 2, type: GUID.bios, name: 'BIOS-BOOT' },
      { number: 3, start: 12, size: 16, type: GUID.usr, name: 'USR-A' },
      { number: 4, start: 28, size: 16, type: GUID.usr, name: 'USR-B' },
      { number: 6, start: 44, size: 8, type: GUID.linux, name: 'OEM', make: ext4('OEM') },
      { number: 7, start: 52, size: 1, type: GUID.linux, name: 'OEM-CONFIG' },
      { number: 9, start: 53, size: 32, type: GUID.resize, name: 'ROOT', make: ext4('ROOT') },
    ],
    user_data: JSON.stringify(IGNITION),
  },
  talos: {
    label: 'gpt',
    parts: [
      esp(1, 1, 'EFI'),
      { number: 2, start: 9, size: 1, type: GUID.bios, name: 'BIOS' },
      { number: 3, start: 10, size: 16, type: GUID.linux, name: 'BOOT', make: ext4('BOOT') },
      { number: 4, start: 26, size: 1, type: GUID.linux, name: 'META' },
    ],
    user_data: 'version: v1alpha1\nmachine:\n  type: worker\n  token: abcdef.0123456789abcdef\n',
  },
  windows: {
    label: 'gpt',
    parts: [
      esp(1, 1, 'EFI system partition'),
      { number: 2, start: 9, size: 16, type: GUID.reserved, name: 'Microsoft reserved partition' },
      {
        number: 3,
        start: 25,
        size: 32,
        type: GUID.data,
        name: 'Basic data partition',
        make: ['mkntfs', '-q', '-f', '-F', '-L', 'Windows', '-p', String(25 * MIB), '-H', '255', '-S', '63'],
      },
    ],
    user_data: '#ps1_sysnative\r\nWrite-Host "hello"\r\n',
  },
};
const names = Object.keys(KINDS);
const NETWORK: JsonObject = {
  links: [{ id: 'e0', type: 'phy', ethernet_mac_address: MAC, mtu: 1500 }],
  networks: [
    {
      id: 'n0',
      type: 'ipv4',
      link: 'e0',
      ip_address: '192.0.2.5',
      netmask: '255.255.255.0',
      routes: [{ network: '0.0.0.0', netmask: '0.0.0.0', gateway: '192.0.2.1' }],
    },
  ],
  services: [{ type: 'dns', address: '192.0.2.53' }],
};
const META: JsonObject = {
  uuid: 'i-1',
  name: 'host1',
  hostname: 'host1',
  admin_pass: 'Pa55!',
  public_keys: { k: 'ssh-ed25519 AAAA operator' },
};

let folder: string;
let python: string;
let cloudInit: string;
let ignition: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'image-kinds-'));
  const bin = await programs('cloudbase-init', [
    'cloudbase-init==1.1.9',
    'jinja2==3.1.6',
    'configobj==5.0.9',
    'jsonpatch==1.33',
    'jsonschema==4.25.1',
    'requests==2.32.5',
  ]);
  python = join(bin, 'python');
  cloudInit = join(await unpacked('cloud-init'), 'usr/lib/python3/dist-packages');
  ignition = await unpacked('ignition');
  await buildRamdisk();
  await writeAll();
}, 1_800_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files of a Debian package that is not installed: on a host, cloud-init and Ignition would configure it at its next boot. */
async function unpacked(name: string): Promise<string> {
  const to = join(root, '.cache/debian', name);
  if (!existsSync(to)) {
    const work = mkdtempSync(join(folder, `${name}-`));
    await promisify(execFile)('sh', ['-c', `apt-get -qq download ${name} && dpkg -x ./${name}_*.deb tree`], { cwd: work });
    mkdirSync(join(to, '..'), { recursive: true });
    await promisify(execFile)('mv', ['-T', join(work, 'tree'), to]);
  }
  return to;
}

/** Makes the image of a kind. */
function makeImage(kind: string): Buffer {
  const { label, parts } = KINDS[kind]!;
  const raw = join(folder, `${kind}.raw`);
  writeFileSync(raw, '');
  truncateSync(raw, 96 * MiB);
  const lines = parts.map(
    ({ number, start, size, type, name }) =>
      `${number} : start=${start * MIB}, size=${size * MIB}, type=${type}${name === undefined ? '' : `, name="${name}"`}`,
  );
  execFileSync('sfdisk', ['-q', raw], { input: [`label: ${label}`, ...lines, ''].join('\n') });
  for (const { start, size, make } of parts) {
    if (!make) continue;
    const system = join(folder, 'system');
    writeFileSync(system, '');
    truncateSync(system, size * MiB);
    execFileSync(make[0]!, [...make.slice(1), system], { stdio: 'ignore' });
    execFileSync('dd', ['status=none', 'conv=notrunc,sparse', 'bs=1M', `seek=${start}`, `if=${system}`, `of=${raw}`]);
    rmSync(system);
  }
  execFileSync('qemu-img', ['convert', '-O', 'qcow2', raw, `${raw}.qcow2`]);
  return readFileSync(`${raw}.qcow2`);
}

/** Boots the agent once. It writes each image to a disk of its own. */
async function writeAll(): Promise<void> {
  const images = Object.fromEntries(names.map((kind) => [kind, makeImage(kind)]));
  const machine = await startDiskMachine(await startImageApi(images), {
    folder,
    initrd: join(root, '.cache/ramdisk/initrd'),
    memoryMiB: 1024,
    words: ['ipa-disk-wait-attempts=1'],
    more: [],
    prepare: () => {},
    disks: Object.fromEntries(names.map((kind) => [kind, [`virtio-blk-pci,drive=${kind},serial=${kind}`]])),
  });
  try {
    await machine.waitFor('/v1/heartbeat/u');
    for (const [kind, { user_data }] of Object.entries(KINDS)) {
      const configdrive = { meta_data: META, network_data: NETWORK, user_data };
      const image = {
        id: kind,
        urls: [`${machine.url}/images/${kind}`],
        disk_format: 'qcow2',
        os_hash_algo: 'sha256',
        os_hash_value: createHash('sha256').update(images[kind]!).digest('hex'),
        image_type: 'whole-disk',
      };
      const args = { image_info: image, configdrive: await configdriveOf(testTask({ node: { instance_info: { configdrive } } }).task) };
      const written = await machine.command('deploy.execute_deploy_step', {
        step: { step: 'write_image', interface: 'deploy', args },
        node: { uuid: 'u', properties: { root_device: { serial: kind } }, driver_internal_info: {} },
        ports: [],
      });
      expect([kind, written]).toMatchObject([kind, { command_error: null, command_status: 'SUCCEEDED' }]);
    }
    const ended = once(machine.process, 'exit');
    await machine.command('standby.power_off', {}).catch(() => undefined);
    await ended;
  } finally {
    await machine.stop();
  }
}

interface Row {
  readonly node: string;
  readonly start: number;
  readonly size: number;
  readonly type: string;
  readonly name?: string;
}
function tableOf(file: string): readonly Row[] {
  const said = execFileSync('sfdisk', ['--json', file], { encoding: 'utf8' });
  return (JSON.parse(said) as { partitiontable: { partitions: readonly Row[] } }).partitiontable.partitions;
}
const probed = (file: string, { start }: Pick<Row, 'start'>): string =>
  spawnSync('blkid', ['-p', '-O', String(start * SECTOR), '-o', 'export', file], { encoding: 'utf8' }).stdout.replace(/^DEVNAME=.*\n/, '');
/** The partition of the config drive. */
const drivesOf = (kind: string): readonly Row[] =>
  tableOf(diskFile(folder, kind)).filter((row) => /^LABEL=config-2$/m.test(probed(diskFile(folder, kind), row)));
/** Python's answer. */
function ask(words: readonly string[], input = ''): JsonObject | boolean {
  const env = { ...process.env, PYTHONPATH: cloudInit, PYTHONDONTWRITEBYTECODE: '1' };
  const said = execFileSync(python, [join(__dirname, 'image-kinds.py'), ...words], { env, input, encoding: 'utf8', timeout: 120_000 });
  return JSON.parse(said.trimEnd().split('\n').at(-1)!) as JsonObject | boolean;
}

describe.each(names)('an image of %s', (kind) => {
  it('keeps its partitions, and has one config drive more', () => {
    const file = diskFile(folder, kind);
    expect(spawnSync('sfdisk', ['--verify', file], { encoding: 'utf8' }).stdout).toMatch(/No errors detected/);
    const same = ({ node, start, size, type, name }: Row) => [node.replace(/^.*?(\d+)$/, '$1'), start, size, type, name];
    const [drive, ...others] = drivesOf(kind);
    expect(others).toEqual([]);
    const kept = tableOf(file).filter(({ start }) => start !== drive!.start);
    expect(kept.map(same)).toEqual(tableOf(join(folder, `${kind}.raw`)).map(same));
    for (const row of kept) expect(probed(file, row)).toBe(probed(join(folder, `${kind}.raw`), row));
    expect(probed(file, drive!)).toMatch(/^TYPE=iso9660$/m);
    // Behind all others, so that the last of them can grow up to it.
    for (const row of kept) expect(row.start + row.size).toBeLessThanOrEqual(drive!.start);
  });
});

it.each(['ubuntu', 'rhel', 'talos'])('the source ConfigDrive of cloud-init reads the drive of %s', (kind) => {
  const [{ start, size }] = drivesOf(kind) as [Row];
  const iso = join(folder, `${kind}.iso`);
  execFileSync('dd', ['status=none', 'bs=512', `skip=${start}`, `count=${size}`, `if=${diskFile(folder, kind)}`, `of=${iso}`]);
  const seed = join(folder, `seed-${kind}`);
  mkdirSync(join(seed, 'seed/config_drive'), { recursive: true });
  execFileSync('bsdtar', ['-xf', iso, '-C', join(seed, 'seed/config_drive')]);
  const answer = ask(['cloud-init', seed, MAC]);
  expect(answer).toMatchObject({
    found: true,
    labels: expect.arrayContaining(['config-2']) as string[],
    types: expect.arrayContaining(['iso9660']) as string[],
    id: 'i-1',
    hostname: 'host1',
    keys: ['ssh-ed25519 AAAA operator'],
    user_data: KINDS[kind]!.user_data,
  });
  expect(JSON.stringify(answer)).toContain('"address": "192.0.2.5"'.replace(': ', ':'));
});

it('cloudbase-init finds the drive in the partitions of the disk, and reads it', () => {
  expect(ask(['cloudbase-init', diskFile(folder, 'windows'), '/usr/bin/bsdtar'])).toEqual({
    found: true,
    id: 'i-1',
    hostname: 'host1',
    password: 'Pa55!',
    user_data: KINDS['windows']!.user_data,
    keys: ['ssh-ed25519 AAAA operator'],
    links: [MAC.toUpperCase()],
    addresses: ['192.0.2.5/24'],
  });
});

/** Ignition asks its platform openstack for the config of each disk, as an initial ramdisk of Fedora CoreOS and of Flatcar has it do. */
const ASK_IGNITION = `#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /run /tmp /dev/disk/by-label
modprobe -a virtio_pci virtio_blk isofs
for disk in vda vdb; do
  for part in /dev/$disk?; do blkid "$part" | grep -q 'LABEL="config-2"' && ln -sf "$part" /dev/disk/by-label/config-2; done
  /ignition/ld.so --library-path /ignition /ignition/ignition -stage fetch -platform openstack -fetch-timeout 60s -log-to-stdout \
    -config-cache /run/$disk.json -state-file /run/$disk.state -neednet /run/$disk.net
  echo; echo "ignition $disk: $(base64 < /run/$disk.json | tr -d '\n')."
done
poweroff -f
`;
it('Ignition finds the config of Fedora CoreOS and of Flatcar on their disks', async () => {
  const program = join(ignition, 'usr/lib/dracut/modules.d/30ignition/ignition');
  const libraries = execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+\.so\.\d+/g)!;
  const files: Record<string, string | Buffer> = { init: ASK_IGNITION, 'ignition/ignition': readFileSync(program) };
  for (const path of libraries)
    files[path.includes('ld-linux') ? 'ignition/ld.so' : `ignition/${path.split('/').at(-1)!}`] = readFileSync(path);
  const initrd = join(folder, 'ignition-initrd');
  overlaid(initrd, files);
  const kinds = ['flatcar', 'fcos'] as const;
  const disks = Object.fromEntries(kinds.map((kind) => [kind, [`virtio-blk-pci,drive=${kind}`]]));
  const machine = await startDiskMachine(null, { folder, initrd, memoryMiB: 1024, words: [], more: [], prepare: () => {}, disks });
  await until(
    PATIENCE,
    () => 'the console',
    () => existsSync(machine.consoleFile),
  );
  const configOf = (disk: string): string | undefined => new RegExp(`ignition ${disk}: (\\S*)\\.`).exec(machine.console())?.[1];
  try {
    await until(
      PATIENCE,
      () => machine.console().slice(-4000),
      () => configOf('vdb') !== undefined,
    );
    for (const disk of ['vda', 'vdb']) {
      const config = JSON.parse(Buffer.from(configOf(disk)!, 'base64').toString()) as JsonObject;
      expect(config).toMatchObject({ passwd: IGNITION['passwd'], storage: IGNITION['storage'] });
    }
  } finally {
    await machine.stop();
  }
});

describe('user data that the server accepts or refuses', () => {
  const config = (version: unknown) => JSON.stringify({ ignition: { version } });
  it.each([
    [JSON.stringify(IGNITION), true],
    [config('3.0.0'), true],
    ['{"ignition": {"version": "3.3.0"}, "storage": }', false],
    [config(undefined), false],
    [config('3.3'), false],
    [config('4.0.0'), false],
    [config(1), false],
  ])('Ignition agrees about %s: %s', (text, valid) => {
    const { status } = spawnSync(join(ignition, 'usr/bin/ignition-validate'), ['-'], { input: text });
    expect([status === 0, userDataProblem(text) === undefined]).toEqual([valid, valid]);
  });
  it.each([
    [CLOUD_CONFIG, true],
    ['#cloud-config\na: 1\na: 2\nb: 0o7\n"c": {d: [e, f]}\n', true],
    ['#cloud-config\na: b: c\n', false],
    ['#cloud-config\na:\n\tb: 1\n', false],
    ['#cloud-config\na: [1, 2\n', false],
  ])('cloud-init agrees about %j: %s', (text, valid) => {
    expect([ask(['yaml'], text), userDataProblem(text) === undefined]).toEqual([valid, valid]);
  });
});
