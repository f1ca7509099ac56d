/**
 * BIOS: it starts the first sector of a disk. Each disk of the root array gets GRUB, which the ramdisk has with what reads arrays, file systems
 * and configurations: the first sector, its core where no partition of the system is, and a line that leads to the image's own configuration.
 * No program of the image runs.
 */
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { addToGpt, BIOS_BOOT, readPartitions, repairGpt } from '../disk/partitions';
import type { FoundDisk } from '../inventory/disks';
import { grubConfiguration } from '../kexec/find-kernel';
import { withVolumes } from '../kexec/volumes';
import type { RaidArray, RaidHost } from './arrays';

/** Of the ramdisk: boot.img and core.img. */
export const FOLDER = '/lib/grub';
const SECTOR = 512;
const MiB = 2 ** 20;
/** Where the core looks for its line (build/grub.cfg): the last 4 KiB before the first MiB, which no partition uses. */
const LINE = { start: 2040 * SECTOR, size: 4096 };
/** Of boot.img: bytes of code before the disk's signature and table, and where it has the sector of the core (boot.S). */
const CODE = 440;
const CORE_SECTOR = 0x5c;
/** Of the core's first sector: where it has the sector of the rest (diskboot.S). */
const REST_SECTOR = SECTOR - 12;

/** What GRUB is told, and where that leads, for the log. */
export interface Lead {
  readonly commands: string;
  readonly to: string;
}
/** @param leadFor finds the system in the array. Its argument makes the command for one of the array's partitions, by GRUB's name: `msdos1` */
export async function installGrub(
  host: RaidHost,
  array: RaidArray,
  root: FoundDisk,
  leadFor: (setRoot: (partition: string) => string) => Promise<Lead>,
): Promise<string> {
  try {
    const [boot, core] = ['boot.img', 'core.img'].map((name) => host.tree.bytes(`${FOLDER}/${name}`));
    if (!boot || !core) throw new Error('the ramdisk has no boot loader for a BIOS');
    if (array.uuid === null) throw new Error(`${array.name} has no UUID`);
    const { commands, to } = await leadFor((partition) => `set root='mduuid/${array.uuid},${partition}'`);
    const line = asLine(commands);
    for (const holder of array.holders) {
      const disk = host.disks().find(({ name }) => name === holder);
      if (!disk) throw new Error(`${holder} has gone`);
      if (disk.logical_sectors !== null && disk.logical_sectors !== SECTOR)
        throw new Error(`a BIOS does not start from ${holder}, whose sectors have ${disk.logical_sectors} bytes`);
      const target = await host.open(disk);
      try {
        await writeLoader(target, { boot, core, line, guid: host.newUuid() });
      } finally {
        await target.close();
      }
    }
    return to;
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('CommandExecutionError', `Installing GRUB2 boot loader to device ${root.name} failed with ${reasonOf(error)}.`, {
      cause: error,
    });
  }
}

interface Configuration {
  /** GRUB's name of the partition that has it: `msdos1`. */
  readonly partition: string;
  readonly folder: string;
  readonly entries: string | null;
}
/** @param rootUuid of the image's root file system, if somebody has told it */
export const leadToConfiguration =
  (host: RaidHost, root: FoundDisk, rootUuid: string | null) =>
  async (setRoot: (partition: string) => string): Promise<Lead> => {
    const found = await configurationOf(host, root, rootUuid);
    return { commands: `${setRoot(found.partition)}\n${leadingTo(found)}`, to: `${root.name}:/${found.folder}/grub.cfg` };
  };
async function configurationOf(host: RaidHost, root: FoundDisk, rootUuid: string | null): Promise<Configuration> {
  const device = await host.openToRead(root);
  try {
    const { number, ...found } = await withVolumes(device, host, (volumes) => grubConfiguration(volumes, rootUuid));
    return { partition: `${(await readPartitions(device))?.label === 'gpt' ? 'gpt' : 'msdos'}${number}`, ...found };
  } finally {
    await device.close();
  }
}

/** GRUB's commands for the configuration of an image, in the file system that is GRUB's root. */
export const leadingTo = ({ folder, entries }: Pick<Configuration, 'folder' | 'entries'>): string =>
  entries === null
    ? `set prefix=($root)/${folder}\nconfigfile $prefix/grub.cfg\n`
    : `set entries=/${entries}\nset environment=/${folder}/grubenv\nexport entries environment\nconfigfile (memdisk)/bls.cfg\n`;

/** GRUB's commands, filled with line ends to the size that the core reads. Throws an Error for more than that. */
export function asLine(commands: string): Buffer {
  const bytes = Buffer.from(commands);
  if (bytes.length > LINE.size) throw new Error('the commands for the boot loader are too long');
  return Buffer.concat([bytes, Buffer.alloc(LINE.size - bytes.length, '\n')]);
}

interface LoaderFiles {
  readonly boot: Buffer;
  readonly core: Buffer;
  readonly line: Buffer;
  readonly guid: string;
}
export async function writeLoader(device: Device, { boot, core, line, guid }: LoaderFiles): Promise<void> {
  // An agent that ended while it wrote the table may have left one good copy.
  await repairGpt(device);
  const table = await readPartitions(device);
  if (!table) throw new Error(`${device.path} has no partition table`);
  const first = Math.min(...table.partitions.filter(({ type }) => type !== BIOS_BOOT).map(({ start }) => start));
  let place: { readonly start: number; readonly size: number } = { start: SECTOR, size: LINE.start - SECTOR };
  if (table.label === 'gpt')
    place =
      table.partitions.find(({ type }) => type === BIOS_BOOT) ??
      (await addToGpt(device, { size: 2 * MiB, type: BIOS_BOOT, name: 'bios-boot-part' }, guid));
  if (core.length > place.size || first < LINE.start + LINE.size)
    throw new Error(`${device.path} has no room for a boot loader before its first partition`);
  const sector = place.start / SECTOR;
  const image = Buffer.from(core);
  image.writeBigUInt64LE(BigInt(sector + 1), REST_SECTOR);
  await device.write(image, place.start);
  await device.write(line, LINE.start);
  await device.flush();
  const head = await device.read(0, SECTOR);
  boot.copy(head, 0, 0, CODE);
  head.writeBigUInt64LE(BigInt(sector), CORE_SECTOR);
  await device.write(head, 0);
  await device.flush();
}
