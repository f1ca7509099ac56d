/** The System Event Log (IPMI 2.0 §31, §32): reading it, as a whole or from where the last reading ended, and clearing it. */
import { TOO_MANY, isRefusal, readChain, readPortions, withReservation, type SendCommand } from '../record-access';
import { COMMANDS, COMPLETION, IpmiError } from '../constants';

export interface SelEntry {
  readonly id: number;
  /** 02h: a system event; from C0h: a vendor's record, of which only the bytes are known. */
  readonly type: number;
  /** Seconds since 1970; absent: the record has no time, or the BMC's clock was not set. */
  readonly timestamp?: number | undefined;
  readonly event?: {
    /** Slave address or software ID. */
    readonly generator: number;
    readonly sensorType: number;
    readonly sensor: number;
    /** Table 42-1. */
    readonly eventType: number;
    readonly deassertion: boolean;
    readonly data: readonly [number, number, number];
  };
  /** The 16 bytes. */
  readonly bytes: Buffer;
}
/** Most entries. BMCs have room for some thousands. */
const MAX_ENTRIES = 16_384;
const LENGTH = 16;
/** Smaller times count from the BMC's start (§37.1). */
const FIRST_TIME = 0x2000_0000;

export function decodeSelEntry(bytes: Buffer): SelEntry | undefined {
  if (bytes.length < LENGTH) return undefined;
  const [id, type, time] = [bytes.readUInt16LE(0), bytes[2]!, bytes.readUInt32LE(3)];
  const timed = type < 0xe0 && time >= FIRST_TIME && time !== 0xffff_ffff;
  const common = { id, type, timestamp: timed ? time : undefined, bytes: Buffer.from(bytes.subarray(0, LENGTH)) };
  if (type !== 0x02) return common;
  return {
    ...common,
    event: {
      generator: bytes[7]!,
      sensorType: bytes[10]!,
      sensor: bytes[11]!,
      eventType: bytes[12]! & 0x7f,
      deassertion: (bytes[12]! & 0x80) !== 0,
      data: [bytes[13]!, bytes[14]!, bytes[15]!],
    },
  };
}

const WHOLE_ENTRY = 0xff;
/** The successor's ID and the entry's bytes. */
async function readEntry(ask: SendCommand, id: number): Promise<Buffer> {
  const get = (reservation: readonly number[], offset: number, count: number): Promise<Buffer> =>
    ask(COMMANDS.getSelEntry, [...reservation, id & 0xff, id >> 8, offset, count]);
  const whole = (reservation: readonly number[]): Promise<Buffer> => get(reservation, 0, WHOLE_ENTRY);
  // Reading whole entries needs no reservation (§31.5), but some BMCs want one.
  const reserved = <T>(work: (reservation: readonly number[]) => Promise<T>): Promise<T> =>
    withReservation(() => ask(COMMANDS.reserveSel, []), work);
  try {
    return await whole([0, 0]).catch((error: unknown) => {
      if (isRefusal(error, COMPLETION.reservationInvalid)) return reserved(whole);
      throw error;
    });
  } catch (error) {
    if (!isRefusal(error, ...TOO_MANY)) throw error;
    return reserved(async (reservation) => {
      let next = Buffer.alloc(0);
      const bytes = await readPortions(LENGTH, LENGTH, async (offset, count) => {
        const part = await get(reservation, offset, count);
        next = Buffer.from(part.subarray(0, 2));
        return part.subarray(2);
      });
      return Buffer.concat([next, bytes]);
    });
  }
}

const readEntries = (ask: SendCommand, from: Parameters<typeof readChain>[2] = {}) =>
  readChain(
    MAX_ENTRIES,
    async (id) => {
      const answer = await readEntry(ask, id).catch((error: unknown) => {
        if (isRefusal(error, COMPLETION.notPresent)) return undefined;
        throw error;
      });
      if (!answer) return undefined;
      if (answer.length < 2) throw new IpmiError('protocol', 'the BMC answered Get SEL Entry with too few bytes');
      const record = decodeSelEntry(answer.subarray(2));
      return { record, id: record?.id, next: answer.readUInt16LE(0) };
    },
    from,
  );
/**
 * Entries that are added meanwhile are read, too.
 * @returns `isWhole` false: an entry could not be read, or the chain of entries has no proper end
 * @throws IpmiError when none can be read
 */
export async function readSel(ask: SendCommand): Promise<{ readonly entries: readonly SelEntry[]; readonly isWhole: boolean }> {
  const { records, isWhole } = await readEntries(ask);
  return { entries: records, isWhole };
}

