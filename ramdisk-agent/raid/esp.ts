/**
 * UEFI: firmware reads no arrays. Each disk of the root array gets an EFI system partition, and these are an array of their own, whose members
 * look like plain partitions to the firmware: its superblock is at the end (metadata 1.0). The files of the image's partition move there.
 */
import { cp } from 'node:fs/promises';
import { AgentError } from '../../model/agent/errors';
import { ESP_SIZE, ESP_VOLUME } from '../../model/agent/software-raid';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { findLoader, type Loader, makeBootEntry, mounted, NO_LOADER } from '../disk/efi';
import { rescan } from '../disk/rescan';
import { addToGpt, EFI_SYSTEM, partitionNumber, readPartitions, repairGpt } from '../disk/partitions';
import type { FoundDisk } from '../inventory/disks';
import { arraysOf, holderOf, type RaidArray, type RaidHost } from './arrays';
import { freeArray, makeArray, partitionOf } from './configuration';

/** A FAT file system's label and serial number (Microsoft's specification of FAT, 3.1 to 3.3). */
interface Fat {
  readonly label: string;
  /** 8 hexadecimal digits, as mkfs.vfat takes them. */
  readonly serial: string;
}
async function readFat(device: Device, start: number): Promise<Fat | null> {
  const sector = await device.read(start, 512);
  const at = [
    [82, 'FAT32', 67],
    [54, 'FAT1', 39],
  ].find(([offset, text]) => sector.toString('latin1', offset as number, (offset as number) + (text as string).length) === text)?.[2] as
    | number
    | undefined;
  if (at === undefined || sector.length < 512 || sector.readUInt16LE(510) !== 0xaa55) return null;
  const label = sector.toString('latin1', at + 4, at + 15).trimEnd();
  return {
    label: /^[\x20-\x7e]+$/.test(label) && label !== 'NO NAME' ? label : 'esp',
    serial: sector.readUInt32LE(at).toString(16).padStart(8, '0'),
  };
}

/**
 * Throws DeviceNotFound where neither the image nor the disks have an EFI system partition, and CommandExecutionError with the reason.
 * @param fill puts files in the partition of the array, before they move
 */
export async function installEspArray(
  host: RaidHost,
  array: RaidArray,
  root: FoundDisk,
  fill?: (device: Device) => Promise<void>,
): Promise<readonly Loader[]> {
  const { run, temporary } = host;
  const device = await host.open(root);
  try {
    const table = await readPartitions(device);
    const system = table?.partitions.find((partition) => partition.type === EFI_SYSTEM[table.label]);
    const fat = system ? await readFat(device, system.start) : null;
    const existing = (await arraysOf(host)).find((each) => each.volume === ESP_VOLUME && isOnSameDisks(each, array));
    // An earlier attempt may have moved the files.
    if (!fat && !existing) {
      const text = `No EFI partition could be detected on device ${root.name}. Are you using a UEFI-compatible image?`;
      throw new AgentError('DeviceNotFound', text);
    }
    if (fat) await fill?.(device);
    const esp = existing ?? (await createEspArray(host, array));
    if (system && fat) {
      await format(host, esp, fat);
      const copy = (from: string) => mounted(run, esp.name, temporary, (to) => cp(from, to, { recursive: true, dereference: false }), 'rw');
      await mounted(run, partitionOf(host, root.name, system.number), temporary, copy);
    }
    const loader = await mounted(run, esp.name, temporary, findLoader);
    if (!loader) throw new Error(NO_LOADER);
    // Systems mount it by its serial number, which only one file system may have.
    if (system && fat) await device.zero(system.start, FAT_HEAD);
    await device.flush();
    return await makeEntries(host, esp, loader);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('CommandExecutionError', `Could not configure UEFI boot on device ${root.name}: ${reasonOf(error)}`, {
      cause: error,
    });
  } finally {
    await device.close();
  }
}
/** Those of other disks are another system's. */
const isOnSameDisks = (one: RaidArray, other: RaidArray): boolean =>
  one.name !== other.name && one.holders.length === other.holders.length && one.holders.every((disk) => other.holders.includes(disk));
async function format(host: RaidHost, { name }: RaidArray, { label, serial }: Fat): Promise<void> {
  const disk = host.disks().find((candidate) => candidate.name === name);
  if (!disk) throw new Error(`${name} has gone`);
  const device = await host.open(disk);
  try {
    await device.command('mkfs.vfat', ['-n', label, '-i', serial]);
  } finally {
    await device.close();
  }
}
/** Bytes with the boot sector of a FAT file system and its copy. */
const FAT_HEAD = 64 * 1024;

async function createEspArray(host: RaidHost, { holders }: RaidArray): Promise<RaidArray> {
  const { run, tree } = host;
  const members: string[] = [];
  const taken = new Set((await arraysOf(host)).flatMap((array) => array.members));
  for (const [index, holder] of holders.entries()) {
    const disk = host.disks().find(({ name }) => name === holder);
    if (!disk) throw new Error(`${holder} has gone`);
    const device = await host.open(disk);
    try {
      const name = `uefi-holder-${index}`;
      // An agent that ended while it wrote the table may have left one good copy.
      await repairGpt(device);
      // That of an attempt that was interrupted, and of no array
      const earlier = (await readPartitions(device))?.partitions.find(
        (partition) => partition.name === name && !taken.has(partitionOf(host, holder, partition.number)),
      );
      const added = earlier ?? (await addToGpt(device, { size: ESP_SIZE, type: EFI_SYSTEM.gpt, name }, host.newUuid()));
      await device.zero(added.start, FAT_HEAD);
      await device.zero(added.start + added.size - FAT_HEAD, FAT_HEAD);
      await device.flush();
      members.push(partitionOf(host, holder, added.number));
      // The kernel reads no table of a disk in use: it is told of the one new partition.
      if (tree.list(`/sys/class/block/${members.at(-1)!.slice('/dev/'.length)}`).length > 0) continue;
      if (holder.startsWith('/dev/dm-')) await rescan(host, holder);
      else await run('addpart', [holder, String(added.number), String(added.start / SECTOR), String(added.size / SECTOR)]);
    } finally {
      await device.close();
    }
  }
  await run('udevadm', ['settle', '-t', '30']).catch(() => '');
  const name = freeArray(host);
  await makeArray(host, name, ['--force', '--run', '--metadata=1.0', '--level=1', `--name=${ESP_VOLUME}`], members);
  const made = (await arraysOf(host)).find((array) => array.name === name);
  if (!made) throw new Error(`${name} has gone`);
  return made;
}
/** The kernel counts partitions in it, whatever the disk's own is. */
const SECTOR = 512;

/** One entry for each disk, the first disk's first: the firmware then starts from any of them. */
async function makeEntries(host: RaidHost, esp: RaidArray, { path, label }: Loader): Promise<readonly Loader[]> {
  const made: Loader[] = [];
  for (const [index, member] of [...esp.members.entries()].reverse()) {
    const disk = holderOf(host.tree, member);
    const entry = { path, label: `${label} (RAID, part${index})` };
    await makeBootEntry(host.run, entry, { disk: pathOf(host, disk), partition: partitionNumber(member) });
    made.unshift(entry);
  }
  return made;
}
/** The firmware knows only the paths of a multipath device. */
const pathOf = ({ tree }: RaidHost, disk: string): string => {
  const path = tree.list(`/sys/block/${disk.slice('/dev/'.length).replaceAll('/', '!')}/slaves`)[0];
  return path === undefined ? disk : `/dev/${path}`;
};
