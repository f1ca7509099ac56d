/** Erases a disk by the best method that it supports, and says by which, what was read before and after, and how long it took. */
import { AgentError } from '../../model/agent/errors';
import { titleOf, type ErasedDisk, type EraseMethodName, type Sample } from '../../model/agent/erasure';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import { isReadOnly } from '../disk/guard';
import { wipeMetadata } from '../disk/partitions';
import { rescan } from '../disk/rescan';
import type { Erasing, Method } from './erasing';
import { METHODS } from './methods';
import { readBefore } from './sample';

/** What an erasure did. */
export type Erased = Pick<ErasedDisk, 'method' | 'skipped' | 'sample' | 'overwrite_seconds'>;
/** Throws BlockDeviceEraseError, and what `open` throws. */
export type Erase = (erasing: Erasing) => Promise<Erased>;

const READ_ONLY: Erased = { method: null, skipped: 'read-only', sample: null, overwrite_seconds: null };

export const eraseDisk: Erase = async (erasing) => {
  const { disk, settings, tree, log } = erasing;
  if (isReadOnly(tree, disk)) {
    if (settings['agent_erase_skip_read_only'] !== true)
      throw new AgentError('BlockDeviceEraseError', `Failed to invoke erase of device ${disk.name} as the device is flagged read-only`);
    log.info(`Skipping erase of read-only device ${disk.name}`);
    return READ_ONLY;
  }
  const device = await erasing.open(disk);
  try {
    return (await erasedByOneOf(METHODS, device, erasing, METHODS.at(-1)))!;
  } finally {
    await device.close();
  }
};

/** By a method of the disk that takes seconds, if it has one; then its metadata. */
export const eraseExpress: Erase = async (erasing) => {
  const { disk, tree, log, open } = erasing;
  if (isReadOnly(tree, disk)) {
    log.info(`Skipping erase of read-only device ${disk.name}`);
    return READ_ONLY;
  }
  const device = await open(disk);
  let erased: Erased | undefined;
  try {
    const fast = METHODS.filter(({ express }) => express);
    erased = await erasedByOneOf(fast, device, erasing);
  } finally {
    await device.close();
  }
  const metadata = await eraseMetadata(erasing);
  return erased ?? metadata;
};

/** Wipes both edges of every partition and of the disk. This removes partition tables and volume signatures, but not the data. */
export const eraseMetadata: Erase = async ({ disk, open, query, tree, clock, log }) => {
  if (isReadOnly(tree, disk)) {
    log.info(`Skipping erasure of read-only device ${disk.name}`);
    return READ_ONLY;
  }
  const device = await open(disk);
  try {
    await wipeMetadata(device);
    await device.flush();
  } finally {
    await device.close();
  }
  await rescan({ run: query, tree, clock }, disk.name);
  return { method: 'metadata', skipped: null, sample: null, overwrite_seconds: null };
};

const failure = (disk: string, method: EraseMethodName, error: unknown): string =>
  `Erasing ${disk} by ${titleOf(method)} failed: ${reasonOf(error)}`;

/** @param last its failure ends the erasure */
async function erasedByOneOf(methods: readonly Method[], device: Device, erasing: Erasing, last?: Method): Promise<Erased | undefined> {
  for (const method of methods) {
    const erased = await erasedBy(method, device, erasing, method === last);
    if (erased) return erased;
  }
  return undefined;
}

/** Undefined: the next method is to be tried. */
async function erasedBy(method: Method, device: Device, erasing: Erasing, isLast: boolean): Promise<Erased | undefined> {
  const { disk, settings, log } = erasing;
  const { name, secure } = method;
  try {
    if (!(await method.fits(erasing))) return undefined;
    const before = await readBefore(device, erasing, secure === true);
    log.info(`Erasing ${disk.name} by ${titleOf(name)}`);
    await method.erase(device, erasing);
    const sample: Sample | null = before ? await before.compare() : null;
    return { method: name, skipped: null, sample, overwrite_seconds: before?.passSeconds ?? null };
  } catch (error) {
    const text = failure(disk.name, name, error);
    const goOn = settings['agent_continue_if_secure_erase_failed'] ?? settings['agent_continue_if_ata_erase_failed'] ?? false;
    if (isLast || (secure && goOn !== true)) throw new AgentError('BlockDeviceEraseError', text, { cause: error });
    log.warn(`${text}; trying the next method`);
    return undefined;
  }
}
