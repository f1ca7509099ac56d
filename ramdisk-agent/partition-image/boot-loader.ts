/** Makes the system of a partition image bootable: its boot loader in the EFI system partition, or the ramdisk's GRUB where a BIOS looks for it. */
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { pathsOf } from '../disk/efi';
import { type Partition, readPartitions } from '../disk/partitions';
import type { FoundDisk } from '../inventory/disks';
import { grubConfiguration } from '../kexec/find-kernel';
import { readsLoaderEntries } from '../kexec/grub';
import { type MountedVolume, withVolumes } from '../kexec/volumes';
import type { RaidHost } from '../raid/arrays';
import { asLine, FOLDER, type Lead, leadingTo, writeLoader } from '../raid/bios';
import type { Tree } from '../system/tree';
import { findByUuid } from './identity';
import { grubCommands } from './grub-commands';

const SECTOR = 512;

/** Throws DeviceNotFound. */
export async function rootPartition(device: Device, uuid: string): Promise<Partition> {
  const found = await findByUuid(device, uuid);
  if (!found) throw new AgentError('DeviceNotFound', `No partition with UUID ${uuid.slice(0, 64)} found on device ${device.path}`);
  return found;
}
/** Gives `work` the root file system. */
export function withRoot<T>(
  device: Device,
  host: RaidHost,
  root: Partition,
  work: (volume: MountedVolume) => Promise<T>,
  isWritable = false,
): Promise<T> {
  const mount = async ([volume]: readonly MountedVolume[]): Promise<T> => {
    if (!volume)
      throw new Error(`partition ${root.number} has no file system that the ramdisk can mount. Is it the image of a whole disk?`);
    return work(volume);
  };
  return withVolumes(device, host, mount, { numbers: [root.number], isWritable });
}

/** Throws an Error for a ramdisk without them. */
function grubFiles(tree: Tree): { readonly boot: Buffer; readonly core: Buffer } {
  const [boot, core] = ['boot.img', 'core.img'].map((name) => tree.bytes(`${FOLDER}/${name}`));
  if (!boot || !core) throw new Error('the ramdisk has no boot loader for a BIOS');
  return { boot, core };
}

/**
 * What GRUB is told of the system in this partition.
 * @param setRoot the command for a partition, by GRUB's name
 */
async function leadToRoot(host: RaidHost, device: Device, rootUuid: string, setRoot: (partition: string) => string): Promise<Lead> {
  const root = await rootPartition(device, rootUuid);
  const label = (await readPartitions(device))?.label === 'gpt' ? 'gpt' : 'msdos';
  const commands = await withRoot(device, host, root, (volume) => {
    // A command of some distributions' own GRUB, in place of which ours reads the entries.
    const leadTo = async (text: string) => (readsLoaderEntries(text) ? leadingTo(await grubConfiguration([volume], null)) : undefined);
    return grubCommands(volume.files, setRoot(`${label}${root.number}`), rootUuid, leadTo);
  });
  return { commands, to: pathsOf(host.tree, device.path).partition(root.number) };
}
/** As `leadToRoot`, of an array's partition. */
export const leadToArray =
  (host: RaidHost, disk: FoundDisk, rootUuid: string) =>
  async (setRoot: (partition: string) => string): Promise<Lead> => {
    const device = await host.openToRead(disk);
    try {
      return await leadToRoot(host, device, rootUuid, setRoot);
    } finally {
      await device.close();
    }
  };

/** Throws DeviceNotFound without the root partition, CommandExecutionError with the reason otherwise. */
export async function installBiosLoader(host: RaidHost, disk: FoundDisk, rootUuid: string): Promise<string> {
  const device = await host.open(disk);
  try {
    const files = grubFiles(host.tree);
    // GRUB starts with the BIOS' disk as its root.
    const { commands, to } = await leadToRoot(host, device, rootUuid, (partition) => `set root="$root,${partition}"`);
    if (device.sectorSize !== SECTOR) throw new Error(`a BIOS does not start from disks whose sectors have ${device.sectorSize} bytes`);
    await writeLoader(device, { ...files, line: asLine(commands), guid: host.newUuid() });
    return `${to} by GRUB`;
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('CommandExecutionError', `Installing GRUB2 boot loader to device ${disk.name} failed with ${reasonOf(error)}.`, {
      cause: error,
    });
  } finally {
    await device.close();
  }
}
