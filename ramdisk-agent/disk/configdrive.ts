/** The config drive: an ISO 9660 or FAT volume called config-2, which the deployed system reads at its first boot. */
import { AgentError } from '../../model/agent/errors';
import type { Device } from './device';
import { addAtEnd, type Partition, readPartitions } from './partitions';

const MiB = 2 ** 20;
const MAX = 64 * MiB;
const LABEL = 'config-2';

/** Writes the volume to the image's config drive partition, or to a new one at the disk's end. */
export async function writeConfigDrive(device: Device, volume: Buffer, guid: string): Promise<Partition> {
  const partition = (await labelled(device)) ?? (await added(device, volume.length, guid));
  if (volume.length > partition.size) {
    throw new AgentError(
      'DeploymentError',
      `The config drive of ${volume.length} bytes does not fit into its partition of ${partition.size} bytes`,
    );
  }
  await device.write(volume, partition.start);
  // Removes the rest of an earlier, longer volume.
  await device.zero(partition.start + volume.length, partition.size - volume.length);
  await device.flush();
  return partition;
}

async function added(device: Device, least: number, guid: string): Promise<Partition> {
  try {
    return await addAtEnd(device, MAX, least, guid);
  } catch (error) {
    throw new AgentError('DeploymentError', `Failed to create config drive on disk ${device.path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Offsets of volume labels: ISO 9660 (sector 16), FAT32, FAT12/16. */
const LABEL_OFFSETS = [32768 + 40, 71, 43] as const;
async function labelled(device: Device): Promise<Partition | undefined> {
  for (const partition of (await readPartitions(device))?.partitions ?? []) {
    const head = await device.read(partition.start, Math.min(36864, partition.size));
    if (LABEL_OFFSETS.some((offset) => head.toString('latin1', offset, offset + LABEL.length).toLowerCase() === LABEL)) return partition;
  }
  return undefined;
}
