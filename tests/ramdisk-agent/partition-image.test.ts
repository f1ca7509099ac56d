/** Partition images by the agent, on a file. tests/lab/disks/partition-image.test.ts boots from them. */
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { silentLog } from '../../model/log';
import type { PartitionSizes } from '../../model/agent/partition-plan';
import type { Device } from '../../ramdisk-agent/disk/device';
import { entriesOf, readGpt } from '../../ramdisk-agent/disk/gpt';
import { readPartitions } from '../../ramdisk-agent/disk/partitions';
import { imageFiles } from '../../ramdisk-agent/kexec/image-files';
import { installBiosLoader } from '../../ramdisk-agent/partition-image/boot-loader';
import { grubCommands } from '../../ramdisk-agent/partition-image/grub-commands';
import { findByUuid } from '../../ramdisk-agent/partition-image/identity';
import { fillSystemPartition } from '../../ramdisk-agent/partition-image/system-partition';
import { writePartitionImage } from '../../ramdisk-agent/partition-image/write';
import type { RaidHost } from '../../ramdisk-agent/raid/arrays';
import { fileDevice, fileTree, folder, isFull } from './support';

type Options = Parameters<typeof writePartitionImage>[0];
const MiB = 2 ** 20;
const SIZE = 640 * MiB;
const ROOT = '11111111-2222-3333-4444-555555555555';

/** What the ramdisk takes for an ext4 file system. */
const image = Buffer.alloc(2 * MiB, 0x11);
image.write('\x53\xef', 0x438, 'latin1');
Buffer.from(ROOT.replaceAll('-', ''), 'hex').copy(image, 0x468);
const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

