/** The simulated BMC's sensors, event log and inventory (IPMI 2.0 §31, §33–35). */
import type { Clock } from '../model/clock';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../wire/ipmi/constants';
import type { BmcAnswer } from '../wire/ipmi/server';
import type { MachineControl } from './control';
import { fruBytes } from './ipmi-fru';
import { compactRecord, controllerLocator, eventOnlyRecord, fruLocator, fullRecord } from './ipmi-sdr';

export interface Store {
  readonly machine: MachineControl;
  readonly clock: Clock;
  /** The last reservations; a new one cancels the one before. */
  sdrReservation: number;
  selReservation: number;
  selErasedAt: number;
  /** Entries of 16 bytes, the oldest first. */
  sel: readonly Buffer[];
  nextEntry: number;
}
export const newStore = (machine: MachineControl, clock: Clock): Store => ({
  ...{ machine, clock, sdrReservation: 0, selReservation: 0, selErasedAt: 0, sel: [], nextEntry: 1 },
});

/** What a sensor reads while the machine is on, and off (absent: nothing). */
interface Simulated {
  readonly number: number;
  readonly on: number;
  readonly off?: number;
  /** Of discrete sensors. */
  readonly states?: number;
}
/** Table 42-3 and 43-13: temperature, voltage, fan, power supply; board 7, processor 3, fan 29, supply 10, air inlet 55. */
const RECORDS: readonly Buffer[] = [
  fullRecord(1, {
    number: 1,
    name: 'Inlet Temp',
    entity: [55, 1],
    sensorType: 1,
    unit: 1,
    m: 1,
    tolerance: 2,
    format: 2,
    thresholds: { lnc: 3, unc: 42, ucr: 47 },
    nominal: 23,
  }),
  fullRecord(2, { number: 2, name: 'CPU1 Temp', entity: [3, 1], sensorType: 1, unit: 1, m: 1, thresholds: { unc: 90, ucr: 95, unr: 100 } }),
  fullRecord(3, { number: 3, name: 'Fan1', entity: [29, 1], sensorType: 4, unit: 18, m: 100, thresholds: { lnr: 3, lcr: 5, lnc: 8 } }),
  fullRecord(4, {
    number: 4,
    name: 'P12V',
    entity: [7, 1],
    sensorType: 2,
    unit: 4,
    m: 63,
    rExponent: -3,
    thresholds: { lcr: 171, lnc: 175, unc: 208, ucr: 212 },
  }),
  fullRecord(5, { number: 5, name: 'PSU1 Power', entity: [10, 1], sensorType: 8, unit: 6, m: 4, b: 2, bExponent: 0 }),
  compactRecord(6, { number: 6, name: 'PSU1 Status', entity: [10, 1], sensorType: 8, states: 0x0f }),
  compactRecord(7, { number: 7, name: 'Watchdog', entity: [7, 1], sensorType: 0x23, states: 0x0f }),
  eventOnlyRecord(8, { number: 8, name: 'Power state', entity: [7, 1], sensorType: 0x22 }),
  fruLocator(9, 0, 'System'),
  controllerLocator(10, 'BMC'),
];
const SENSORS: readonly Simulated[] = [
  { number: 1, on: 24, off: 21 },
  { number: 2, on: 48 },
  { number: 3, on: 61 },
  { number: 4, on: 192 },
  { number: 5, on: 45, off: 2 },
  { number: 6, on: 0, off: 0, states: 0x01 },
  { number: 7, on: 0, off: 0, states: 0 },
];
const POWER_STATE_SENSOR = 8;
/** Entries kept; the oldest go. */
const MAX_SEL = 512;
/** More in one answer is refused, as BMCs do that think of the IPMB. */
const MOST_BYTES = 64;
const WHOLE = 0xff;

const ok = (...parts: readonly (readonly number[] | Buffer)[]): BmcAnswer => ({
  completionCode: COMPLETION.ok,
  data: Buffer.concat(parts.map((part) => Buffer.from(part))),
});
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const uint16 = (value: number): readonly number[] => [value & 0xff, (value >> 8) & 0xff];
const uint32 = (value: number): readonly number[] => [...uint16(value & 0xffff), ...uint16(value >>> 16)];
const seconds = ({ clock }: Store): number => Math.floor(clock.now() / 1000);

/** Logs that the machine went on or off (System ACPI Power State, table 42-3). */
export function logPower(store: Store, on: boolean): void {
  const event = [0x20, 0x00, 0x04, 0x22, POWER_STATE_SENSOR, 0x6f, on ? 0x00 : 0x05, 0xff, 0xff];
  const entry = Buffer.from([...uint16(store.nextEntry), 0x02, ...uint32(seconds(store)), ...event]);
  store.nextEntry = store.nextEntry >= 0xfffe ? 1 : store.nextEntry + 1;
  store.sel = [...store.sel.slice(1 - MAX_SEL), entry];
}

