/** What makes each disk of an array bootable. tests/lab/disks/software-raid.test.ts boots from them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../model/records';
import { readPartitions } from '../../ramdisk-agent/disk/partitions';
import { leadToArray } from '../../ramdisk-agent/partition-image/boot-loader';
import { installGrub, leadToConfiguration } from '../../ramdisk-agent/raid/bios';
import { installEspArray } from '../../ramdisk-agent/raid/esp';
import { CORE, fakeMirror, ROOT_UUID } from './fake-mirror';

const MiB = 2 ** 20;
const SECTOR = 512;

describe('installGrub', () => {
  it.each<[string, JsonObject, number]>([
    ['an MBR', { boot_mode: 'bios' }, 1],
    ['a GPT', { boot_mode: 'bios', disk_label: 'gpt' }, 2048],
  ])('writes the loader on both disks, and a line that leads to the image: %s', async (_, capabilities, sector) => {
    const { machine, host, array, root } = await fakeMirror(capabilities, { 'grub/grub.cfg': 'menuentry x {}' });
    const first = await machine.open('sda');
    const before = (await readPartitions(first))!.partitions;
    await first.close();
    expect(await installGrub(host, array, root, leadToConfiguration(host, root, null))).toBe('/dev/md0:/grub/grub.cfg');
    // A second time, nothing is added.
    await installGrub(host, array, root, leadToConfiguration(host, root, null));
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

  it.each<[string | null, string]>([
    [null, 'msdos1'],
    ['0xabcdef01', 'msdos1'],
    [ROOT_UUID.toUpperCase(), 'msdos2'],
  ])('takes the configuration on the root file system %s before others', async (uuid, partition) => {
    const other = { 'boot/grub/grub.cfg': 'menuentry x {}' };
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'bios' }, { 'boot/grub/grub.cfg': 'menuentry y {}' }, 0x0c, other);
    await installGrub(host, array, root, leadToConfiguration(host, root, uuid));
    const device = await machine.open('sdb');
    expect((await device.read(2040 * SECTOR, 4096)).toString()).toContain(`,${partition}'`);
    await device.close();
  });

  it('writes the entry of a partition image, which has no configuration of its own', async () => {
    const files = {
      'boot/vmlinuz-6.1.0': 'kernel',
      'boot/initrd.img-6.1.0': 'ramdisk',
      'etc/default/grub': 'GRUB_CMDLINE_LINUX="quiet"\n',
    };
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'bios' }, {}, 0x0c, files);
    expect(await installGrub(host, array, root, leadToArray(host, root, ROOT_UUID))).toBe('/dev/md0p2');
    for (const disk of ['sda', 'sdb']) {
      const device = await machine.open(disk);
      const line = (await device.read(2040 * SECTOR, 4096)).toString();
      expect(line.trimEnd().split('\n')).toEqual([
        "set root='mduuid/00000000111111112222222233333333,msdos2'",
        'set prefix=($root)/boot/grub',
        'if [ -e $prefix/grub.cfg ]; then configfile $prefix/grub.cfg; fi',
        `linux ($root)/boot/vmlinuz-6.1.0 'root=UUID=${ROOT_UUID}' 'ro' 'quiet'`,
        'initrd ($root)/boot/initrd.img-6.1.0',
        'boot',
      ]);
      await device.close();
    }
  });

  it('writes a line that leads to the entries of the Boot Loader Specification', async () => {
    const files = {
      'boot/grub2/grub.cfg': '  blscfg\n',
      'boot/loader/entries/a.conf': 'title x\nlinux /boot/vmlinuz\n',
      'boot/vmlinuz': 'kernel',
    };
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'bios' }, files, 0x0c);
    await installGrub(host, array, root, leadToConfiguration(host, root, null));
    const device = await machine.open('sda');
    expect((await device.read(2040 * SECTOR, 4096)).toString().trimEnd().split('\n').slice(1)).toEqual([
      'set entries=/boot/loader/entries',
      'set environment=/boot/grub2/grubenv',
      'export entries environment',
      'configfile (memdisk)/bls.cfg',
    ]);
    await device.close();
  });

  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      'no configuration',
      { 'EFI/BOOT/BOOTX64.EFI': '' },
      /Installing GRUB2 boot loader to device \/dev\/md0 failed with the image has no configuration/,
    ],
    [
      'entries of the Boot Loader Specification without a kernel',
      { 'grub2/grub.cfg': 'blscfg\n', 'loader/entries/a.conf': 'title x\nlinux /gone\n' },
      /reads its entries by blscfg, and \/dev\/md0p1:\/loader\/entries has none with a kernel/,
    ],
    [
      'such entries and a password',
      { 'grub2/grub.cfg': 'blscfg\n', 'grub2/user.cfg': 'GRUB2_PASSWORD=x' },
      /has a password \(user\.cfg\), and uses blscfg/,
    ],
  ])('refuses an image with %s, and changes no disk', async (_, files, message) => {
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'bios' }, files);
    await expect(installGrub(host, array, root, leadToConfiguration(host, root, null))).rejects.toThrow(message);
    const device = await machine.open('sda');
    expect((await device.read(0, 4)).toString('hex')).toBe('00000000');
    await device.close();
  });
});

describe('installEspArray', () => {
  it('moves the files of the image to system partitions of both disks, and makes an entry for each', async () => {
    const { machine, host, array, root, volume } = await fakeMirror({ boot_mode: 'uefi' }, { 'EFI/BOOT/BOOTX64.EFI': 'loader' });
    let filled = 0;
    const fill = async (): Promise<void> => void filled++;
    const loaders = await installEspArray(host, array, root, fill);
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
    expect(await installEspArray(host, array, root, fill)).toEqual(loaders);
    expect(machine.ran.some((line) => line.startsWith('mdadm --create'))).toBe(false);
    expect(filled).toBe(1);
  });

  it('makes system partitions of its own beside those of another system', async () => {
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'uefi' }, { 'EFI/BOOT/BOOTX64.EFI': 'loader' });
    machine.leave('md9', { name: 'esp', uuid: '9', members: ['sdx1', 'sdy1'] });
    await installEspArray(host, array, root);
    expect(machine.ran.filter((line) => line.startsWith('mkfs.vfat'))).toEqual(['mkfs.vfat -n BOOT -i 1234abcd /dev/md1']);
    expect(machine.ran.some((line) => line.startsWith('efibootmgr') && line.includes('/dev/sdx'))).toBe(false);
  });

  it('keeps the files of the image if they have no loader', async () => {
    const { machine, host, array, root } = await fakeMirror({ boot_mode: 'uefi' }, { 'readme.txt': 'x' });
    await expect(installEspArray(host, array, root)).rejects.toThrow(
      'Could not configure UEFI boot on device /dev/md0: its EFI system partition has no boot loader',
    );
    const device = await machine.open('md0');
    expect((await device.read(MiB + 82, 5)).toString()).toBe('FAT32');
    await device.close();
  });

  it('refuses an image without an EFI system partition', async () => {
    const { host, array, root } = await fakeMirror({ boot_mode: 'uefi' }, {}, 0x83);
    await expect(installEspArray(host, array, root)).rejects.toThrow('No EFI partition could be detected on device /dev/md0');
  });
});
