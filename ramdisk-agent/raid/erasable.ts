/** The disks that a machine with software RAID erases. */
import type { JsonObject } from '../../model/records';
import type { FoundDisk } from '../inventory/disks';
import { arraysOf, hasArrays, isArray, releaseHolders, type RaidHost } from './arrays';
import { emptyArray, fatesOf } from './configuration';
import { wantsArrays } from './root';
import { untouchable } from './untouchable';
import { isReadOnly } from '../disk/guard';

/**
 * Those of the disks that are erased themselves. Where the node has software RAID, its arrays are erased, and not the disks that they are on.
 * Other arrays are leftovers: they are stopped, and their disks erased. What is untouchable stays (untouchable.ts). Throws ProtectedDeviceError
 * before it stops one. What uses the disks, such as a volume of LVM, is stopped as well.
 */
export async function erasableDisks(host: RaidHost, node: JsonObject, disks: readonly FoundDisk[]): Promise<readonly FoundDisk[]> {
  const erased = await chosenOf(host, node, disks);
  await refuseProtected(host, erased);
  for (const disk of erased) await releaseHolders(host, disk.name);
  return erased;
}
/** A disk that is write-protected by itself is not erased, and says so later. */
async function refuseProtected(host: RaidHost, disks: readonly FoundDisk[]): Promise<void> {
  for (const disk of disks) if (!isReadOnly(host.tree, disk)) await (await host.open(disk)).close();
}

async function chosenOf(host: RaidHost, node: JsonObject, disks: readonly FoundDisk[]): Promise<readonly FoundDisk[]> {
  if (!hasArrays(host.tree)) return disks;
  const arrays = await arraysOf(host);
  const untouched = untouchable(host.tree, host.disks(), node);
  if (wantsArrays(node)) {
    const fates = fatesOf(arrays, node, untouched);
    const members = new Set(arrays.flatMap(({ below }) => below));
    for (const name of members) host.log.info(`Skipping erasure of RAID member device ${name}`);
    const staying = new Set(arrays.filter((array) => fates.get(array) !== 'delete').map(({ name }) => name));
    return disks.filter(({ name }) => !members.has(name) && !staying.has(name) && !untouched.has(name));
  }
  const erased = disks.filter((disk) => !untouched.has(disk.name) && !isArray(disk));
  await refuseProtected(host, erased);
  for (const array of arrays) if (!untouched.has(array.name)) await emptyArray(host, array);
  return erased;
}
