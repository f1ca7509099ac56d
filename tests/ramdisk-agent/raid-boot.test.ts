/** What makes each disk of an array bootable. tests/lab/deployment/software-raid.test.ts boots from them. */
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../model/records';
import { createPartitions, readPartitions } from '../../ramdisk-agent/disk/partitions';
import { arraysOf, type RaidHost } from '../../ramdisk-agent/raid/arrays';
import { installGrub } from '../../ramdisk-agent/raid/bios';
import { createConfiguration } from '../../ramdisk-agent/raid/configuration';
import { installEspArray } from '../../ramdisk-agent/raid/esp';
import { fakeMachine, type FakeMachine } from './fake-md';
import { folder } from './support';

const MiB = 2 ** 20;
const SECTOR = 512;
const config = { logical_disks: [{ controller: 'software', raid_level: '1', size_gb: 'MAX', volume_name: 'root' }] };
const CORE = Buffer.alloc(3 * SECTOR + 100, 0xc0);
const BOOT = Buffer.alloc(SECTOR, 0xb0);

/** A mirror whose first partition is a FAT file system with these files, and mounts that show them. */
async function mirror(boot: JsonObject, files: Readonly<Record<string, string>>, type = 0xef) {
  const machine: FakeMachine = fakeMachine({ sda: 2048, sdb: 2048 }, {});
  const node = { uuid: 'u', properties: { capabilities: boot } };
  await createConfiguration(machine.host, node, config);
  const device = await machine.open('md0');
  await createPartitions(device, 'msdos', [{ start: MiB, size: 32 * MiB }], machine.host);
  const mbr = await device.read(0, SECTOR);
  mbr[450] = type;
  await device.write(mbr, 0);
  const fat = Buffer.alloc(SECTOR);
  fat.writeUInt32LE(0x1234abcd, 67);
  fat.write('BOOT       FAT32   ', 71, 'latin1');
  fat.writeUInt16LE(0xaa55, 510);
  await device.write(fat, MiB);
  await device.close();
  const contents = new Map<string, string>();
  const volume = (name: string): string => {
    if (!contents.has(name)) contents.set(name, folder());
    return contents.get(name)!;
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(volume('/dev/md0p1'), path)), { recursive: true });
    writeFileSync(join(volume('/dev/md0p1'), path), text);
  }
  const mounted = new Map<string, string>();
  machine.ran.length = 0;
  const bytes = new Map([
    ['/lib/grub/boot.img', BOOT],
    ['/lib/grub/core.img', CORE],
  ]);
  const host: RaidHost = {
    ...machine.host,
    temporary: folder(),
    tree: { ...machine.host.tree, bytes: (path) => bytes.get(path) ?? null },
    run: async (program, args) => {
      const at = args.at(-1)!;
      if (program === 'mount') {
        mounted.set(at, args.at(-2)!);
        cpSync(volume(args.at(-2)!), at, { recursive: true });
      } else if (program === 'umount') {
        rmSync(volume(mounted.get(at)!), { recursive: true });
        cpSync(at, volume(mounted.get(at)!), { recursive: true });
        rmSync(at, { recursive: true });
        mkdirSync(at);
      }
      return machine.host.run(program, args);
    },
  };
  const [array] = await arraysOf(host);
  const root = host.disks().find(({ name }) => name === '/dev/md0')!;
  return { machine, host, array: array!, root, volume };
}

describe('installGrub', () => {
  it.each<[string, JsonObject, number]>([
    ['an MBR', { boot_mode: 'bios' }, 1],
    ['a GPT', { boot_mode: 'bios', disk_label: 'gpt' }, 2048],
  ])('writes the loader on both disks, and a line that leads to the image: %s', async (_, capabilities, sector) => {
    const { machine, host, array, root } = await mirror(capabilities, { 'grub/grub.cfg': 'menuentry x {}' });
    const first = await machine.open('sda');
    const before = (await readPartitions(first))!.partitions;
    await first.close();
    expect(await installGrub(host, array, root)).toBe('/dev/md0:/grub/grub.cfg');
    // A second time, nothing is added.
    await installGrub(host, array, root);
    for (const disk of ['sda', 'sdb']) {
      const device = await machine.open(disk);
      const head = await device.read(0, SECTOR);
      expect(head[0]).toBe(0xb0);
      expect(head.readBigUInt64LE(0x5c)).toBe(BigInt(sector));
      expect(head.readUInt16LE(510)).toBe(0xaa55);
      const core = await device.read(sector * SECTOR, CORE.length);
      expect(core.readBigUInt64LE(500)).toBe(BigInt(sector + 1));
      expect(core.subarray(SECTOR).equals(CORE.subarray(SECTOR))).toBe(true);
      const line = (await device.read(2040 * SECTOR, 4096)).toString();
      expect(line.trimEnd().split('\n')).toEqual([
        "set root='mduuid/00000000111111112222222233333333,msdos1'",
        'set prefix=($root)/grub',
        'configfile $prefix/grub.cfg',
      ]);
      const { partitions } = (await readPartitions(device))!;
      expect(partitions.slice(0, 1)).toEqual(before);
      expect(partitions).toHaveLength(sector === 1 ? 1 : 2);
      await device.close();
    }
  });

  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      'no configuration',
      { 'EFI/BOOT/BOOTX64.EFI': '' },
      /Installing GRUB2 boot loader to device \/dev\/md0 failed with the image has no configuration/,
    ],
    ['entries that only other versions of GRUB read', { 'grub2/grub.cfg': 'blscfg\n' }, /reads its entries by blscfg/],
  ])('refuses an image with %s, and changes no disk', async (_, files, message) => {
    const { machine, host, array, root } = await mirror({ boot_mode: 'bios' }, files);
    await expect(installGrub(host, array, root)).rejects.toThrow(message);
    const device = await machine.open('sda');
    expect((await device.read(0, 4)).toString('hex')).toBe('00000000');
    await device.close();
  });
});

