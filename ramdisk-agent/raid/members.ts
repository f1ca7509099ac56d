/** What software RAID (md) left on a disk, found by its own bytes: also of arrays that cannot be started, and of work that was interrupted. */
import type { Device } from '../disk/device';
import { BIOS_BOOT, partitionsForGuard, RAID_MEMBER, readPartitions } from '../disk/partitions';

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

/** Names of the other partitions that either agent makes in a GPT. */
const OTHERS = /^(?:uefi-holder-\d+|bios-boot-part(?:-\d+)?)$/;
const MEMBER_TYPES: readonly string[] = [RAID_MEMBER.gpt, RAID_MEMBER.dos.toString(16)];
const EDGE = 2 ** 20;

/**
 * Whether the disk has partitions for members of arrays as this agent makes them, with nothing at their beginnings and ends. People's own
 * partitions for file systems may be as empty there, whatever their names are. An agent leaves them that ends after it has partitioned
 * the disk, and before it creates the array; or after it has wiped the superblocks, and before it wipes both copies of the table. A boot
 * loader is no content.
 */
export async function isUnfinished(device: Device): Promise<boolean> {
  const partitions = await partitionsForGuard(device);
  if (partitions.length === 0) return false;
  if (!partitions.every(({ name, type }) => MEMBER_TYPES.includes(type) || OTHERS.test(name))) return false;
  const parts = partitions.filter(({ type }) => type !== BIOS_BOOT).map(({ start, size }) => ({ start, size }));
  // Where only the second copy is left, something else may have begun to use the disk.
  if (!(await readPartitions(device))) parts.push({ start: 0, size: EDGE });
  for (const { start, size } of parts) {
    const edge = Math.min(EDGE, size);
    for (const place of [start, start + size - edge]) if ((await device.read(place, edge)).some((byte) => byte !== 0)) return false;
  }
  return true;
}
