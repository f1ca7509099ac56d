/** What the conductor checks of an image before the machine is touched: its size beside disk and memory, its architecture, and its type. */
import { invalidParameter } from '../../model/errors';
import { toInteger } from '../../model/python';
import type { JsonObject, NodeRecord } from '../../model/records';
import { contentOf, diskSizeOf } from '../common/image-formats';
import type { ImageSource } from '../common/images';
import { contentProblem } from '../../wire/images/disk-content';
import { canRun } from '../../wire/processors/processors';
import type { GlanceImage } from '../../wire/openstack/glance';
import type { Task } from '../interfaces';

const MIB = 2 ** 20;
const GB = 1024;

/**
 * The room on the root disk, in MiB, and `local_gb`, of which inspection leaves out one GiB. Undefined: nobody knows, since the instance asks
 * for another disk.
 */
export function diskRoom({ properties, instance_info: info }: NodeRecord): { readonly most: number; readonly local: number } | undefined {
  const local = toInteger(properties['local_gb'] ?? undefined);
  return local === undefined || local <= 0 || info['root_device'] ? undefined : { most: (local + 1) * GB, local };
}

/** An image that the agent does not stream to the disk must fit into the machine's memory. Throws InvalidParameterValue. */
export function checkMemory({ node, options }: Task, { size, diskFormat }: GlanceImage): void {
  const memory = Number(node.properties['memory_mb'] ?? NaN);
  const streams = options['agent.stream_raw_images'] && diskFormat === 'raw';
  const reserved = options['agent.memory_consumed_by_agent'];
  if (streams || size === null || Number.isNaN(memory) || size + reserved * MIB <= memory * MIB) return;
  throw invalidParameter(
    `Memory size is too small for requested image, if it is less than (image size + reserved RAM size), will break the IPA deployments. Image size: ${Math.floor(size / MIB)} MiB, Memory size: ${memory} MiB, Reserved size: ${reserved} MiB.`,
  );
}

/** Throws InvalidParameterValue for an image in Glance that is for other machines. Ironic leaves this to Nova's scheduler. */
export function checkArchitecture({ properties, uuid }: NodeRecord, image: GlanceImage['properties']): void {
  const wanted = (image['hw_architecture'] ?? image['architecture'] ?? '').toLowerCase();
  const given = properties['cpu_arch'];
  if (wanted === '' || typeof given !== 'string' || given === '') return;
  if (canRun(given.toLowerCase(), wanted)) return;
  throw invalidParameter(
    `The image of image_source is for the architecture ${wanted.slice(0, 64)}, and properties/cpu_arch of node ${uuid} is ${given.slice(0, 64)}.`,
  );
}

/**
 * Throws InvalidParameterValue for an image that is larger than the disk, or than the root partition. What cannot be seen is left to the agent.
 * @param info instance_info as it will be
 * @param stored bytes of the image's file, if Glance knows them
 */
export async function checkDiskRoom(task: Task, source: ImageSource, info: JsonObject, stored: number | null): Promise<void> {
  const { node, options } = task;
  const root = info['image_type'] === 'partition' ? Number(info['root_mb']) : undefined;
  const room = diskRoom(node);
  const most = root ?? room?.most;
  if (most === undefined || options['conductor.disable_deep_image_inspection']) return;
  const size = await diskSizeOf(source, info['image_disk_format'], task, stored);
  if (size === undefined || size <= most * MIB) return;
  const needed = Math.ceil(size / MIB);
  throw invalidParameter(
    root === undefined
      ? `The image of image_source does not fit on the disk of node ${node.uuid}: it needs ${needed} MiB, and properties/local_gb is ${room!.local}`
      : // Of ironic-python-agent
        `Root partition is too small for requested image. Image virtual size: ${needed} MB, Root size: ${root} MB`,
  );
}

/**
 * Throws InvalidParameterValue for the image of a whole disk that is to be written to a partition, and the reverse. Ironic writes them: then
 * the boot loader cannot be installed, or the machine does not boot.
 * @param info instance_info as it will be
 */
export async function checkImageType(task: Task, source: ImageSource, info: JsonObject): Promise<void> {
  const kind = info['image_type'] === 'partition' ? 'partition' : 'whole-disk';
  const content = await contentOf(source, info['image_disk_format'], task);
  const problem = content && contentProblem(content, kind);
  if (problem === undefined) return;
  const advice = kind === 'partition' ? 'image_type must be whole-disk' : 'image_type must be partition, and root_gb must be set';
  throw invalidParameter(`The image of image_source does not fit image_type ${kind}: ${problem}. In instance_info, ${advice}.`);
}