describe('installEspArray', () => {
  it('moves the files of the image to system partitions of both disks, and makes an entry for each', async () => {
    const { machine, host, array, root, volume } = await mirror({ boot_mode: 'uefi' }, { 'EFI/BOOT/BOOTX64.EFI': 'loader' });
    const loaders = await installEspArray(host, array, root);
    expect(loaders.map(({ label }) => label)).toEqual(['bloomery (RAID, part0)', 'bloomery (RAID, part1)']);
    for (const disk of ['sda', 'sdb']) {
      const device = await machine.open(disk);
      expect((await readPartitions(device))!.partitions[1]).toMatchObject({
        number: 2,
        start: MiB,
        size: 550 * MiB,
        type: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
        name: disk === 'sda' ? 'uefi-holder-0' : 'uefi-holder-1',
      });
      await device.close();
    }
    expect(machine.ran.filter((line) => /^(mdadm --create|efibootmgr --quiet)/.test(line))).toEqual([
      'mdadm --create /dev/md1 --force --run --metadata=1.0 --level=1 --name=esp --raid-devices=2 /dev/sda2 /dev/sdb2',
      'efibootmgr --quiet --create --disk /dev/sdb --part 2 --label bloomery (RAID, part1) --loader \\EFI\\BOOT\\BOOTX64.EFI',
      'efibootmgr --quiet --create --disk /dev/sda --part 2 --label bloomery (RAID, part0) --loader \\EFI\\BOOT\\BOOTX64.EFI',
    ]);
    expect(machine.ran).toContain('addpart /dev/sda 2 2048 1126400');
    expect(existsSync(join(volume('/dev/md1'), 'EFI/BOOT/BOOTX64.EFI'))).toBe(true);
    // The file system of the image is no longer found, and a second attempt uses the moved one.
    machine.ran.length = 0;
    expect(await installEspArray(host, array, root)).toEqual(loaders);
    expect(machine.ran.some((line) => line.startsWith('mdadm --create'))).toBe(false);
  });

  it('makes system partitions of its own beside those of another system', async () => {
    const { machine, host, array, root } = await mirror({ boot_mode: 'uefi' }, { 'EFI/BOOT/BOOTX64.EFI': 'loader' });
    machine.leave('md9', { name: 'esp', uuid: '9', members: ['sdx1', 'sdy1'] });
    await installEspArray(host, array, root);
    expect(machine.ran.filter((line) => line.startsWith('mkfs.vfat'))).toEqual(['mkfs.vfat -n BOOT -i 1234abcd /dev/md1']);
    expect(machine.ran.some((line) => line.startsWith('efibootmgr') && line.includes('/dev/sdx'))).toBe(false);
  });

  it('keeps the files of the image if they have no loader', async () => {
    const { machine, host, array, root } = await mirror({ boot_mode: 'uefi' }, { 'readme.txt': 'x' });
    await expect(installEspArray(host, array, root)).rejects.toThrow(
      'Could not configure UEFI boot on device /dev/md0: its EFI system partition has no boot loader',
    );
    const device = await machine.open('md0');
    expect((await device.read(MiB + 82, 5)).toString()).toBe('FAT32');
    await device.close();
  });

  it('refuses an image without an EFI system partition', async () => {
    const { host, array, root } = await mirror({ boot_mode: 'uefi' }, {}, 0x83);
    await expect(installEspArray(host, array, root)).rejects.toThrow('No EFI partition could be detected on device /dev/md0');
  });
});
