/** The sensors of the simulated BMC, and of the controller behind it: records, readings, thresholds (IPMI 2.0 §35, §43). */
import { BMC_ADDRESS } from '../wire/ipmi/codec';
import { COMMANDS, COMPLETION, PRIVILEGE } from '../wire/ipmi/constants';
import { THRESHOLDS } from '../wire/ipmi/sdr';
import type { BmcAnswer } from '../wire/ipmi/server';
import type { MachineControl } from './control';
import { compactRecord, controllerLocator, eventOnlyRecord, fruLocator, fullRecord, type AnalogSetup } from './ipmi-sdr';

/** Raw thresholds, those that there are. */
export type Limits = NonNullable<AnalogSetup['thresholds']>;
/** What the commands need of a controller's store. */
interface Sensing {
  readonly machine: MachineControl;
  readonly address: number;
  readonly limits: Map<number, Limits>;
}

/** What is read while the machine is on, and off (absent: nothing). */
interface Analog extends Omit<AnalogSetup, 'number'> {
  readonly on: number;
  readonly off?: number;
}
interface Discrete {
  readonly name: string;
  readonly entity: readonly [id: number, instance: number];
  readonly sensorType: number;
  /** Asserted while the machine is on, and off. */
  readonly on: number;
  readonly off: number;
}
/** Where the controller behind the BMC is, and the one behind that. */
export const SATELLITE = { address: 0x82, channel: 0 } as const;
export const FAR_SATELLITE = { address: 0x72, channel: 7 } as const;

const celsius = { sensorType: 1, unit: 1, m: 1 } as const;
const fan = { sensorType: 4, unit: 18, m: 100, thresholds: { lnr: 3, lcr: 5, lnc: 8 }, settable: true, off: 0 } as const;
const volts = { sensorType: 2, unit: 4, rExponent: -3 } as const;
/** Table 42-3 and 43-13: temperature 1, voltage 2, current 3, fan 4, supply 8; board 7, processor 3, fan 29, supply 10, air inlet 55, DIMM 32. */
const ANALOG: readonly Analog[] = [
  {
    ...{ ...celsius, name: 'Inlet Temp', entity: [55, 1], tolerance: 2, format: 2, nominal: 23, on: 24, off: 21 },
    ...{ thresholds: { lnc: 3, unc: 42, ucr: 47 }, settable: true },
  },
  { ...celsius, name: 'Outside Temp', entity: [55, 2], format: 2, on: 0xf4, off: 0xf4, thresholds: { lcr: 0xe2, lnc: 0xf6 } },
  { ...celsius, name: 'CPU1 Temp', entity: [3, 1], thresholds: { unc: 90, ucr: 95, unr: 100 }, on: 48 },
  { ...celsius, name: 'CPU2 Temp', entity: [3, 2], thresholds: { unc: 90, ucr: 95, unr: 100 }, on: 91 },
  { ...celsius, name: 'DIMM A1 Temp', entity: [32, 1], thresholds: { unc: 80, ucr: 85 }, on: 36 },
  ...[61, 60, 62, 59].map((on, index): Analog => ({ ...fan, name: `Fan${index + 1}`, entity: [29, index + 1], on })),
  { ...volts, name: 'P12V', entity: [7, 1], m: 63, thresholds: { lcr: 171, lnc: 175, unc: 208, ucr: 212 }, on: 192 },
  { ...volts, name: 'P3V3', entity: [7, 1], m: 17, b: 5, bExponent: 1, thresholds: { lcr: 170, ucr: 205 }, on: 191 },
  { ...volts, name: 'VBAT', entity: [40, 1], m: 16, thresholds: { lcr: 125, lnc: 140 }, on: 188, off: 188 },
  { name: 'PSU1 Power', entity: [10, 1], sensorType: 8, unit: 6, m: 4, b: 2, on: 45, off: 2 },
  { name: 'PSU2 Power', entity: [10, 2], sensorType: 8, unit: 6, m: 4, b: 2, on: 44, off: 2 },
  { name: 'PSU1 Current', entity: [10, 1], sensorType: 3, unit: 5, m: 1, rExponent: -1, on: 9, off: 1 },
  // The square root of what is measured.
  { name: 'Air Flow', entity: [7, 1], sensorType: 0x0a, unit: 17, m: 25, linearization: 0x0a, on: 144 },
  {
    ...celsius,
    name: 'Midplane Temp',
    entity: [15, 1],
    owner: SATELLITE,
    thresholds: { unc: 60, ucr: 70 },
    settable: true,
    on: 31,
    off: 27,
  },
];
const DISCRETE: readonly Discrete[] = [
  ...[1, 2].map((instance): Discrete => ({ name: `PSU${instance} Status`, entity: [10, instance], sensorType: 8, on: 0x01, off: 0x01 })),
  { name: 'Power Unit', entity: [19, 1], sensorType: 9, on: 0, off: 0x01 },
  { name: 'CPU1 Status', entity: [3, 1], sensorType: 7, on: 0x80, off: 0x80 },
  { name: 'Memory ECC', entity: [32, 1], sensorType: 0x0c, on: 0, off: 0 },
  { name: 'Drive Bay 0', entity: [26, 1], sensorType: 0x0d, on: 0x01, off: 0x01 },
  { name: 'Watchdog', entity: [7, 1], sensorType: 0x23, on: 0, off: 0 },
];
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
const OWN: readonly Buffer[] = RECORDS.filter((record) => record[3] === 0x01 && record[5] === SATELLITE.address);
/** The BMC has those of the controllers behind it too. */
export const recordsOf = (address: number): readonly Buffer[] => {
  if (address === BMC_ADDRESS) return RECORDS;
  return address === SATELLITE.address ? OWN : [];
};

