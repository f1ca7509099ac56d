/** The config drive: an ISO 9660 or FAT volume called config-2, which the deployed system reads at its first start. */
import { gunzipSync } from 'node:zlib';
import { AgentError } from '../system/errors';
import type { Device } from './device';
import { addAtEnd, type Partition, readPartitions } from './partitions';

const MiB = 2 ** 20;
const LARGEST = 64 * MiB;
const LABEL = 'config-2';

/** `text`: base64 of the gzipped volume, or the URL of such a text. */
export async function readConfigDrive(text: string, fetchText: (url: string) => Promise<string>): Promise<Buffer> {
  const encoded = /^https?:\/\//.test(text) ? await fetchText(text) : text;
  try {
    return gunzipSync(Buffer.from(encoded.trim(), 'base64'), { maxOutputLength: LARGEST });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new AgentError('DeploymentError', 'Config drive size exceeds maximum limit of 64MiB.', { cause: error });
    }
    throw new AgentError('DeploymentError', 'Config drive is not base64 encoded gzip content or the content is malformed.', {
      cause: error,
    });
  }
}

/** Writes the volume to the partition that the image keeps for it, or to a new one at the disk's end. */
export async function writeConfigDrive(device: Device, volume: Buffer, guid: string): Promise<Partition> {
  const partition = (await labelled(device)) ?? (await added(device, volume.length, guid));
  if (volume.length > partition.size) {
    throw new AgentError(
      'DeploymentError',
      `The config drive of ${volume.length} bytes does not fit into its partition of ${partition.size} bytes`,
    );
  }
  await device.write(volume, partition.start);
  // What an earlier, longer volume left behind it is nobody's business.
  await device.zero(partition.start + volume.length, partition.size - volume.length);
  await device.flush();
  return partition;
}

async function added(device: Device, least: number, guid: string): Promise<Partition> {
  try {
    return await addAtEnd(device, LARGEST, least, guid);
  } catch (error) {
    throw new AgentError('DeploymentError', `Failed to create config drive on disk ${device.path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Volume labels by their place: ISO 9660 (sector 16), FAT32, FAT12/16. */
const LABEL_OFFSETS = [32768 + 40, 71, 43] as const;
async function labelled(device: Device): Promise<Partition | undefined> {
  for (const partition of (await readPartitions(device))?.partitions ?? []) {
    const head = await device.read(partition.start, Math.min(36864, partition.size));
    if (LABEL_OFFSETS.some((offset) => head.toString('latin1', offset, offset + LABEL.length).toLowerCase() === LABEL)) return partition;
  }
  return undefined;
}
