/** A fake machine with a mirror that has an image, whose file systems its mounts show. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../model/records';
import { createPartitions } from '../../ramdisk-agent/disk/partitions';
import { arraysOf, type RaidHost } from '../../ramdisk-agent/raid/arrays';
import { createConfiguration } from '../../ramdisk-agent/raid/configuration';
import { fakeMachine, type FakeMachine } from './fake-md';
import { folder } from './support';

const MiB = 2 ** 20;
const SECTOR = 512;
const config = { logical_disks: [{ controller: 'software', raid_level: '1', size_gb: 'MAX', volume_name: 'root' }] };
export const CORE = Buffer.alloc(3 * SECTOR + 100, 0xc0);
const BOOT = Buffer.alloc(SECTOR, 0xb0);
export const ROOT_UUID = '00112233-4455-6677-8899-aabbccddeeff';
/**
 * A mirror whose first partition is a FAT file system with these files, its second one ext4 with the files of `system`, and mounts that show
 * them.
 */
export async function fakeMirror(
  boot: JsonObject,
  files: Readonly<Record<string, string>>,
  type = 0xef,
  system: Readonly<Record<string, string>> = {},
) {
  const machine: FakeMachine = fakeMachine({ sda: 2048, sdb: 2048 }, {});
  const node = { uuid: 'u', properties: { capabilities: boot } };
  await createConfiguration(machine.host, node, config);
  const device = await machine.open('md0');
  const second = { start: 33 * MiB, size: 8 * MiB };
  await createPartitions(device, 'msdos', [{ start: MiB, size: 32 * MiB }, second], machine.host);
  await device.write(Buffer.from('53ef', 'hex'), second.start + 1080);
  await device.write(Buffer.from(ROOT_UUID.replaceAll('-', ''), 'hex'), second.start + 1128);
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
  const put = (name: string, path: string, text: string): void => {
    mkdirSync(dirname(join(volume(name), path)), { recursive: true });
    writeFileSync(join(volume(name), path), text);
  };
  for (const [path, text] of Object.entries(files)) put('/dev/md0p1', path, text);
  for (const [path, text] of Object.entries(system)) put('/dev/md0p2', path, text);
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