const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const HYSTERESIS = 2;
const numberOf = (value: number, format: number | undefined): number => (format === 2 ? (value << 24) >> 24 : value);

/** Only the sensors of that very controller. */
const analogOf = ({ address }: Sensing, number: number | undefined): Analog | undefined => {
  const row = number === undefined ? undefined : ANALOG[number - 1];
  return row && (row.owner?.address ?? BMC_ADDRESS) === address ? row : undefined;
};
const limitsOf = ({ limits }: Sensing, number: number, row: Analog): Limits => ({ ...row.thresholds, ...limits.get(number) });

/** §35.14. */
function reading(store: Sensing, data: Buffer): BmcAnswer {
  if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
  const [number = 0] = data;
  const on = store.machine.isOn();
  const row = analogOf(store, number);
  if (row) {
    const raw = on ? row.on : row.off;
    // Event messages and scanning are on; bit 5: no reading now.
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
  return discrete ? ok(0, 0xc0, on ? discrete.on : discrete.off, 0x80) : refuse(COMPLETION.notPresent);
}
/** §35.9. */
function thresholds(store: Sensing, data: Buffer): BmcAnswer {
  const row = analogOf(store, data[0]);
  if (!row) return refuse(COMPLETION.notPresent);
  const limits = limitsOf(store, data[0]!, row);
  const mask = THRESHOLDS.reduce((bits, name, index) => (limits[name] === undefined ? bits : bits | (1 << index)), 0);
  return ok(mask, ...THRESHOLDS.map((name) => limits[name] ?? 0));
}
/** §35.8. */
function setThresholds(store: Sensing, data: Buffer): BmcAnswer {
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
const hysteresis = (store: Sensing, data: Buffer): BmcAnswer =>
  analogOf(store, data[0]) ? ok(HYSTERESIS, HYSTERESIS) : refuse(COMPLETION.notPresent);

/** As STORE_COMMANDS. */
export const SENSOR_COMMANDS = [
  [COMMANDS.getSensorReading, PRIVILEGE.USER, reading],
  [COMMANDS.getSensorThresholds, PRIVILEGE.USER, thresholds],
  [COMMANDS.setSensorThresholds, PRIVILEGE.OPERATOR, setThresholds],
  [COMMANDS.getSensorHysteresis, PRIVILEGE.USER, hysteresis],
] as const;
