/** Reading a BMC's sensor data records (IPMI 2.0 §33, §35.2–35.4), with bounds: what it says of their chain is not trusted. */
import { readPortions, withReservation, type Ask } from './ask';
import { COMMANDS, COMPLETION, IpmiError } from './constants';
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
}
const REPOSITORY: Source = { reserve: COMMANDS.reserveSdrRepository, get: COMMANDS.getSdr };
/** Controllers without a repository have the records of their own sensors. */
const DEVICE: Source = { reserve: COMMANDS.reserveDeviceSdrRepository, get: COMMANDS.getDeviceSdr };

/**
 * All records of the repository, or of the device when it has none.
 * @throws IpmiError; `protocol` when the chain of records does not end
 */
export async function readSdrs(ask: Ask): Promise<readonly SensorDataRecord[]> {
  const device = await ask(COMMANDS.getDeviceId, []);
  // §20.1: byte 2 bit 7 device SDRs; byte 6 bit 1 an SDR repository.
  const [provides = 0, support = 0] = [device[1], device[5]];
  const source = (support & 0x02) === 0 && (provides & 0x80) !== 0 ? DEVICE : REPOSITORY;
  const records: SensorDataRecord[] = [];
  const seen = new Set<number>();
  for (let id = 0; id !== LAST;) {
    if (seen.has(id) || seen.size >= MAX_RECORDS) throw new IpmiError('protocol', 'the chain of sensor data records does not end');
    seen.add(id);
    const { record, next } = await readOne(ask, source, id);
    const decoded = decodeSdr(record);
    if (decoded) records.push(decoded);
    id = next;
  }
  return records;
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
