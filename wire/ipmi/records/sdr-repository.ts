/** Reading a BMC's sensor data records (IPMI 2.0 §33, §35.2–35.4), with bounds: what it says of their chain is not trusted. */
import { readPortions, withReservation, type Ask } from '../ask';
import { COMMANDS, COMPLETION, IpmiError } from '../constants';
import { decodeSdr, type SensorDataRecord } from './sdr';

/** Records read at most. Large machines have a few hundred. */
const MAX_RECORDS = 4096;
const HEADER = 5;
const LAST = 0xffff;
/** A message of IPMI over IPMB, which some BMCs think of on the LAN too, has room for no more. */
const PORTION = 22;

interface Source {
  readonly reserve: readonly [number, number];
  readonly get: readonly [number, number];
  readonly info: readonly [number, number];
  /** Of its answer, what changes when a record does. */
  readonly stamp: (info: Buffer) => Buffer;
}
const REPOSITORY: Source = {
  ...{ reserve: COMMANDS.reserveSdrRepository, get: COMMANDS.getSdr, info: COMMANDS.getSdrRepositoryInfo },
  // How many, and when one was added or all were erased last (§33.9).
  stamp: (info) => Buffer.concat([info.subarray(1, 3), info.subarray(5, 13)]),
};
/** Controllers without a repository have the records of their own sensors. */
const DEVICE: Source = {
  ...{ reserve: COMMANDS.reserveDeviceSdrRepository, get: COMMANDS.getDeviceSdr, info: COMMANDS.getDeviceSdrInfo },
  stamp: (info) => info,
};

/** Records of BMCs that were read before. */
export interface SdrCache {
  /** @returns the bytes of its records, one after another; undefined: read them again */
  recall(bmc: string, stamp: string): Buffer | undefined;
  remember(bmc: string, stamp: string, records: Buffer): void;
}
/** Bytes that are kept at most, and for how long: not every BMC tells the time when it changes. */
const MOST_KEPT = 64 << 20;
const KEPT_FOR = 3_600_000;

/** Bounded: the BMC whose records were used longest ago goes first. */
export function createSdrCache(clock: { now(): number }, mostBytes = MOST_KEPT): SdrCache {
  const kept = new Map<string, { readonly stamp: string; readonly records: Buffer; readonly at: number }>();
  let size = 0;
  const forget = (bmc: string): void => {
    size -= kept.get(bmc)?.records.length ?? 0;
    kept.delete(bmc);
  };
  return {
    recall: (bmc, stamp) => {
      const found = kept.get(bmc);
      if (found?.stamp !== stamp || clock.now() - found.at >= KEPT_FOR) return undefined;
      kept.delete(bmc);
      kept.set(bmc, found);
      return found.records;
    },
    remember: (bmc, stamp, records) => {
      forget(bmc);
      kept.set(bmc, { stamp, records, at: clock.now() });
      size += records.length;
      for (const [oldest] of kept) if (size > mostBytes) forget(oldest);
    },
  };
}

/**
 * All records of the repository, or of the device when it has none.
 * @param known what was read of that BMC before
 * @throws IpmiError; `protocol` when the chain of records does not end
 */
export async function readSdrs(ask: Ask, known?: { readonly cache: SdrCache; readonly bmc: string }): Promise<readonly SensorDataRecord[]> {
  const device = await ask(COMMANDS.getDeviceId, []);
  // §20.1: byte 2 bit 7 device SDRs; byte 6 bit 1 an SDR repository.
  const [provides = 0, support = 0] = [device[1], device[5]];
  const source = (support & 0x02) === 0 && (provides & 0x80) !== 0 ? DEVICE : REPOSITORY;
  const stamp = known && (await stampOf(ask, source, device));
  const recalled = known && stamp !== undefined ? known.cache.recall(known.bmc, stamp) : undefined;
  if (recalled) return decodeAll(recalled);
  const records: Buffer[] = [];
  const seen = new Set<number>();
  for (let id = 0; id !== LAST;) {
    if (seen.has(id) || seen.size >= MAX_RECORDS) throw new IpmiError('protocol', 'the chain of sensor data records does not end');
    seen.add(id);
    const { record, next } = await readOne(ask, source, id);
    // One that is cut is nothing to go by.
    if (record.length >= HEADER && record.length === HEADER + record[HEADER - 1]!) records.push(record);
    id = next;
  }
  const all = Buffer.concat(records);
  if (known && stamp !== undefined) known.cache.remember(known.bmc, stamp, all);
  return decodeAll(all);
}
function decodeAll(bytes: Buffer): readonly SensorDataRecord[] {
  const records: SensorDataRecord[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + HEADER + bytes[at + HEADER - 1]!;
    const record = decodeSdr(bytes.subarray(at, end));
    if (record) records.push(record);
    at = end;
  }
  return records;
}
/** With its device ID: other firmware brings other records. @returns undefined when it does not tell */
async function stampOf(ask: Ask, { info, stamp }: Source, device: Buffer): Promise<string | undefined> {
  const answer = await ask(info, []).catch((error: unknown) => {
    if (error instanceof IpmiError && error.kind === 'completion') return undefined;
    throw error;
  });
  return answer && Buffer.concat([device, stamp(answer)]).toString('hex');
}

async function readOne(ask: Ask, source: Source, id: number): Promise<{ readonly record: Buffer; readonly next: number }> {
  return withReservation(
    () => ask(source.reserve, []),
    async (reservation) => {
      const get = (offset: number, count: number): Promise<Buffer> => ask(source.get, [...reservation, id & 0xff, id >> 8, offset, count]);
      const first = await get(0, HEADER).catch((error: unknown) => {
        // An empty repository.
        if (id === 0 && error instanceof IpmiError && error.completionCode === COMPLETION.notPresent) return Buffer.from([0xff, 0xff]);
        throw error;
      });
      if (first.length < 2) throw new IpmiError('protocol', 'the BMC answered Get SDR with too few bytes');
      const next = first.readUInt16LE(0);
      const header = first.subarray(2, 2 + HEADER);
      if (header.length < HEADER) return { record: header, next };
      const body = await readPortions(header[4]!, PORTION, async (offset, count) => (await get(HEADER + offset, count)).subarray(2));
      return { record: Buffer.concat([header, body]), next };
    },
  );
}
