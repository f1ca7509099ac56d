/** The sensors of the simulated BMC and of the controller behind it: records, readings, thresholds (IPMI 2.0 §35, §43). */
import { BMC_ADDRESS } from '../../wire/ipmi/codec';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../../wire/ipmi/constants';
import { THRESHOLDS } from '../../wire/ipmi/records/sdr';
import type { BmcAnswer } from '../../wire/ipmi/bmc';
import type { MachineControl } from '../hardware/control';
import { compactRecord, controllerLocator, eventOnlyRecord, fruLocator, fullRecord } from './sdr';
import { ANALOG, DISCRETE, SATELLITE, type AnalogSensor } from '../hardware/sensors';

/** Raw values of thresholds, by their names. */
export type Limits = NonNullable<AnalogSensor['thresholds']>;
/** The part of a controller's store that the commands use. */
interface SensorStore {
  readonly machine: MachineControl;
  readonly address: number;
  readonly limits: Map<number, Limits>;
}

/** Sensor numbers and record IDs count from 1. */
const first = ANALOG.length + 1;
const OF_POWER = first + DISCRETE.length;
export const POWER_STATE_SENSOR = OF_POWER;
const RECORDS: readonly Buffer[] = [
  ...ANALOG.map((row, index) => fullRecord(index + 1, { ...row, number: index + 1 })),
  ...DISCRETE.map((row, index) => compactRecord(first + index, { ...row, number: first + index, states: 0xff })),
  eventOnlyRecord(OF_POWER, { number: OF_POWER, name: 'Power state', entity: [7, 1], sensorType: 0x22 }),
  fruLocator(OF_POWER + 1, 0, 'System'),
  controllerLocator(OF_POWER + 2, 'BMC'),
  controllerLocator(OF_POWER + 3, 'Midplane', SATELLITE),
];
const SATELLITE_RECORDS: readonly Buffer[] = RECORDS.filter((record) => record[3] === 0x01 && record[5] === SATELLITE.address);
/** The BMC's repository includes the records of the controllers behind it. */
export const recordsOf = (address: number): readonly Buffer[] => {
  if (address === BMC_ADDRESS) return RECORDS;
  return address === SATELLITE.address ? SATELLITE_RECORDS : [];
};

const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const HYSTERESIS = 2;
const numberOf = (value: number, format: number | undefined): number => (format === 2 ? (value << 24) >> 24 : value);

/** Undefined: this controller has no such sensor. */
const analogOf = ({ address }: SensorStore, number: number | undefined): AnalogSensor | undefined => {
  const row = number === undefined ? undefined : ANALOG[number - 1];
  return row && (row.owner?.address ?? BMC_ADDRESS) === address ? row : undefined;
};
const limitsOf = ({ limits }: SensorStore, number: number, row: AnalogSensor): Limits => ({ ...row.thresholds, ...limits.get(number) });

type OfPart = Pick<AnalogSensor, 'part' | 'when'>;
/** The reading or the states that show what is wrong with the sensor's part; undefined: nothing is. */
const inCondition = ({ machine }: SensorStore, { part, when }: OfPart): number | undefined =>
  part === undefined || !when
    ? undefined
    : machine
        .conditions?.(part)
        .map((condition) => when[condition])
        .find((value) => value !== undefined);
/** Table 42-3. */
const FAN = 4;
/** §35.14. */
function reading(store: SensorStore, data: Buffer): BmcAnswer {
  if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
  const [number = 0] = data;
  const on = store.machine.isOn();
  const row = analogOf(store, number);
  if (row) {
    const raw = on ? (row.sensorType === FAN && store.machine.isStopped?.(row.name) ? 0 : (inCondition(store, row) ?? row.on)) : row.off;
    // Event messages and scanning are enabled; bit 5: the reading is unavailable.
    if (raw === undefined) return ok(0, 0xe0, 0xc0);
    const limits = limitsOf(store, number, row);
    const value = numberOf(raw, row.format);
    const states = THRESHOLDS.reduce((bits, name, index) => {
      const limit = limits[name];
      if (limit === undefined) return bits;
      const at = numberOf(limit, row.format);
      return (name.startsWith('l') ? value <= at : value >= at) ? bits | (1 << index) : bits;
    }, 0);
    return ok(raw, 0xc0, 0xc0 | states);
  }
  const discrete = store.address === BMC_ADDRESS ? DISCRETE[number - first] : undefined;
  return discrete ? ok(0, 0xc0, inCondition(store, discrete) ?? (on ? discrete.on : discrete.off), 0x80) : refuse(COMPLETION.notPresent);
}
/** §35.9. */
function thresholds(store: SensorStore, data: Buffer): BmcAnswer {
  const row = analogOf(store, data[0]);
  if (!row) return refuse(COMPLETION.notPresent);
  const limits = limitsOf(store, data[0]!, row);
  const mask = THRESHOLDS.reduce((bits, name, index) => (limits[name] === undefined ? bits : bits | (1 << index)), 0);
  return ok(mask, ...THRESHOLDS.map((name) => limits[name] ?? 0));
}
/** §35.8. */
function setThresholds(store: SensorStore, data: Buffer): BmcAnswer {
  if (data.length !== 8) return refuse(COMPLETION.lengthInvalid);
  const [number = 0, mask = 0, ...values] = data;
  const row = analogOf(store, number);
  if (!row) return refuse(COMPLETION.notPresent);
  const chosen = THRESHOLDS.map((name, index) => [name, values[index]!] as const).filter((_, index) => (mask >> index) & 1);
  if (!row.settable || chosen.some(([name]) => row.thresholds?.[name] === undefined)) return refuse(COMPLETION.invalidField);
  store.limits.set(number, { ...store.limits.get(number), ...Object.fromEntries(chosen) });
  return ok();
}
/** §35.7. */
const hysteresis = (store: SensorStore, data: Buffer): BmcAnswer =>
  analogOf(store, data[0]) ? ok(HYSTERESIS, HYSTERESIS) : refuse(COMPLETION.notPresent);

/** In the form of STORE_COMMANDS. */
export const SENSOR_COMMANDS = [
  [COMMANDS.getSensorReading, PRIVILEGE.USER, reading],
  [COMMANDS.getSensorThresholds, PRIVILEGE.USER, thresholds],
  [COMMANDS.setSensorThresholds, PRIVILEGE.OPERATOR, setThresholds],
  [COMMANDS.getSensorHysteresis, PRIVILEGE.USER, hysteresis],
] as const;
