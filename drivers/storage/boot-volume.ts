/** Instances on volumes: whether a node has one, and what its deployment must know about it. For storage and deploy interfaces. */
import { Fault, reasonOf } from '../../model/errors';
import type { VolumeTargetRecord } from '../../model/records';
import { iscsiBoot } from '../../wire/iscsi';
import { machineCapabilities } from '../common/capabilities';
import type { Task } from '../interfaces';

/** Volume type → the capability of machines that boot it. */
const BOOT_CAPABILITIES: Readonly<Record<string, readonly [name: string, label: string, capability: string]>> = {
  iscsi: ['an iSCSI', 'iSCSI', 'iscsi_boot'],
  fibre_channel: ['a Fibre Channel', 'Fibre Channel', 'fibre_channel_boot'],
};
/** The reason why nothing boots this volume; undefined: its type is known. */
export const unknownType = ({ uuid, volume_type: type }: VolumeTargetRecord): string | undefined =>
  Object.hasOwn(BOOT_CAPABILITIES, type)
    ? undefined
    : `Volume target ${uuid} is of an unknown type '${type}'. Supported types: 'iscsi' or 'fibre_channel'`;

export async function bootTarget({ volumes, node }: Task): Promise<VolumeTargetRecord | undefined> {
  const [first] = await volumes.targets(node.uuid);
  return first?.boot_index === 0 ? first : undefined;
}

/** Implements `shouldWriteImage`. An image is written to the local disk; without an image, the instance is on the boot volume, if any. */
export const writesImage = async (task: Task): Promise<boolean> =>
  'image_source' in task.node.instance_info || (await bootTarget(task)) === undefined;

/** Throws InvalidParameterValue when iPXE cannot find the volumes by their properties. */
export async function checkIscsiVolumes({ volumes, node }: Task): Promise<void> {
  const [connectors, targets] = await Promise.all([volumes.connectors(node.uuid), volumes.targets(node.uuid)]);
  try {
    iscsiBoot(connectors, targets);
  } catch (error) {
    throw new Fault('InvalidParameterValue', { message: `${reasonOf(error)}.` }, { cause: error });
  }
}

/** Saves which volume the node boots from. Throws StorageError when the machine cannot boot from it. */
export async function saveBootVolume(task: Task): Promise<void> {
  const target = await bootTarget(task);
  const [name, label, capability] = (target && BOOT_CAPABILITIES[target.volume_type.toLowerCase()]) ?? [];
  if (capability !== undefined && !(capability in machineCapabilities(task.node)))
    throw new Fault('StorageError', {
      message: `Node ${task.node.uuid} has ${name} boot volume defined and no ${label} boot support available.`,
    });
  const isBooted = target?.volume_type === 'iscsi' && task.driver.boot.bootsVolumes === true;
  await task.saveInternal({ boot_from_volume: isBooted ? target.uuid : undefined });
}

/** Whether the boot interface boots the instance from an iSCSI volume. */
export async function bootsFromVolume(task: Task): Promise<boolean> {
  const noted = task.node.driver_internal_info.boot_from_volume;
  if (noted === undefined) return false;
  const target = await bootTarget(task);
  return target?.uuid === noted && target.volume_type === 'iscsi';
}

/** Attaches the volumes of a new instance, and checks that they can be booted. */
export async function attachVolumes(task: Task): Promise<void> {
  await saveBootVolume(task);
  await task.driver.storage.attachVolumes?.(task);
  if (await bootsFromVolume(task)) await checkIscsiVolumes(task);
}

/** Detaches the volumes of an instance that has ended, and forgets them. */
export async function forgetVolumes(task: Task): Promise<void> {
  await task.driver.storage.detachVolumes?.(task);
  await task.volumes.removeTargets(task.node.uuid);
  await task.saveInternal({ boot_from_volume: undefined });
}
