/** Superblocks of software RAID (md) on a disk and its partitions, found by their own bytes: also those of arrays that cannot be started. */
import type { Device } from '../disk/device';
import { partitionsForGuard } from '../disk/partitions';

/** Both formats begin with it, in the byte order of the machine that wrote it. */
const MAGIC = [Buffer.from('fc4e2ba9', 'hex'), Buffer.from('a92b4efc', 'hex')];
const KiB = 1024;
/** Bytes of a device → where a superblock is, by the version of its metadata. */
const PLACES: readonly ((size: number) => number)[] = [
  // 0.90: in the last 64 KiB that begin at a multiple of 64 KiB and do not reach the end
  (size) => Math.floor(size / (64 * KiB)) * 64 * KiB - 64 * KiB,
  // 1.0: at least 8 KiB before the end
  (size) => Math.floor((size - 8 * KiB) / (4 * KiB)) * 4 * KiB,
  // 1.1
  () => 0,
  // 1.2
  () => 4 * KiB,
];

/** Whether the disk or one of its partitions is a member of an array, or was one. */
export async function isMember(device: Device): Promise<boolean> {
  for (const { start, size } of [{ start: 0, size: device.size }, ...(await partitionsForGuard(device))]) {
    for (const placeIn of PLACES) {
      const place = placeIn(size);
      if (place < 0 || start + place + 4 > device.size) continue;
      const found = await device.read(start + place, 4);
      if (MAGIC.some((magic) => magic.equals(found))) return true;
    }
  }
  return false;
}
