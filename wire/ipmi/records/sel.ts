/** The System Event Log (IPMI 2.0 §31, §32): reading and clearing it. */
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

/**
 * Entries that are added meanwhile are read, too.
 * @returns `isWhole` false: an entry could not be read, or the chain of entries has no proper end
 * @throws IpmiError when none can be read
 */
export async function readSel(ask: SendCommand): Promise<{ readonly entries: readonly SelEntry[]; readonly isWhole: boolean }> {
  const { records, isWhole } = await readChain(MAX_ENTRIES, async (id) => {
    const answer = await readEntry(ask, id).catch((error: unknown) => {
      if (isRefusal(error, COMPLETION.notPresent)) return undefined;
      throw error;
    });
    if (!answer) return undefined;
    if (answer.length < 2) throw new IpmiError('protocol', 'the BMC answered Get SEL Entry with too few bytes');
    const record = decodeSelEntry(answer.subarray(2));
    return { record, id: record?.id, next: answer.readUInt16LE(0) };
  });
  return { entries: records, isWhole };
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
