import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findLoader, installBootEntry } from '../../ramdisk-agent/disk/efi';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileDevice, fileTree, folder } from './support';

const csv = (text: string): Buffer => Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(text, 'utf16le')]);

it.each<[string, Record<string, string | Buffer>, object | null]>([
  ['the removable path', { 'EFI/BOOT/BOOTX64.EFI': 'x' }, { path: '\\EFI\\BOOT\\BOOTX64.EFI', label: 'bloomery' }],
  ['the removable path of ARM', { 'efi/boot/bootaa64.efi': 'x' }, { path: '\\efi\\boot\\bootaa64.efi', label: 'bloomery' }],
  [
    'a BOOTX64.CSV of a distribution',
    { 'EFI/BOOT/BOOTX64.EFI': 'x', 'EFI/ubuntu/BOOTX64.CSV': csv('shimx64.efi,ubuntu,,This is the boot entry\n') },
    { path: '\\EFI\\ubuntu\\shimx64.efi', label: 'ubuntu' },
  ],
  ['an empty BOOT.CSV', { 'EFI/x/BOOT.CSV': csv('') }, null],
  ['no loader', { 'EFI/other/readme.txt': 'x' }, null],
])('findLoader with %s', async (_, files, loader) => {
  expect(await findLoader(fileTree(files))).toEqual(loader);
});

async function install(
  partitionType: number,
  files: readonly string[],
  answers: Readonly<Record<string, string>>,
  path = '/dev/sda',
  sysfs: Readonly<Record<string, string>> = { empty: '' },
): Promise<{ result: unknown; ran: string[] }> {
  const device = await fileDevice(10 * 2 ** 20);
  const mbr = Buffer.alloc(512);
  mbr[446 + 4] = partitionType;
  mbr.writeUInt32LE(2048, 446 + 8);
  mbr.writeUInt32LE(2048, 446 + 12);
  mbr.writeUInt16LE(0xaa55, 510);
  await device.write(mbr, 0);
  const ran: string[] = [];
  const temporary = folder();
  const result: unknown = await installBootEntry(
    { ...device, path },
    async (program, args) => {
      const command = [program, ...args]
        .join(' ')
        .replaceAll(temporary, '/tmp')
        .replaceAll(/esp-\w+/g, 'esp');
      ran.push(command);
      if (program === 'mount') {
        for (const file of files) {
          mkdirSync(dirname(join(args.at(-1)!, file)), { recursive: true });
          writeFileSync(join(args.at(-1)!, file), 'x');
        }
      }
      if (program === 'umount')
        for (const file of files)
          await import('node:fs/promises').then(({ rm }) => rm(join(args[0]!, file.split('/')[0]!), { recursive: true }));
      if (answers[program] === undefined) throw new Error(`${program}: failed`);
      return answers[program];
    },
    tree(fileTree(sysfs)),
    temporary,
  ).catch((error: unknown) => error);
  return { result, ran };
}
const ENTRIES = 'BootCurrent: 0001\nBoot0001* UEFI PXE\tPciRoot(0x0)\nBoot0003* bloomery\tHD(1,MBR,0x1)\nBoot0004  bloomery 2\tHD(2)\n';

it('installBootEntry creates an entry for the loader, and deletes older ones with the same label', async () => {
  const { result, ran } = await install(0xef, ['EFI/BOOT/BOOTX64.EFI'], { mount: '', umount: '', efibootmgr: ENTRIES });
  expect(result).toEqual({ path: '\\EFI\\BOOT\\BOOTX64.EFI', label: 'bloomery' });
  expect(ran).toEqual([
    'mount -t vfat -o ro /dev/sda1 /tmp/esp',
    'umount /tmp/esp',
    'efibootmgr',
    'efibootmgr --quiet --delete-bootnum --bootnum 0003',
    'efibootmgr --quiet --create --disk /dev/sda --part 1 --label bloomery --loader \\EFI\\BOOT\\BOOTX64.EFI',
  ]);
});

it('installBootEntry names a path of a multipath device to the firmware, and mounts the partition that kpartx made', async () => {
  const sysfs = { 'sys/block/dm-0/dm/name': 'mpatha\n', 'sys/block/dm-0/slaves/sdb/x': '', 'sys/block/dm-0/slaves/sdc/x': '' };
  const { ran } = await install(0xef, ['EFI/BOOT/BOOTX64.EFI'], { mount: '', umount: '', efibootmgr: '' }, '/dev/dm-0', sysfs);
  expect(ran[0]).toBe('mount -t vfat -o ro /dev/mapper/mpatha-part1 /tmp/esp');
  expect(ran.at(-1)).toContain('--disk /dev/sdb --part 1');
});

it.each<[string, Parameters<typeof install>, object]>([
  [
    'no EFI system partition',
    [0x83, [], {}],
    { type: 'DeviceNotFound', message: expect.stringContaining('No EFI partition could be detected') as string },
  ],
  [
    'no loader',
    [0xef, [], { mount: '', umount: '' }],
    { type: 'CommandExecutionError', message: expect.stringContaining('has no boot loader') as string },
  ],
  [
    'an efibootmgr that fails',
    [0xef, ['EFI/BOOT/BOOTX64.EFI'], { mount: '', umount: '' }],
    {
      type: 'CommandExecutionError',
      message: expect.stringContaining('Could not configure UEFI boot on device /dev/sda: efibootmgr: failed') as string,
    },
  ],
])('installBootEntry fails with %s', async (_, given, error) => {
  expect((await install(...given)).result).toMatchObject(error);
});
