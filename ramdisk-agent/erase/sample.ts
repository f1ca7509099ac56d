/** Random places of a disk, read before and after an erasure. */
import { createHash } from 'node:crypto';
import type { Sample } from '../../model/agent/erasure';
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import type { Erasing } from './erasing';

const PLACES = 64;
const BYTES = 4096;
const MiB = 2 ** 20;
/** After as many, the others count as unreadable too. */
const MAX_UNREADABLE = 4;
/** Of a long read, whose speed tells how long a pass over the disk takes. */
const MEASURED = 32 * MiB;

interface Place {
  readonly position: number;
  /** A digest, so that no data of the instance stays in memory. Null: one byte, repeated. */
  readonly digest: string | null;
}
const isRepeated = (bytes: Buffer): boolean => bytes.every((byte) => byte === bytes[0]);
const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64');

/** Positions of sectors. On a disk that is smaller than all places, fewer. */
function positionsOn(size: number, random: Erasing['random']): readonly number[] {
  const sectors = Math.floor(size / BYTES);
  const chosen = Array.from({ length: Math.min(PLACES, sectors) }, () => Number(random(8).readBigUInt64LE() % BigInt(sectors)) * BYTES);
  return [...new Set(chosen)].sort((left, right) => left - right);
}
/** The kernel keeps what was read: the next read must come from the disk. */
const forget = ({ query, disk, log }: Erasing): Promise<void> =>
  query('blockdev', ['--flushbufs', disk.name]).then(
    () => {},
    (error: unknown) => log.info(`${disk.name}: ${reasonOf(error)}`),
  );

interface Before {
  /** Seconds for one pass over the disk; null: unknown. */
  readonly passSeconds: number | null;
  readonly compare: () => Promise<Sample>;
}
/**
 * Reads the places. `compare` reads them again; it throws an Error if data of one of them is still there. A disk that cannot be read before
 * may be erased, and then nothing can be compared.
 */
export async function readBefore(device: Device, erasing: Erasing, isMeasured: boolean): Promise<Before | undefined> {
  const { random, disk, clock, log } = erasing;
  const places: Place[] = [];
  try {
    for (const position of positionsOn(device.size, random)) {
      const bytes = await device.read(position, BYTES);
      places.push({ position, digest: isRepeated(bytes) ? null : digestOf(bytes) });
    }
    const passSeconds = isMeasured ? await measured(device, clock) : null;
    return { passSeconds, compare: () => compared(device, erasing, places) };
  } catch (error) {
    log.warn(`${disk.name} cannot be read before it is erased: ${reasonOf(error)}`);
    return undefined;
  }
}

async function measured(device: Device, clock: Erasing['clock']): Promise<number | null> {
  const bytes = Math.min(MEASURED, device.size);
  const begin = clock.now();
  for (let done = 0; done < bytes; done += MiB) await device.read(done, Math.min(MiB, bytes - done));
  const took = clock.now() - begin;
  return took > 0 ? Math.round((took / 1000) * (device.size / bytes)) : null;
}

async function compared(device: Device, erasing: Erasing, places: readonly Place[]): Promise<Sample> {
  await forget(erasing);
  let [zero, blank, changed, same, unreadable] = [0, 0, 0, 0, 0];
  for (const { position, digest } of places) {
    // Each error may take the disk some seconds.
    const bytes = unreadable < MAX_UNREADABLE ? await device.read(position, BYTES).catch(() => undefined) : undefined;
    if (!bytes) unreadable++;
    else if (isRepeated(bytes)) {
      if (bytes[0] === 0) zero++;
      else blank++;
    } else if (digestOf(bytes) === digest) same++;
    else changed++;
  }
  if (same > 0) throw new Error(`${same} of ${places.length} places that were read still have their data`);
  const held = places.filter(({ digest }) => digest !== null).length;
  return { places: places.length, bytes: BYTES, held_data: held, zero, blank, changed, same, unreadable };
}