/** Part of a record. @param next what follows it */
function portion(record: Buffer, next: number, offset: number, count: number): BmcAnswer {
  const end = count === WHOLE ? record.length : Math.min(record.length, offset + count);
  if (offset >= record.length) return refuse(COMPLETION.outOfRange);
  return end - offset > MOST_BYTES ? refuse(COMPLETION.cannotReturnBytes) : ok(uint16(next), record.subarray(offset, end));
}
/** §33.12. */
function getSdr(store: Store, data: Buffer): BmcAnswer {
  if (data.length !== 6) return refuse(COMPLETION.lengthInvalid);
  const [reservation, id, offset, count] = [data.readUInt16LE(0), data.readUInt16LE(2), data[4]!, data[5]!];
  if (offset !== 0 && reservation !== store.sdrReservation) return refuse(COMPLETION.reservationInvalid);
  const index = id === 0 ? 0 : id === 0xffff ? RECORDS.length - 1 : RECORDS.findIndex((record) => record.readUInt16LE(0) === id);
  const record = RECORDS[index];
  return record ? portion(record, RECORDS[index + 1]?.readUInt16LE(0) ?? 0xffff, offset, count) : refuse(COMPLETION.notPresent);
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
/** §31.9: erased at once. */
function clearSel(store: Store, data: Buffer): BmcAnswer {
  if (data.length !== 6 || data.toString('latin1', 2, 5) !== 'CLR') return refuse(COMPLETION.invalidField);
  if (data.readUInt16LE(0) !== store.selReservation) return refuse(COMPLETION.reservationInvalid);
  if (data[5] === 0xaa) {
    store.sel = [];
    store.selErasedAt = seconds(store);
  }
  return ok([1]);
}
/** §35.14. */
function getSensorReading({ machine }: Store, data: Buffer): BmcAnswer {
  if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
  const sensor = SENSORS.find(({ number }) => number === data[0]);
  if (!sensor) return refuse(COMPLETION.notPresent);
  const raw = machine.isOn() ? sensor.on : sensor.off;
  // Event messages and scanning are on; bit 5: no reading now.
  return raw === undefined ? ok([0, 0xe0, 0xc0]) : ok([raw, 0xc0, sensor.states ?? 0xc0, sensor.states === undefined ? 0 : 0x80]);
}
/** §34.2. */
function readFru({ machine }: Store, data: Buffer): BmcAnswer {
  if (data.length !== 4) return refuse(COMPLETION.lengthInvalid);
  if (data[0] !== 0) return refuse(COMPLETION.notPresent);
  const bytes = fruBytes(machine.name);
  const [offset, count] = [data.readUInt16LE(1), data[3]!];
  if (offset >= bytes.length) return refuse(COMPLETION.outOfRange);
  if (count > MOST_BYTES) return refuse(COMPLETION.cannotReturnBytes);
  const part = bytes.subarray(offset, offset + count);
  return ok([part.length], part);
}
const reserve = (store: Store, key: 'sdrReservation' | 'selReservation'): BmcAnswer => {
  store[key] = (store[key] % 0xffff) + 1;
  return ok(uint16(store[key]));
};

/** [command, least privilege, what it does] */
export const STORE_COMMANDS: readonly (readonly [
  words: readonly [number, number],
  privilege: number,
  run: (store: Store, data: Buffer) => BmcAnswer,
])[] = [
  // Version 1.5 of the commands; free space unknown; reservation and allocation (§33.9, §31.2).
  [COMMANDS.getSdrRepositoryInfo, PRIVILEGE.USER, () => ok([0x51], uint16(RECORDS.length), uint16(0xffff), uint32(0), uint32(0), [0x22])],
  [COMMANDS.reserveSdrRepository, PRIVILEGE.USER, (store) => reserve(store, 'sdrReservation')],
  [COMMANDS.getSdr, PRIVILEGE.USER, getSdr],
  [COMMANDS.getSensorReading, PRIVILEGE.USER, getSensorReading],
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
  [COMMANDS.clearSel, PRIVILEGE.OPERATOR, clearSel],
  [COMMANDS.getSelTime, PRIVILEGE.USER, (store) => ok(uint32(seconds(store)))],
  [
    COMMANDS.getFruInventoryAreaInfo,
    PRIVILEGE.USER,
    ({ machine }, data) => (data[0] === 0 ? ok(uint16(fruBytes(machine.name).length), [0]) : refuse(COMPLETION.notPresent)),
  ],
  [COMMANDS.readFruData, PRIVILEGE.USER, readFru],
];
