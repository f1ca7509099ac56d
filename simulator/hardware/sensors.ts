/** The sensors of every simulated machine and their raw IPMI readings. Redfish shows some of them, converted to values with units. */

import type { PartCondition } from './parts';

export interface SensorDescription {
  readonly name: string;
  readonly entity: readonly [id: number, instance: number];
  readonly sensorType: number;
  /** The controller that has the sensor; absent: the BMC. */
  readonly owner?: { readonly address: number; readonly channel: number };
}
/** A threshold sensor's record (IPMI 2.0 §43.1). */
export interface AnalogDescription extends SensorDescription {
  /** Table 43-15. */
  readonly unit: number;
  /** y = L[(m·x + b·10^bExponent)·10^rExponent] */
  readonly m: number;
  readonly b?: number;
  readonly bExponent?: number;
  readonly rExponent?: number;
  readonly tolerance?: number;
  /** 0 unsigned, 2 two's complement. */
  readonly format?: number;
  readonly linearization?: number;
  /** Raw values of the thresholds that can be read. */
  readonly thresholds?: Readonly<Partial<Record<'lnc' | 'lcr' | 'lnr' | 'unc' | 'ucr' | 'unr', number>>>;
  readonly nominal?: number;
  /** Clients can set the sensor's thresholds and read its hysteresis. */
  readonly settable?: true;
}

/** How a sensor shows that its part is not well: the raw reading, or the states, in each condition. */
interface SensorOfPart {
  readonly part?: string;
  readonly when?: Readonly<Partial<Record<PartCondition, number>>>;
}
export interface AnalogSensor extends AnalogDescription, SensorOfPart {
  /** The raw readings while the machine is on, and while it is off (absent: there is none). */
  readonly on: number;
  readonly off?: number;
  /** How Redfish shows the sensor; absent: not at all. `most`: the largest value; absent: the value of the largest raw reading. */
  readonly redfish?: { readonly context: string; readonly most?: number } | undefined;
}
interface DiscreteSensor extends SensorDescription, SensorOfPart {
  /** Bit masks of the states that are asserted while the machine is on, and while it is off. */
  readonly on: number;
  readonly off: number;
}
/** The controller behind the BMC, and the one behind that controller. */
export const SATELLITE = { address: 0x82, channel: 0 } as const;
export const NESTED_SATELLITE = { address: 0x72, channel: 7 } as const;

const celsius = { sensorType: 1, unit: 1, m: 1 } as const;
const fan = { sensorType: 4, unit: 18, m: 100, thresholds: { lnr: 3, lcr: 5, lnc: 8 }, settable: true, off: 0 } as const;
const volts = { sensorType: 2, unit: 4, rExponent: -3 } as const;
/**
 * Sensor types (IPMI 2.0 table 42-3): temperature 1, voltage 2, current 3, fan 4, power supply 8. Entity IDs (table 43-13): processor 3,
 * system board 7, power supply 10, fan 29, memory device 32, air inlet 55.
 */
export const ANALOG: readonly AnalogSensor[] = [
  {
    ...celsius,
    name: 'Inlet Temp',
    entity: [55, 1],
    tolerance: 2,
    format: 2,
    nominal: 23,
    on: 24,
    off: 21,
    redfish: { context: 'Intake' },
    thresholds: { lnc: 3, unc: 42, ucr: 47 },
    settable: true,
  },
  { ...celsius, name: 'Outside Temp', entity: [55, 2], format: 2, on: 0xf4, off: 0xf4, thresholds: { lcr: 0xe2, lnc: 0xf6 } },
  {
    ...celsius,
    name: 'CPU1 Temp',
    entity: [3, 1],
    thresholds: { unc: 90, ucr: 95, unr: 100 },
    on: 48,
    redfish: { context: 'CPU' },
    part: 'CPU1',
    when: { hot: 97, warm: 92 },
  },
  { ...celsius, name: 'CPU2 Temp', entity: [3, 2], thresholds: { unc: 90, ucr: 95, unr: 100 }, on: 91 },
  { ...celsius, name: 'DIMM A1 Temp', entity: [32, 1], thresholds: { unc: 80, ucr: 85 }, on: 36 },
  ...[61, 60, 62, 59].map((on, index): AnalogSensor => ({
    ...fan,
    name: `Fan${index + 1}`,
    entity: [29, index + 1],
    on,
    part: `Fan${index + 1}`,
    when: { slow: 7 },
    redfish: index < 2 ? { context: 'Fan', most: 12_000 } : undefined,
  })),
  {
    ...volts,
    name: 'P12V',
    entity: [7, 1],
    m: 63,
    thresholds: { lcr: 171, lnc: 175, unc: 208, ucr: 212 },
    on: 192,
    part: 'P12V',
    when: { low: 160 },
    redfish: { context: 'SystemBoard' },
  },
  {
    ...volts,
    name: 'P3V3',
    entity: [7, 1],
    m: 17,
    b: 5,
    bExponent: 1,
    thresholds: { lcr: 170, ucr: 205 },
    on: 191,
  },
  { ...volts, name: 'VBAT', entity: [40, 1], m: 16, thresholds: { lcr: 125, lnc: 140 }, on: 188, off: 188 },
  {
    name: 'PSU1 Power',
    entity: [10, 1],
    sensorType: 8,
    unit: 6,
    m: 4,
    b: 2,
    on: 45,
    off: 2,
    redfish: { context: 'PowerSupply', most: 750 },
  },
  { name: 'PSU2 Power', entity: [10, 2], sensorType: 8, unit: 6, m: 4, b: 2, on: 44, off: 2 },
  { name: 'PSU1 Current', entity: [10, 1], sensorType: 3, unit: 5, m: 1, rExponent: -1, on: 9, off: 1 },
  // Linearization 0x0a: the reading is the square root of m·x.
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
export const DISCRETE: readonly DiscreteSensor[] = [
  ...[1, 2].map((instance): DiscreteSensor => ({
    name: `PSU${instance} Status`,
    entity: [10, instance],
    sensorType: 8,
    on: 0x01,
    off: 0x01,
    part: `PSU${instance}`,
    when: { failed: 0x03, failing: 0x05, 'no-input': 0x09 },
  })),
  { name: 'Power Unit', entity: [19, 1], sensorType: 9, on: 0, off: 0x01 },
  { name: 'CPU1 Status', entity: [3, 1], sensorType: 7, on: 0x80, off: 0x80, part: 'CPU1', when: { failed: 0xa0 } },
  { name: 'Memory ECC', entity: [32, 1], sensorType: 0x0c, on: 0, off: 0, part: 'DIMM1', when: { errors: 0x01, fatal: 0x02 } },
  {
    name: 'Drive Bay 0',
    entity: [26, 1],
    sensorType: 0x0d,
    on: 0x01,
    off: 0x01,
    part: 'Bay0',
    when: {
      failed: 0x03,
      failing: 0x05,
      'redundancy-lost': 0x21,
      degraded: 0x81,
    },
  },
  { name: 'Watchdog', entity: [7, 1], sensorType: 0x23, on: 0, off: 0 },
  { name: 'Battery', entity: [40, 1], sensorType: 0x29, on: 0, off: 0, part: 'Battery', when: { failing: 0x01, failed: 0x02 } },
  { name: 'Critical Int', entity: [7, 1], sensorType: 0x13, on: 0, off: 0, part: 'Bus', when: { fatal: 0x20 } },
];
