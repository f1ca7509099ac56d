/**
 * The only way to a disk that can be written. Everything that changes a disk uses the Device that `openToWrite` returns, which refuses
 * shared storage, the media of the ramdisk, disks that are to be kept and write-protected ones. Other hosts use shared storage at the same time, so erasing it destroys
 * their data.
 */
import { AgentError } from '../../model/agent/errors';
import { concerning, describeDisk } from '../../model/agent/subject';
import { reasonOf } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import { shortened } from '../../model/text';
import type { FoundDisk } from '../inventory/disks';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';
import { type Device, openDevice } from './device';
import { partitionsForGuard } from './partitions';
import { type Limited, limited, type StallLimit } from './stall';

type OpenedDisk = Pick<FoundDisk, 'name' | 'size' | 'logical_sectors'> & Partial<Pick<FoundDisk, 'serial' | 'wwn' | 'model'>>;
/** How long a disk may do nothing. */
interface Patience extends Omit<StallLimit, 'stat'> {
  readonly tree: Tree;
  readonly run: Run;
}
interface Guard extends Patience {
  /** Disks that carry what the ramdisk is booted from or configured by. */
  readonly media: readonly string[];
  /** Disks and arrays that stay: for the request which released the machine, or for skip_block_devices (raid/untouchable.ts). */
  readonly kept: readonly string[];
  /** False: the operator allows that shared storage is erased. */
  readonly protectsShared: boolean;
}

/** Types of partitions (GPT: a GUID, MBR: hexadecimal digits) → what they contain. */
const TYPES: Readonly<Record<string, string>> = {
  '37affc90-ef7d-4e96-91c3-2d7ae055b174': 'IBM GPFS Partition',
  'aa31e02a-400f-11db-9590-000c2911d1b8': 'VMware VMFS Partition (GPT)',
  fb: 'VMware VMFS Partition (MBR)',
};
const MiB = 2 ** 20;
/** Offset in a disk or partition, the bytes there, and what they identify. */
const SIGNATURES: readonly (readonly [number, string, string])[] = [
  [65536, '01161970', 'Red Hat Global File System 2'],
  [MiB, '0dd001c0', 'VMware VMFS volume'],
  [2 * MiB, '5ef1ab2f', 'VMware VMFS file system'],
];

/** Characters of a line of the kernel's log. */
const MAX_WORDS = 200;

const attribute = (tree: Tree, { name }: OpenedDisk, file: string): string | null =>
  tree.text(`/sys/block/${name.slice('/dev/'.length).replaceAll('/', '!')}/${file}`);
/** Errors name the disk, whatever work they end. */
function deviceOf(disk: OpenedDisk, { tree, run, clock, limitMs }: Patience) {
  const limit = limited({ clock, limitMs, stat: () => attribute(tree, disk, 'stat') });
  const subject = (): string => describeDisk(disk);
  const explained = (error: unknown): Promise<never> => withKernelsWords(error, disk, run);
  const named: Limited = {
    end: () => limit.end(),
    run: (operation) => concerning(subject, () => limit.run(operation).catch(explained)),
  };
  return { path: disk.name, size: disk.size, sectorSize: disk.logical_sectors ?? 512, limit: named };
}
/** A system call fails with EIO for most errors of disks. The kernel's log tells which it was, and where. */
async function withKernelsWords(error: unknown, { name }: OpenedDisk, run: Run): Promise<never> {
  const log = await run('dmesg', [], { timeoutMs: 5000 }).catch(() => '');
  const line = log.split('\n').findLast((text) => text.includes(` error, dev ${name.slice('/dev/'.length)}, sector `));
  if (line === undefined) throw error;
  const words = shortened(line.replace(/^\[[^\]]{0,20}\] /, ''), MAX_WORDS);
  throw new Error(`${reasonOf(error)} (the kernel: ${words})`, { cause: error });
}
export const openToRead = (disk: OpenedDisk, patience: Patience): Promise<Device> =>
  openDevice({ ...deviceOf(disk, patience), mode: 'read' });

export const isReadOnly = (tree: Tree, disk: OpenedDisk): boolean => attribute(tree, disk, 'ro') === '1';

/** Throws ProtectedDeviceError for shared storage, media of the ramdisk and disks to keep, CommandExecutionError for a write-protected disk. */
export async function openToWrite(disk: OpenedDisk, guard: Guard): Promise<Device> {
  const { tree, run, media, kept, protectsShared } = guard;
  if (kept.includes(disk.name))
    throw new AgentError(
      'ProtectedDeviceError',
      `Device ${disk.name} is to be kept, as the request says that released the machine, or skip_block_devices`,
    );
  if (media.includes(disk.name)) throw refusal(disk.name, 'medium of the ramdisk');
  if (isReadOnly(tree, disk)) throw new AgentError('CommandExecutionError', `Device ${disk.name} is write-protected`);
  const device = await openDevice({ ...deviceOf(disk, guard), mode: 'write', run });
  try {
    const shared = protectsShared ? await sharedStorageOn(device) : undefined;
    if (shared !== undefined) throw refusal(disk.name, shared);
    return device;
  } catch (error) {
    await device.close();
    throw error;
  }
}

const refusal = (device: string, what: string): AgentError =>
  new AgentError(
    'ProtectedDeviceError',
    `Protected ${what} located on device ${device}. Other hosts may use this volume. Detach it from the machine, or allow its destruction by wipe_special_filesystems in driver_info.`,
  );

/** What is on the disk or one of its partitions that several hosts use at once. Undefined: nothing of that kind. */
async function sharedStorageOn(device: Device): Promise<string | undefined> {
  const partitions = await partitionsForGuard(device);
  for (const { type } of partitions) if (Object.hasOwn(TYPES, type)) return TYPES[type];
  for (const { start, size } of [{ start: 0, size: device.size }, ...partitions]) {
    for (const [offset, signature, what] of SIGNATURES) {
      if (offset + signature.length / 2 > size) continue;
      if ((await device.read(start + offset, signature.length / 2)).toString('hex') === signature) return what;
    }
  }
  return undefined;
}

const TRUE = ['1', 't', 'true', 'on', 'y', 'yes'];
const FALSE = ['0', 'f', 'false', 'off', 'n', 'no'];
/** Whether shared storage is protected: by the kernel's command line and by the node's `driver_info`, which may both allow its destruction. */
export function protectsShared(parameter: boolean, node: JsonObject): boolean {
  const of = (name: string): string => {
    const info = node['driver_info'];
    return typeof info === 'object' && info !== null ? String((info as JsonObject)[name]).toLowerCase() : '';
  };
  return parameter && !TRUE.includes(of('wipe_special_filesystems')) && !FALSE.includes(of('guard_special_filesystems'));
}
