/**
 * Writes a partition image: a table by the plan, the image in its root partition, the config drive, swap, and the ephemeral partition. Without a
 * valid checksum or config drive, or without room, the disk stays unchanged. The root partition has its superblock, and the disk its table,
 * only when the image is correct. After any later error the edges of the disk are wiped, or those of the partitions that are not preserved.
 */
import { AgentError } from '../../model/agent/errors';
import { EPHEMERAL_FORMATS, partitionFor, type PartitionPlan, type PartitionSizes, planPartitions } from '../../model/agent/partition-plan';
import { reasonOf } from '../../model/errors';
import { pathsOf } from '../disk/efi';
import { wipeEdges } from '../disk/image';
import { wipeMetadata } from '../disk/partitions';
import { prepareWriting, stream, type WriteOptions, written } from '../disk/write';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { asSerial, uuidOf } from './identity';
import { partitionDevice } from './partition-device';
import { type KeptIdentity, keptIdentity, writeTable } from './table';

interface PartitionImageOptions extends WriteOptions {
  readonly sizes: PartitionSizes;
  readonly bootMode: 'bios' | 'uefi';
  readonly label: 'gpt' | 'msdos';
  readonly random: (bytes: number) => Buffer;
  readonly run: Run;
  readonly tree: Tree;
}
interface WrittenPartitions {
  readonly rootUuid: string;
  /** Null: there is no EFI system partition. */
  readonly systemUuid: string | null;
}

/** Throws AgentError with the reason. */
export async function writePartitionImage(options: PartitionImageOptions): Promise<WrittenPartitions> {
  const { device, sizes, bootMode, label, image, log } = options;
  const { checksum, volume } = await prepareWriting(options);
  const plan = planPartitions({ bootMode, label, sizes, configDrive: volume?.length ?? 0 }, device);
  const kept = sizes.preservesEphemeral ? await keptIdentity(device, plan) : null;
  const root = partitionFor(plan, 'root')!;

  await written(async () => {
    if (!kept) await wipeMetadata(device);
    await wipePartitions(options, plan, kept);
  }, options);
  try {
    await stream({ ...options, device: partitionDevice(device, root, 'root partition') }, checksum);
    return await written(async () => {
      const configDrive = partitionFor(plan, 'configdrive');
      if (volume && configDrive) {
        await device.write(volume, configDrive.start);
        await device.zero(configDrive.start + volume.length, configDrive.size - volume.length);
      }
      await writeTable(device, plan, { newUuid: options.newGuid, random: options.random }, kept);
      await options.rescan();
      const systemUuid = await makeFileSystems(options, plan, kept);
      log.info(`Image ${String(image['id'])} written to partition ${root.number} of device ${device.path}`);
      return { rootUuid: await uuidOf(device, root), systemUuid };
    }, options);
  } catch (error) {
    const wipe = kept ? wipePartitions(options, plan, kept) : wipeEdges(device);
    await wipe.catch((also: unknown) => log.warn(`The edges of ${device.path} cannot be wiped: ${reasonOf(also)}`));
    throw error;
  }
}

/** Also what was at these places: an array, a volume group or an encrypted volume must not appear in the new system. */
async function wipePartitions({ device }: PartitionImageOptions, { partitions }: PartitionPlan, kept: KeptIdentity | null): Promise<void> {
  for (const { role, start, size } of partitions) if (!kept || role !== 'ephemeral') await wipeEdges(device, start, size);
}

/** Milliseconds for a program that makes a file system. */
const LIMIT = 3_600_000;
/** The kernel knows the partitions now. Returns the UUID of the EFI system partition. */
async function makeFileSystems(
  { device, tree, run, random, sizes }: PartitionImageOptions,
  plan: PartitionPlan,
  kept: KeptIdentity | null,
) {
  const { partition } = pathsOf(tree, device.path);
  const make = async (role: 'esp' | 'swap' | 'ephemeral', [program, ...options]: readonly string[]): Promise<void> => {
    const number = partitionFor(plan, role)?.number;
    if (number === undefined) return;
    await run(program!, [...options, partition(number)], { timeoutMs: LIMIT }).catch((error: unknown) => {
      throw new AgentError('DeploymentError', `Failed to create a file system on the ${role} partition: ${reasonOf(error)}`, {
        cause: error,
      });
    });
  };
  const serial = random(4).toString('hex');
  await make('esp', ['mkfs.vfat', '-n', 'efi-part', '-i', serial]);
  await make('swap', ['mkswap', '-L', 'swap1']);
  if (!kept) await make('ephemeral', [...EPHEMERAL_FORMATS[sizes.ephemeralFormat], 'ephemeral0']);
  return partitionFor(plan, 'esp') ? asSerial(serial) : null;
}
