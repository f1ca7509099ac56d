/** How the readers of a BMC's stores (SDR, SEL, FRU) send commands. */
import { COMPLETION, IpmiError, mayPass, type CommandCode } from './constants';

/** Sends one command and returns the response without the completion code. Throws IpmiError. */
export type SendCommand = (code: CommandCode, data: readonly number[], lun?: number) => Promise<Buffer>;

export const isRefusal = (error: unknown, ...codes: readonly number[]): error is IpmiError =>
  error instanceof IpmiError && error.completionCode !== undefined && codes.includes(error.completionCode);

/** One record of a chain. */
interface Link<T> {
  /** Absent: not usable. */
  readonly record?: T | undefined;
  /** The record's own ID, if the bytes contain one. */
  readonly id?: number | undefined;
  readonly next: number;
  /** Why there is no record. */
  readonly fault?: IpmiError | undefined;
}
/** The ID of the first record, and the successor of the last. */
const FIRST = 0;
const LAST = 0xffff;
/** IDs in a row that are tried after a record whose successor is unknown. */
const MAX_MISSES = 16;
/** Records that cost a whole timeout. */
const MAX_SLOW = 1;

/**
 * Reads a chain of records, each of which has the ID of the next. The BMC's chain is not trusted: a record that cannot be read does not cost
 * the others, and neither does a circle. The reader then tries the following IDs, because most BMCs count.
 * @param most records
 * @param read undefined: there is no such record
 * @param from the first record, and whether no further one is to be read
 * @returns `isWhole` false: a record could not be read, or the chain has no proper end
 * @throws IpmiError when no record can be read, or the BMC does not answer any more
 */
export async function readChain<T>(
  most: number,
  read: (id: number) => Promise<Link<T> | undefined>,
  { first = FIRST, isOver = () => false }: { readonly first?: number; readonly isOver?: () => boolean } = {},
): Promise<{ readonly records: readonly T[]; readonly isWhole: boolean }> {
  const records: T[] = [];
  const [asked, own] = [new Set<number>(), new Set<number>()];
  let fault: IpmiError | undefined;
  let [misses, slow, isWhole] = [0, 0, true];
  for (let id = first; id !== LAST && asked.size < most && misses <= MAX_MISSES && slow <= MAX_SLOW;) {
    if (isOver()) {
      isWhole = false;
      break;
    }
    asked.add(id);
    const found = await read(id).catch((error: unknown): Link<T> => {
      if (!(error instanceof IpmiError) || !['completion', 'protocol', 'unreachable'].includes(error.kind)) throw error;
      if (error.kind === 'unreachable' || mayPass(error)) slow++;
      if (error.kind === 'unreachable' && slow > MAX_SLOW) throw error;
      return { fault: error, next: FIRST };
    });
    if (!found && id === first) break;
    fault ??= found?.fault;
    // The first record has a second ID, 0. While IDs are tried, a BMC may answer with any record.
    const isKnown = found?.id !== undefined && own.has(found.id) && (found.id === id || misses > 0);
    const isNew = found !== undefined && !isKnown;
    if (found?.record !== undefined && isNew) records.push(found.record);
    if (found?.id !== undefined) own.add(found.id);
    const next = isNew ? found.next : FIRST;
    if (next === LAST || (next !== FIRST && !asked.has(next))) {
      misses = 0;
      id = next;
    } else {
      isWhole = false;
      misses++;
      do id++;
      while (asked.has(id));
    }
    if (id > LAST) break;
    if (asked.size >= most) isWhole = false;
  }
  if (records.length === 0 && fault) throw fault;
  return { records, isWhole: isWhole && fault === undefined };
}

/** Completion codes of a BMC that cannot return as many bytes as the request asks for. */
export const TOO_MANY: readonly number[] = [
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
 * @param least the smallest portion
 * @param mayEnd the range may be longer than what can be read: after the first portion, a refusal ends the reading
 */
export async function readPortions(
  length: number,
  portion: number,
  read: (offset: number, count: number) => Promise<Buffer>,
  { least = LEAST, mayEnd = false }: { readonly least?: number; readonly mayEnd?: boolean } = {},
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
      if (!isRefusal(error, ...TOO_MANY)) throw error;
      if (size <= least) {
        if (mayEnd && offset > 0) break;
        throw error;
      }
      size = Math.max(least, Math.min(size, length - offset) >> 1);
    }
  }
  return Buffer.concat(parts);
}

/** Runs `work` with a reservation. Repeats it with a new one, a few times, when another reader cancelled the first (§33.11). */
export async function withReservation<T>(reserve: () => Promise<Buffer>, work: (reservation: readonly number[]) => Promise<T>): Promise<T> {
  for (let n = 0; ; n++) {
    // A BMC without reservations accepts 0.
    const id = await reserve().catch((error: unknown) => {
      if (isRefusal(error, COMPLETION.invalidCommand, COMPLETION.invalidForLun)) return Buffer.alloc(2);
      throw error;
    });
    try {
      return await work([id[0] ?? 0, id[1] ?? 0]);
    } catch (error) {
      if (n >= RESERVATIONS || !isRefusal(error, COMPLETION.reservationInvalid)) throw error;
    }
  }
}
const RESERVATIONS = 5;
