/** How the readers of a BMC's stores (SDR, SEL, FRU) send commands. */
import { COMPLETION, IpmiError, type CommandCode } from './constants';

/** Sends one command and returns the response without the completion code. Throws IpmiError. */
export type SendCommand = (code: CommandCode, data: readonly number[], lun?: number) => Promise<Buffer>;

/** Completion codes of a BMC that cannot return as many bytes as the request asks for. */
const TOO_MANY: readonly (number | undefined)[] = [
  COMPLETION.cannotReturnBytes,
  COMPLETION.lengthExceeded,
  COMPLETION.lengthInvalid,
  COMPLETION.outOfRange,
  COMPLETION.unspecified,
];
const LEAST = 8;

/**
 * Reads a range in portions, and in smaller ones when the BMC refuses them.
 * @param portion the first portion's size in bytes
 * @param read returns one portion, possibly a shorter one; an empty one ends the reading
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

/** Runs `work` with a reservation. Repeats it with a new one, a few times, when another reader cancelled the first (§33.11). */
export async function withReservation<T>(reserve: () => Promise<Buffer>, work: (reservation: readonly number[]) => Promise<T>): Promise<T> {
  for (let n = 0; ; n++) {
    // A BMC without reservations accepts 0.
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
