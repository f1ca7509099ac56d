/** How the readers of a BMC's stores (SDR, SEL, FRU) ask it. */
import { COMPLETION, IpmiError } from './constants';

/** One command; its answer without the completion code. Throws IpmiError. */
export type Ask = (words: readonly [number, number], data: readonly number[], lun?: number) => Promise<Buffer>;

/** Codes of a BMC that cannot put so many bytes into an answer. */
const TOO_MANY: readonly (number | undefined)[] = [
  COMPLETION.cannotReturnBytes,
  COMPLETION.lengthExceeded,
  COMPLETION.lengthInvalid,
  COMPLETION.outOfRange,
  COMPLETION.unspecified,
];
const LEAST = 8;

/**
 * Reads a range in portions, smaller ones when the BMC asks for that.
 * @param portion starts with this many bytes
 * @param read gets one portion; a shorter one than asked for is taken, an empty one ends it
 */
export async function readPortions(
  length: number,
  portion: number,
  read: (offset: number, count: number) => Promise<Buffer>,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = portion;
  for (let offset = 0; offset < length;) {
    const count = Math.min(size, length - offset);
    try {
      const part = (await read(offset, count)).subarray(0, count);
      if (part.length === 0) break;
      parts.push(part);
      offset += part.length;
    } catch (error) {
      if (!(error instanceof IpmiError) || !TOO_MANY.includes(error.completionCode) || size <= LEAST) throw error;
      size = Math.max(LEAST, size >> 1);
    }
  }
  return Buffer.concat(parts);
}

/** Runs `work` with a reservation, and again with a new one when it was cancelled (§33.11: others read too), a few times. */
export async function withReservation<T>(reserve: () => Promise<Buffer>, work: (reservation: readonly number[]) => Promise<T>): Promise<T> {
  for (let n = 0; ; n++) {
    // A BMC without reservations takes 0.
    const id = await reserve().catch((error: unknown) => {
      if (error instanceof IpmiError && error.completionCode === COMPLETION.invalidCommand) return Buffer.alloc(2);
      throw error;
    });
    try {
      return await work([id[0] ?? 0, id[1] ?? 0]);
    } catch (error) {
      if (n >= RESERVATIONS || !(error instanceof IpmiError) || error.completionCode !== COMPLETION.reservationInvalid) throw error;
    }
  }
}
const RESERVATIONS = 5;