/** How far the log was read, and what Get SEL Info said then. */
export interface SelPosition {
  /** Of the last entry that was read; null: the log was empty. */
  readonly id: number | null;
  /** Its bytes in hexadecimal: BMCs give the ID of an entry to others, after the log was cleared or when they count anew. */
  readonly entry: string | null;
  /** Null: the reading ended before the end of the log. */
  readonly entries: number | null;
  /** Seconds of the latest addition and of the latest deletion, by the BMC's clock. */
  readonly added: number;
  readonly erased: number;
  /** Only while `entries` is null: entries before this time are older than the reading before. */
  readonly after?: number | undefined;
}
interface SelNews {
  /** The entries since the position, the oldest first. */
  readonly fresh: readonly SelEntry[];
  readonly position: SelPosition;
  readonly wasCleared: boolean;
}
/** §31.2: the number of entries, the times, and whether entries were lost since the log is full. */
async function readSelInfo(ask: SendCommand) {
  const bytes = await ask(COMMANDS.getSelInfo, []);
  if (bytes.length < 13) throw new IpmiError('protocol', 'the BMC answered Get SEL Info with too few bytes');
  return {
    entries: bytes.readUInt16LE(1),
    added: bytes.readUInt32LE(5),
    erased: bytes.readUInt32LE(9),
    overflow: ((bytes[13] ?? 0) & 0x80) !== 0,
  };
}
const LAST_ENTRY = 0xffff;
/** Entries that have the same bytes but for their IDs are the same. */
const isSame = (one: string, other: SelEntry): boolean => one.slice(4) === other.bytes.toString('hex', 2);

/** The last entry alone; by all entries where the BMC does not know the ID FFFFh. */
async function readLast(ask: SendCommand, isOver: () => boolean): Promise<SelEntry | undefined> {
  const answer = await readEntry(ask, LAST_ENTRY).catch((error: unknown) => {
    if (error instanceof IpmiError && error.completionCode !== undefined) return undefined;
    throw error;
  });
  return (answer && decodeSelEntry(answer.subarray(2))) ?? (await readEntries(ask, { isOver })).records.at(-1);
}
/**
 * Reads the entries that were added since a position: with one request if there are none. The log may have been cleared, its oldest entries
 * may have given way to new ones, and its entries may have other IDs now.
 * @param before undefined: only the position is wanted, since what happened before is history
 * @param isOver whether the time is over: the next reading goes on from there
 * @throws IpmiError
 */
export async function readNewSel(ask: SendCommand, before: SelPosition | undefined, isOver: () => boolean): Promise<SelNews> {
  const { overflow, ...info } = await readSelInfo(ask);
  const none = (last: Pick<SelPosition, 'id' | 'entry'>, wasCleared = false): SelNews => ({
    fresh: [],
    position: { ...last, ...info },
    wasCleared,
  });
  const of = (entry: SelEntry | undefined): Pick<SelPosition, 'id' | 'entry'> =>
    entry ? { id: entry.id, entry: entry.bytes.toString('hex') } : { id: null, entry: null };
  if (info.entries === 0) return none(of(undefined), before !== undefined && before.id !== null);
  if (!before) return none(of(await readLast(ask, isOver)));
  // A BMC without a clock has no time of the latest addition.
  const hasTimes = info.added >= FIRST_TIME && info.added !== 0xffff_ffff;
  if (before.entries === info.entries && before.added === info.added && before.erased === info.erased) {
    const last = hasTimes ? undefined : await readLast(ask, isOver);
    if (hasTimes || (before.entry !== null && last && isSame(before.entry, last))) return none(before);
  }
  const { entry, after } = before;
  const known = entry === null ? undefined : decodeSelEntry(Buffer.from(entry, 'hex'));
  const next = before.id === null ? undefined : await readEntries(ask, { first: before.id, isOver });
  const isThere = entry !== null && next?.records[0]?.bytes.toString('hex') === entry;
  const { records, isWhole } = isThere ? next : await readEntries(ask, { isOver });
  const at = isThere ? 0 : entry === null ? -1 : records.findLastIndex((record) => isSame(entry, record));
  const isLost = at < 0 && entry !== null;
  const limit = isLost ? known?.timestamp : after;
  const isNew = ({ timestamp }: SelEntry): boolean => limit === undefined || timestamp === undefined || timestamp >= limit;
  const isCut = !isWhole && isOver();
  const position = { ...(records.length > 0 ? of(records.at(-1)) : of(undefined)), ...info };
  return {
    fresh: records.slice(at + 1).filter(isNew),
    position: isCut ? { ...position, entries: null, after: limit } : position,
    // If older entries are there, only some were deleted.
    wasCleared: isLost && records.every(isNew) && (info.entries < (before.entries ?? 0) || (info.erased !== before.erased && !overflow)),
  };
}

const CLEAR = [0x43, 0x4c, 0x52] as const;
const INITIATE = 0xaa;
const STATUS = 0x00;
/** Most polls of the erasure's progress. */
const POLLS = 60;
/** Clears the log and waits for the end (§31.9). @param pause between polls. Throws IpmiError */
export async function clearSel(ask: SendCommand, pause: () => Promise<void>): Promise<void> {
  await withReservation(
    () => ask(COMMANDS.reserveSel, []),
    async (reservation) => {
      let answer = await ask(COMMANDS.clearSel, [...reservation, ...CLEAR, INITIATE]);
      // Bits 3:0 are 1 at the end.
      for (let n = 0; ((answer[0] ?? 1) & 0x0f) === 0; n++) {
        if (n >= POLLS) throw new IpmiError('protocol', 'the BMC does not finish clearing its SEL');
        await pause();
        answer = await ask(COMMANDS.clearSel, [...reservation, ...CLEAR, STATUS]);
      }
    },
  );
}
