/** The simulated BMC's sensors, event log and inventory (IPMI 2.0 §31, §33–35). */
import type { Clock } from '../../model/clock';
import { BMC_ADDRESS } from '../../wire/ipmi/codec';
import { COMMANDS, COMPLETION, PRIVILEGE, type CommandCode } from '../../wire/ipmi/constants';
import type { BmcAnswer } from '../../wire/ipmi/bmc';
import type { MachineControl } from '../hardware/control';
import { fruBytes } from './fru';
import { POWER_STATE_SENSOR, SENSOR_COMMANDS, recordsOf, type Limits } from './sensors';

export interface Store {
  readonly machine: MachineControl;
  readonly clock: Clock;
  /** The controller's address. */
  readonly address: number;
  /** The thresholds that clients have set, by sensor number. */
  readonly limits: Map<number, Limits>;
  /** The current reservation IDs; a new reservation cancels its predecessor. */
  sdrReservation: number;
  selReservation: number;
  /** Seconds since the epoch; 0: never. */
  selErasedAt: number;
  /** Entries of 16 bytes, the oldest first. */
  sel: readonly Buffer[];
  nextEntry: number;
}
export const newStore = (machine: MachineControl, clock: Clock, address = BMC_ADDRESS): Store => ({
  machine,
  clock,
  address,
  limits: new Map<number, Limits>(),
  sdrReservation: 0,
  selReservation: 0,
  selErasedAt: 0,
  sel: [],
  nextEntry: 1,
});

/** The largest number of entries in the SEL. In a full log a new entry displaces the oldest. */
const MAX_SEL = 512;
/** The most data bytes in one answer. Like BMCs behind an IPMB, the simulated one refuses a request for more. */
const MAX_BYTES = 64;
const WHOLE_RECORD = 0xff;

const ok = (...parts: readonly (readonly number[] | Buffer)[]): BmcAnswer => ({
  completionCode: COMPLETION.ok,
  data: Buffer.concat(parts.map((part) => Buffer.from(part))),
});
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const uint16 = (value: number): readonly number[] => [value & 0xff, (value >> 8) & 0xff];
const uint32 = (value: number): readonly number[] => [...uint16(value & 0xffff), ...uint16(value >>> 16)];
const seconds = ({ clock }: Store): number => Math.floor(clock.now() / 1000);

/** @param rest what follows the time. Returns the ID of the entry. */
function append(store: Store, type: number, rest: readonly number[] | Buffer): number {
  const id = store.nextEntry;
  store.nextEntry = id >= 0xfffe ? 1 : id + 1;
  store.sel = [...store.sel.slice(1 - MAX_SEL), Buffer.from([...uint16(id), type, ...uint32(seconds(store)), ...rest])];
  return id;
}
/** Logs a change of the machine's power (System ACPI Power State, table 42-3). */
export function logPower(store: Store, on: boolean): void {
  append(store, 0x02, [0x20, 0x00, 0x04, 0x22, POWER_STATE_SENSOR, 0x6f, on ? 0x00 : 0x05, 0xff, 0xff]);
}
/** §31.6. The BMC sets the ID and the time. */
function addSelEntry(store: Store, data: Buffer): BmcAnswer {
  if (data.length !== 16) return refuse(COMPLETION.lengthInvalid);
  return ok(uint16(append(store, data[2]!, data.subarray(7))));
}

