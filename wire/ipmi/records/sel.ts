/** The System Event Log (IPMI 2.0 §31, §32): reading and clearing it. */
import { withReservation, type SendCommand } from '../record-access';
import { COMMANDS, COMPLETION, IpmiError } from '../constants';

export interface SelEntry {
  readonly id: number;
  /** 02h: a system event; from C0h: a vendor's record, of which only the bytes are known. */
  readonly type: number;
  /** Seconds since 1970; absent: the record has no time, or the BMC's clock was not set. */
  readonly timestamp?: number;
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
const LAST = 0xffff;
const LENGTH = 16;
/** Smaller times count from the BMC's start (§37.1). */
const FIRST_TIME = 0x2000_0000;

/** @internal */
export function decodeSelEntry(bytes: Buffer): SelEntry | undefined {
  if (bytes.length < LENGTH) return undefined;
  const [id, type, time] = [bytes.readUInt16LE(0), bytes[2]!, bytes.readUInt32LE(3)];
  const timed = type < 0xe0 && time >= FIRST_TIME && time !== 0xffff_ffff;
  const common = { id, type, ...(timed ? { timestamp: time } : {}), bytes: Buffer.from(bytes.subarray(0, LENGTH)) };
  if (type !== 0x02) return common;
  return {
    ...common,
    event: {
      ...{ generator: bytes[7]!, sensorType: bytes[10]!, sensor: bytes[11]! },
      ...{ eventType: bytes[12]! & 0x7f, deassertion: (bytes[12]! & 0x80) !== 0 },
      data: [bytes[13]!, bytes[14]!, bytes[15]!],
    },
  };
}

/** Throws IpmiError; `protocol` when the chain of entries does not end. */
export async function readSel(ask: SendCommand): Promise<readonly SelEntry[]> {
  const entries: SelEntry[] = [];
  const ids = new Set<number>();
  for (let id = 0; id !== LAST;) {
    if (ids.has(id) || ids.size >= MAX_ENTRIES) throw new IpmiError('protocol', 'the chain of SEL entries does not end');
    ids.add(id);
    // Reading whole entries needs no reservation (§31.5).
    const answer = await ask(COMMANDS.getSelEntry, [0, 0, id & 0xff, id >> 8, 0, 0xff]).catch((error: unknown) => {
      if (id === 0 && error instanceof IpmiError && error.completionCode === COMPLETION.notPresent) return undefined;
      throw error;
    });
    if (!answer) break;
    if (answer.length < 2) throw new IpmiError('protocol', 'the BMC answered Get SEL Entry with too few bytes');
    const entry = decodeSelEntry(answer.subarray(2));
    if (entry) entries.push(entry);
    id = answer.readUInt16LE(0);
  }
  return entries;
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
