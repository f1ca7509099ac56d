/** Reads a BMC's sensor data records (IPMI 2.0 §33, §35.2–35.4). The chain of records is not trusted, so reading is bounded. */
import { LRUCache } from 'lru-cache';
import { isRefusal, readChain, readPortions, withReservation, type SendCommand } from '../record-access';
import { COMMANDS, COMPLETION, IpmiError, type CommandCode } from '../constants';
import { decodeSdr, type SensorDataRecord } from './sdr';

/** Most records. Large machines have a few hundred. */
const MAX_RECORDS = 4096;
const HEADER = 5;
/** The limit of IPMI over IPMB, which some BMCs also apply to the LAN. */
const PORTION = 22;

interface Source {
  readonly reserve: CommandCode;
  readonly get: CommandCode;
  readonly info: CommandCode;
  /** The part of the response that changes when a record does. */
  readonly stamp: (info: Buffer) => Buffer;
}
const REPOSITORY: Source = {
  reserve: COMMANDS.reserveSdrRepository,
  get: COMMANDS.getSdr,
  info: COMMANDS.getSdrRepositoryInfo,
  // The number of records, and the times of the last addition and erasure (§33.9).
  stamp: (info) => Buffer.concat([info.subarray(1, 3), info.subarray(5, 13)]),
};
/** Controllers without a repository have the records of their own sensors. */
const DEVICE: Source = {
  reserve: COMMANDS.reserveDeviceSdrRepository,
  get: COMMANDS.getDeviceSdr,
  info: COMMANDS.getDeviceSdrInfo,
  stamp: (info) => info,
};

/** A cache of BMCs' records. */
export interface SdrCache {
  /** @returns the bytes of the records; undefined: not cached, or out of date */
  recall(bmc: string, stamp: string): Buffer | undefined;
  remember(bmc: string, stamp: string, records: Buffer): void;
}
/** Most bytes of the cache, and the lifetime of an entry: not every BMC reports the time of changes. */
const MAX_CACHE_BYTES = 64 << 20;
const LIFETIME_MS = 3_600_000;

export function createSdrCache(clock: { now(): number }, mostBytes = MAX_CACHE_BYTES): SdrCache {
  const entries = new LRUCache<string, { readonly stamp: string; readonly records: Buffer; readonly at: number }>({
    maxSize: mostBytes,
    sizeCalculation: ({ records }) => Math.max(1, records.length),
  });
  return {
    recall: (bmc, stamp) => {
      const found = entries.get(bmc);
      return found?.stamp === stamp && clock.now() - found.at < LIFETIME_MS ? found.records : undefined;
    },
    remember: (bmc, stamp, records) => void entries.set(bmc, { stamp, records, at: clock.now() }),
  };
}

/**
 * Reads all records of the repository, or of the device when it has none.
 * @param known the cache, and the BMC's key in it
 * @throws IpmiError when none can be read
 */
export async function readSdrs(
  ask: SendCommand,
  known?: { readonly cache: SdrCache; readonly bmc: string },
): Promise<readonly SensorDataRecord[]> {
  const device = await ask(COMMANDS.getDeviceId, []).catch(refused);
  // §20.1: byte 2 bit 7 device SDRs; byte 6 bit 1 an SDR repository.
  const [provides = 0, support = 0] = [device?.[1], device?.[5]];
  const source = (support & 0x02) === 0 && (provides & 0x80) !== 0 ? DEVICE : REPOSITORY;
  const stamp = known && device && (await stampOf(ask, source, device));
  const cached = known && stamp !== undefined ? known.cache.recall(known.bmc, stamp) : undefined;
  if (cached) return decodeAll(cached);
  const { records, isWhole } = await readChain(MAX_RECORDS, (id) => readOne(ask, source, id));
  const all = Buffer.concat(records);
  // A record that cannot be read now may be readable later.
  if (known && stamp !== undefined && isWhole) known.cache.remember(known.bmc, stamp, all);
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
function refused(error: unknown): undefined {
  if (error instanceof IpmiError && error.kind === 'completion') return undefined;
  throw error;
}
/** Includes the device ID, since other firmware has other records. @returns undefined when the BMC does not report it */
async function stampOf(ask: SendCommand, { info, stamp }: Source, device: Buffer): Promise<string | undefined> {
  const answer = await ask(info, []).catch(refused);
  return answer && Buffer.concat([device, stamp(answer)]).toString('hex');
}

/** A record, unless it is truncated. The successor is known even if the record itself cannot be read. */
async function readOne(ask: SendCommand, source: Source, id: number): ReturnType<Parameters<typeof readChain<Buffer>>[1]> {
  let known: { readonly id?: number | undefined; readonly next: number } | undefined;
  const read = withReservation(
    () => ask(source.reserve, []),
    async (reservation) => {
      const get = (offset: number, count: number): Promise<Buffer> => ask(source.get, [...reservation, id & 0xff, id >> 8, offset, count]);
      const first = await get(0, HEADER).catch((error: unknown) => {
        if (isRefusal(error, COMPLETION.notPresent)) return undefined;
        throw error;
      });
      if (!first) return undefined;
      if (first.length < 2) throw new IpmiError('protocol', 'the BMC answered Get SDR with too few bytes');
      const next = first.readUInt16LE(0);
      const header = first.subarray(2, 2 + HEADER);
      known = { next, id: header.length < 2 ? undefined : header.readUInt16LE(0) };
      if (header.length < HEADER) return known;
      const body = await readPortions(header[4]!, PORTION, async (offset, count) => (await get(HEADER + offset, count)).subarray(2));
      return body.length < header[4]! ? known : { ...known, record: Buffer.concat([header, body]) };
    },
  );
  return read.catch((error: unknown) => {
    if (known && error instanceof IpmiError && error.kind === 'completion') return { ...known, fault: error };
    throw error;
  });
}