/** Part of a record. @param next the identifier of the next record */
function portion(record: Buffer, next: number, offset: number, count: number): BmcAnswer {
  const end = count === WHOLE_RECORD ? record.length : Math.min(record.length, offset + count);
  if (offset >= record.length) return refuse(COMPLETION.outOfRange);
  return end - offset > MAX_BYTES ? refuse(COMPLETION.cannotReturnBytes) : ok(uint16(next), record.subarray(offset, end));
}
/** §33.12. */
function getSdr(store: Store, data: Buffer): BmcAnswer {
  if (data.length !== 6) return refuse(COMPLETION.lengthInvalid);
  const [reservation, id, offset, count] = [data.readUInt16LE(0), data.readUInt16LE(2), data[4]!, data[5]!];
  if (offset !== 0 && reservation !== store.sdrReservation) return refuse(COMPLETION.reservationInvalid);
  const records = recordsOf(store.address);
  const index = id === 0 ? 0 : id === 0xffff ? records.length - 1 : records.findIndex((record) => record.readUInt16LE(0) === id);
  const record = records[index];
  return record ? portion(record, records[index + 1]?.readUInt16LE(0) ?? 0xffff, offset, count) : refuse(COMPLETION.notPresent);
}
/** §31.5. */
function getSelEntry({ sel, selReservation }: Store, data: Buffer): BmcAnswer {
  if (data.length !== 6) return refuse(COMPLETION.lengthInvalid);
  const [reservation, id, offset, count] = [data.readUInt16LE(0), data.readUInt16LE(2), data[4]!, data[5]!];
  if (offset !== 0 && reservation !== selReservation) return refuse(COMPLETION.reservationInvalid);
  const index = id === 0 ? 0 : id === 0xffff ? sel.length - 1 : sel.findIndex((entry) => entry.readUInt16LE(0) === id);
  const entry = sel[index];
  return entry ? portion(entry, sel[index + 1]?.readUInt16LE(0) ?? 0xffff, offset, count) : refuse(COMPLETION.notPresent);
}
/** §31.9. The log is erased at once. */
function clearSel(store: Store, data: Buffer): BmcAnswer {
  if (data.length !== 6 || data.toString('latin1', 2, 5) !== 'CLR') return refuse(COMPLETION.invalidField);
  if (data.readUInt16LE(0) !== store.selReservation) return refuse(COMPLETION.reservationInvalid);
  if (data[5] === 0xaa) {
    store.sel = [];
    store.selErasedAt = seconds(store);
  }
  return ok([1]);
}
/** §34.2. */
function readFru({ machine }: Store, data: Buffer): BmcAnswer {
  if (data.length !== 4) return refuse(COMPLETION.lengthInvalid);
  if (data[0] !== 0) return refuse(COMPLETION.notPresent);
  const bytes = fruBytes(machine.name);
  const [offset, count] = [data.readUInt16LE(1), data[3]!];
  if (offset >= bytes.length) return refuse(COMPLETION.outOfRange);
  if (count > MAX_BYTES) return refuse(COMPLETION.cannotReturnBytes);
  const part = bytes.subarray(offset, offset + count);
  return ok([part.length], part);
}
const reserve = (store: Store, key: 'sdrReservation' | 'selReservation'): BmcAnswer => {
  store[key] = (store[key] % 0xffff) + 1;
  return ok(uint16(store[key]));
};

/** A command, the least privilege that it needs, and its handler. */
type StoreCommand = readonly [code: CommandCode, privilege: number, run: (store: Store, data: Buffer) => BmcAnswer];
export const STORE_COMMANDS: readonly StoreCommand[] = [
  // SDR version 1.5 (51h); free space unknown; Reserve command supported (bit 1), non-modal update (bit 5) (§33.9; SEL: §31.2).
  [
    COMMANDS.getSdrRepositoryInfo,
    PRIVILEGE.USER,
    ({ address }) => ok([0x51], uint16(recordsOf(address).length), uint16(0xffff), uint32(0), uint32(0), [0x22]),
  ],
  [COMMANDS.reserveSdrRepository, PRIVILEGE.USER, (store) => reserve(store, 'sdrReservation')],
  [COMMANDS.getSdr, PRIVILEGE.USER, getSdr],
  ...SENSOR_COMMANDS,
  [
    COMMANDS.getSelInfo,
    PRIVILEGE.USER,
    (store) =>
      ok(
        [0x51],
        uint16(store.sel.length),
        uint16((MAX_SEL - store.sel.length) * 16),
        uint32(store.sel.at(-1)?.readUInt32LE(3) ?? 0xffff_ffff),
        uint32(store.selErasedAt),
        [0x02],
      ),
  ],
  [COMMANDS.reserveSel, PRIVILEGE.USER, (store) => reserve(store, 'selReservation')],
  [COMMANDS.getSelEntry, PRIVILEGE.USER, getSelEntry],
  [COMMANDS.addSelEntry, PRIVILEGE.OPERATOR, addSelEntry],
  [COMMANDS.clearSel, PRIVILEGE.OPERATOR, clearSel],
  [COMMANDS.getSelTime, PRIVILEGE.USER, (store) => ok(uint32(seconds(store)))],
  [
    COMMANDS.getFruInventoryAreaInfo,
    PRIVILEGE.USER,
    ({ machine }, data) => (data[0] === 0 ? ok(uint16(fruBytes(machine.name).length), [0]) : refuse(COMPLETION.notPresent)),
  ],
  [COMMANDS.readFruData, PRIVILEGE.USER, readFru],
];