let server: Server;
let url: string;
beforeAll(async () => {
  server = createServer((_, response) => response.writeHead(200, { 'content-length': image.length }).end(image));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/root.raw`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const tree = { text: () => null, list: () => [], bytes: () => null } as unknown as Options['tree'];
const sizes: PartitionSizes = { root: 8, swap: 2, ephemeral: 4, ephemeralFormat: 'ext4', preservesEphemeral: false };
let guids = 0;
const newGuid = (): string => `00000000-0000-4000-8000-${String(++guids).padStart(12, '0')}`;

async function write(device: Device, more: Partial<Options> = {}, given: Partial<PartitionSizes> = {}) {
  const ran: string[] = [];
  const result = writePartitionImage({
    image: { id: 'i', urls: [url], disk_format: 'raw', os_hash_algo: 'sha256', os_hash_value: sha(image) },
    configDrive: null,
    device,
    fetching: { trust: { insecure: false }, timeoutMs: 20_000, signal: new AbortController().signal },
    retries: 0,
    retryIntervalMs: 1,
    md5Allowed: true,
    permittedFormats: ['raw'],
    inspects: true,
    allowsZstd: true,
    rescan: async () => {
      ran.push('rescan');
    },
    newGuid,
    conversion: { run: async () => Promise.reject(new Error('no mount')), temporary: '/nowhere' },
    progress: () => {},
    clock: { now: () => 0, sleep: async () => {} },
    log: silentLog,
    sizes: { ...sizes, ...given },
    bootMode: 'bios',
    label: 'msdos',
    random: (count) => Buffer.alloc(count, 0xab),
    run: async (program, args) => {
      ran.push([program, ...args].join(' ').replaceAll(device.path, 'DISK'));
      return '';
    },
    tree,
    ...more,
  });
  return { result, ran };
}
const uefi = { bootMode: 'uefi', label: 'gpt' } as const;

describe('writePartitionImage', () => {
  it('makes the partitions, then their file systems', async () => {
    const device = await fileDevice(SIZE);
    await device.write(Buffer.alloc(16 * MiB, 0x55), 0);
    const { result, ran } = await write(device);
    expect(await result).toEqual({ rootUuid: ROOT, systemUuid: null });
    expect(ran).toEqual(['rescan', 'mkswap -L swap1 DISK2', 'mke2fs -q -F -t ext4 -L ephemeral0 DISK1']);
    expect(await readPartitions(device)).toEqual({
      label: 'dos',
      partitions: [
        { number: 1, start: MiB, size: 4 * MiB, type: '83', name: '' },
        { number: 2, start: 5 * MiB, size: 2 * MiB, type: '82', name: '' },
        { number: 3, start: 7 * MiB, size: 8 * MiB, type: '83', name: '' },
      ],
    });
    // The root partition is the active one.
    const mbr = await device.read(0, 512);
    expect([0, 1, 2].map((index) => mbr[446 + 16 * index])).toEqual([0, 0, 0x80]);
    expect((await device.read(7 * MiB, image.length)).equals(image)).toBe(true);
    // What an earlier system left at the beginning of the others
    for (const start of [1, 5]) expect(isFull(await device.read(start * MiB, MiB), 0)).toBe(true);
  });

  it('makes an EFI system partition, and writes the config drive', async () => {
    const device = await fileDevice(SIZE);
    const drive = randomBytes(5000);
    const { result, ran } = await write(device, { ...uefi, configDrive: gzipSync(drive).toString('base64') }, { ephemeralFormat: 'xfs' });
    expect(await result).toEqual({ rootUuid: ROOT, systemUuid: 'ABAB-ABAB' });
    expect(ran).toEqual([
      'rescan',
      'mkfs.vfat -n efi-part -i abababab DISK1',
      'mkswap -L swap1 DISK3',
      'mkfs.xfs -q -f -L ephemeral0 DISK2',
    ]);
    const { partitions } = (await readPartitions(device))!;
    expect(partitions.map(({ name, start }) => [name, start / MiB])).toEqual([
      ['efi-part', 1],
      ['ephemeral0', 551],
      ['swap1', 555],
      ['config-2', 557],
      ['root', 558],
    ]);
    expect((await device.read(557 * MiB, MiB)).equals(Buffer.concat([drive, Buffer.alloc(MiB - drive.length)]))).toBe(true);
    expect(await findByUuid(device, ROOT.toUpperCase())).toMatchObject({ number: 5 });
    const own = entriesOf((await readGpt(device))!)[1]!.guid;
    expect(await findByUuid(device, own)).toMatchObject({ number: 2 });
  });

  it.each<[string, Partial<Options>]>([
    ['GPT', uefi],
    ['MBR', {}],
  ])('preserves the ephemeral partition, with what identifies it: %s', async (_, mode) => {
    const device = await fileDevice(SIZE);
    await (
      await write(device, mode)
    ).result;
    const before = (await readPartitions(device))!.partitions.find(({ size }) => size === 4 * MiB)!;
    await device.write(randomBytes(before.size), before.start);
    const hash = async (): Promise<string> => sha(await device.read(before.start, before.size));
    const identity = async () => [
      (await device.read(440, 4)).toString('hex'),
      (await readGpt(device)) && entriesOf((await readGpt(device))!).at(before.number - 1)!.guid,
    ];
    const [kept, same] = [await hash(), await identity()];
    // Also with a config drive, which comes after it.
    const { result, ran } = await write(device, { ...mode, random: () => Buffer.from('01020304', 'hex') }, { preservesEphemeral: true });
    await result;
    expect(ran.join()).not.toContain('ephemeral0');
    expect([await hash(), await identity()]).toEqual([kept, same]);
    // An image that is not the right one: the ephemeral partition stays, the root partition has nothing.
    const wrong = await write(
      device,
      { ...mode, image: { id: 'i', urls: [url], disk_format: 'raw', os_hash_algo: 'sha256', os_hash_value: sha(Buffer.from('x')) } },
      { preservesEphemeral: true },
    );
    await expect(wrong.result).rejects.toMatchObject({ type: 'ImageChecksumError' });
    expect([await hash(), await identity()]).toEqual([kept, same]);
    expect(await findByUuid(device, ROOT)).toBeUndefined();
    // The rebuild can be tried again.
    await (
      await write(device, mode, { preservesEphemeral: true })
    ).result;
    expect([await hash(), await identity()]).toEqual([kept, same]);
    expect(await findByUuid(device, ROOT)).toBeDefined();
  });

  it.each<[string, Partial<PartitionSizes>, Partial<Options>, RegExp]>([
    [
      'another size',
      { ephemeral: 5, preservesEphemeral: true },
      {},
      /has none of 5 MiB at 1 MiB in a partition table msdos. Nothing was written/,
    ],
    ['another table', { preservesEphemeral: true }, { label: 'gpt' }, /has none of 4 MiB at 2 MiB in a partition table gpt/],
    ['no room', { root: 1000 }, {}, /need 1007 MiB \(ephemeral 4, swap 2, root 1000\)/],
    ['a config drive that is none', {}, { configDrive: 'x' }, /Config drive is not base64/],
    ['no checksum', {}, { image: { id: 'i', urls: ['x'], disk_format: 'raw' } }, /checksum/],
  ])('writes nothing with %s', async (_, given, more, message) => {
    const device = await fileDevice(SIZE);
    await (
      await write(device)
    ).result;
    const before = sha(await device.read(0, 16 * MiB));
    await expect((await write(device, more, given)).result).rejects.toThrow(message);
    expect(sha(await device.read(0, 16 * MiB))).toBe(before);
  });

  it.each<[string, Partial<PartitionSizes>, Partial<Options>, RegExp]>([
    [
      'an image larger than its partition',
      { root: 1 },
      {},
      /2097152 bytes is larger than the disk \S+ \(root partition\) of 1048576 bytes/,
    ],
    [
      'another image',
      {},
      {
        image: {
          id: 'i',
          get urls() {
            return [url];
          },
          disk_format: 'raw',
          os_hash_algo: 'sha256',
          os_hash_value: 'f'.repeat(64),
        },
      },
      /failed to verify/,
    ],
    [
      'a file system that cannot be made',
      {},
      { run: async () => Promise.reject(new Error('mkswap: no')) },
      /Failed to create a file system on the swap partition: mkswap: no/,
    ],
  ])('leaves a disk without a table after %s', async (_, given, more, message) => {
    const device = await fileDevice(SIZE);
    await expect((await write(device, more, given)).result).rejects.toThrow(message);
    expect(await readPartitions(device)).toBeNull();
  });
});

/** A written disk, and mounts that show these files as its file systems: the root partition's as given. */
async function written(files: Readonly<Record<string, string | Buffer>>, mode: Partial<Options> = uefi) {
  const device = await fileDevice(SIZE);
  await (
    await write(device, mode)
  ).result;
  const partitions = (await readPartitions(device))!.partitions;
  const rootNumber = partitions.length;
  const contents = new Map([
    [`${device.path}${rootNumber}`, fileTree(files)],
    [`${device.path}1`, folder()],
  ]);
  const mounted = new Map<string, { readonly from: string; readonly isWritable: boolean }>();
  const grub: Readonly<Record<string, Buffer>> = {
    '/lib/grub/boot.img': Buffer.alloc(512, 0xb0),
    '/lib/grub/core.img': Buffer.alloc(1600, 0xc0),
  };
  const host = {
    tree: { ...tree, bytes: (path: string) => grub[path] ?? null },
    log: silentLog,
    newUuid: newGuid,
    temporary: folder(),
    open: async () => ({ ...device, close: async () => {} }),
    run: async (program: string, args: readonly string[]) => {
      const at = args.at(-1)!;
      if (program === 'mount') {
        const from = args.at(-2)!;
        if (!contents.has(from)) throw new Error(`nothing at ${from}`);
        mounted.set(at, { from, isWritable: args.includes('rw') || args.some((arg) => arg.startsWith('rw,')) });
        cpSync(contents.get(from)!, at, { recursive: true, verbatimSymlinks: true });
      } else if (program === 'umount') {
        const { from, isWritable } = mounted.get(at)!;
        if (isWritable) {
          rmSync(contents.get(from)!, { recursive: true });
          cpSync(at, contents.get(from)!, { recursive: true, verbatimSymlinks: true });
        }
        rmSync(at, { recursive: true });
        mkdirSync(at);
      }
      return '';
    },
  } as unknown as RaidHost;
  const read = (number: number, path: string): string | null => {
    const file = join(contents.get(`${device.path}${number}`)!, path);
    return existsSync(file) ? readFileSync(file, 'latin1') : null;
  };
  const namesOfSystem = (): readonly string[] =>
    (readdirSync(contents.get(`${device.path}1`)!, { recursive: true }) as string[]).filter((name) => /\.[a-z]+$/i.test(name)).sort();
  return { device, host, rootNumber, read, namesOfSystem, rootFolder: contents.get(`${device.path}${rootNumber}`)! };
}
/** The names that Debian's packages have on this architecture. */
const [FAMILY, ARCH] = process.arch === 'arm64' ? ['arm64', 'aa64'] : ['x86_64', 'x64'];
const monolithic = `usr/lib/grub/${FAMILY}-efi/monolithic/grub${ARCH}.efi`;
const BOOT = `EFI/BOOT/BOOT${ARCH.toUpperCase()}.EFI`;
const GRUB = Buffer.from('MZ…\0/EFI/debian\0…', 'latin1');

describe('fillSystemPartition', () => {
  const search = `search --no-floppy --fs-uuid --set=root --hint=hd0,gpt4 ${ROOT}`;
  const own = ['set prefix=($root)/boot/grub', 'if [ -e $prefix/grub.cfg ]; then configfile $prefix/grub.cfg; fi', ''];

  it('copies the folder EFI of the image, with a configuration for a GRUB that has none', async () => {
    const { host, device, read, namesOfSystem, rootNumber } = await written({
      'boot/efi/EFI/BOOT/BOOTX64.EFI': 'shim',
      'boot/efi/EFI/fedora/grubx64.efi': 'grub',
      'boot/efi/EFI/other/grubx64.efi': 'grub',
      'boot/efi/EFI/other/grub.cfg': 'own',
      'boot/grub2/grub.cfg': 'blscfg',
      'etc/fstab': 'UUID=x / ext4 defaults 0 1',
    });
    await fillSystemPartition(host, device, ROOT);
    expect(namesOfSystem()).toEqual([
      'EFI/BOOT/BOOTX64.EFI',
      'EFI/fedora/grub.cfg',
      'EFI/fedora/grubx64.efi',
      'EFI/other/grub.cfg',
      'EFI/other/grubx64.efi',
    ]);
    expect(read(1, 'EFI/other/grub.cfg')).toBe('own');
    expect(read(1, 'EFI/fedora/grub.cfg')!.split('\n')).toEqual([search, ...own.map((line) => line.replace('boot/grub', 'boot/grub2'))]);
    const line = 'UUID=ABAB-ABAB\t/boot/efi\tvfat\tumask=0077\t0\t1\n';
    // The fake mkfs.vfat wrote nothing: the partition has a UUID of its own only.
    expect(read(rootNumber, 'etc/fstab')).toMatch(
      new RegExp(`^UUID=x / ext4 defaults 0 1\\nUUID=[0-9a-f-]{36}${line.slice('UUID=ABAB-ABAB'.length)}$`),
    );
    // A second time, nothing is added.
    const before = read(rootNumber, 'etc/fstab');
    await fillSystemPartition(host, device, ROOT);
    expect(read(rootNumber, 'etc/fstab')).toBe(before);
  });

  it('takes GRUB of a package, and leads it to the configuration of the image', async () => {
    const { host, device, read, namesOfSystem } = await written({ [monolithic]: GRUB, 'boot/grub/grub.cfg': 'x' });
    await fillSystemPartition(host, device, ROOT);
    expect(namesOfSystem()).toEqual([BOOT, 'EFI/BOOT/grub.cfg', 'EFI/debian/grub.cfg']);
    expect(read(1, 'EFI/debian/grub.cfg')!.split('\n')).toEqual([search, ...own]);
  });

  it('prefers signed programs: one that the firmware trusts, and GRUB', async () => {
    const { host, device, read } = await written({
      [monolithic]: 'unsigned',
      [`usr/lib/grub/${FAMILY}-efi-signed/grub${ARCH}.efi.signed`]: GRUB,
      [`usr/lib/shim/shim${ARCH}.efi.signed`]: 'shim',
      'boot/grub/grub.cfg': 'x',
    });
    await fillSystemPartition(host, device, ROOT);
    expect(read(1, BOOT)).toBe('shim');
    expect(read(1, `EFI/BOOT/grub${ARCH}.efi`)).toBe(GRUB.toString('latin1'));
  });

  it('refuses an image without a loader, and a link that leads out of it reaches nothing', async () => {
    const { host, device, namesOfSystem, rootFolder } = await written({ 'boot/grub/grub.cfg': 'x' });
    const secret = join(folder(), 'EFI/BOOT/BOOTX64.EFI');
    mkdirSync(dirname(secret), { recursive: true });
    writeFileSync(secret, 'of the ramdisk');
    mkdirSync(join(rootFolder, 'boot/efi'));
    symlinkSync(join(secret, '../..'), join(rootFolder, 'boot/efi/EFI'));
    await expect(fillSystemPartition(host, device, ROOT)).rejects.toThrow(
      /Could not configure UEFI boot .*the image has no boot loader for UEFI/,
    );
    expect(namesOfSystem()).toEqual([]);
  });

  it('does not write through a link at /etc/fstab', async () => {
    const { host, device, rootFolder } = await written({ 'boot/efi/EFI/BOOT/BOOTX64.EFI': 'x', 'etc/real': 'y' });
    symlinkSync('real', join(rootFolder, 'etc/fstab'));
    await fillSystemPartition(host, device, ROOT);
    expect(readFileSync(join(rootFolder, 'etc/real'), 'latin1')).toBe('y');
  });

  it('refuses an unknown root partition', async () => {
    const { host, device } = await written({});
    await expect(fillSystemPartition(host, device, 'nobody')).rejects.toMatchObject({ type: 'DeviceNotFound' });
  });
});

describe('installBiosLoader', () => {
  it.each<[string, Partial<Options>, string]>([
    ['MBR', {}, 'msdos3'],
    ['GPT', { label: 'gpt' }, 'gpt4'],
  ])('writes the loader and the commands for it: %s', async (_, mode, place) => {
    const { host, device } = await written({ 'boot/grub/grub.cfg': 'x' }, mode);
    const { partitions } = (await readPartitions(device))!;
    const disk = { name: device.path } as Parameters<typeof installBiosLoader>[1];
    expect(await installBiosLoader(host, disk, ROOT)).toBe(`${device.path}${partitions.length} by GRUB`);
    const head = await device.read(0, 512);
    expect([head[0], head.readBigUInt64LE(0x5c)]).toEqual([0xb0, mode.label === 'gpt' ? 2048n : 1n]);
    const commands = (await device.read(2040 * 512, 4096)).toString().trimEnd().split('\n');
    expect(commands).toEqual([
      `set root="$root,${place}"`,
      'set prefix=($root)/boot/grub',
      'if [ -e $prefix/grub.cfg ]; then configfile $prefix/grub.cfg; fi',
    ]);
    expect((await readPartitions(device))!.partitions).toEqual(partitions);
  });
  it('writes commands for the entries of the Boot Loader Specification that an image has', async () => {
    const files = {
      'boot/grub2/grub.cfg': 'blscfg\n',
      'boot/loader/entries/a.conf': 'title x\nlinux /boot/vmlinuz\n',
      'boot/vmlinuz': 'kernel',
    };
    const { host, device } = await written(files, {});
    await installBiosLoader(host, { name: device.path } as never, ROOT);
    expect((await device.read(2040 * 512, 4096)).toString().trimEnd().split('\n')).toEqual([
      'set root="$root,msdos3"',
      'set entries=/boot/loader/entries',
      'set environment=/boot/grub2/grubenv',
      'export entries environment',
      'configfile (memdisk)/bls.cfg',
    ]);
  });
  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      'entries of the Boot Loader Specification without a kernel',
      { 'boot/grub2/grub.cfg': 'blscfg\n', 'boot/loader/entries/a.conf': 'title x\nlinux /gone\n' },
      /reads its entries by blscfg, and \S+:\/boot\/loader\/entries has none with a kernel/,
    ],
    ['such entries and a password', { 'boot/grub2/grub.cfg': 'blscfg\n', 'boot/grub2/user.cfg': 'x' }, /has a password \(user\.cfg\)/],
    ['no kernel', { 'boot/x': '' }, /no configuration of GRUB, and no kernel/],
  ])('refuses an image with %s, and changes no boot code', async (_, files, message) => {
    const { host, device } = await written(files, {});
    await expect(installBiosLoader(host, { name: device.path } as never, ROOT)).rejects.toThrow(message);
    expect((await device.read(0, 1))[0]).toBe(0);
  });
});

describe('grubCommands of an image without a configuration', () => {
  const commands = (files: Readonly<Record<string, string>>) => grubCommands(imageFiles(fileTree(files)), 'set root=x', 'U');
  const entry = async (files: Readonly<Record<string, string>>) => (await commands(files)).trimEnd().split('\n').slice(3);
  it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    [
      'Debian',
      {
        'boot/vmlinuz-6.1.0-9-amd64': '',
        'boot/initrd.img-6.1.0-9-amd64': '',
        'boot/vmlinuz-6.1.0-10-amd64': '',
        'boot/initrd.img-6.1.0-10-amd64': '',
        'etc/default/grub': `GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX='console=ttyS0,115200n8 a=$(reboot) b;c'\n`,
      },
      [
        "linux ($root)/boot/vmlinuz-6.1.0-10-amd64 'root=UUID=U' 'ro' 'console=ttyS0,115200n8' 'b;c' 'quiet'",
        'initrd ($root)/boot/initrd.img-6.1.0-10-amd64',
        'boot',
      ],
    ],
    [
      'Fedora',
      { 'boot/vmlinuz-6.8-1.fc40': '', 'boot/vmlinuz-0-rescue-x': '', 'boot/initramfs-6.8-1.fc40.img': '', 'boot/grub2/grubenv': '' },
      ["linux ($root)/boot/vmlinuz-6.8-1.fc40 'root=UUID=U' 'ro'", 'initrd ($root)/boot/initramfs-6.8-1.fc40.img', 'boot'],
    ],
    ['no ramdisk', { 'boot/vmlinuz-6': '' }, ["linux ($root)/boot/vmlinuz-6 'root=UUID=U' 'ro'", 'boot']],
  ])('%s', async (_, files, expected) => {
    expect(await entry(files)).toEqual(expected);
  });
  it('uses a configuration that appears later', async () => {
    expect(await commands({ 'boot/vmlinuz-6': '', 'boot/grub2/grubenv': '' })).toContain(
      'set prefix=($root)/boot/grub2\nif [ -e $prefix/grub.cfg ]',
    );
  });
});
