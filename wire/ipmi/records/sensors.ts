/** Reads sensors (IPMI 2.0 §35.14) and converts raw values (§36). */
import type { SendCommand } from '../record-access';
import { COMMANDS, IpmiError } from '../constants';
import { THRESHOLDS, decodeFactors, signed, type Factors, type SensorRecord } from './sdr';

export interface Reading {
  /** Absent: not available now. */
  readonly raw?: number;
  readonly scanningDisabled: boolean;
  /** Threshold comparison (§35.14 byte 4), or which discrete states are asserted. */
  readonly states: number;
  /** Conversion factors of this reading, for sensors that are not linear. */
  readonly factors?: Factors | undefined;
}
const NON_LINEAR = 0x70;

/** @returns undefined when the BMC has no such sensor, or no reading of it */
export async function readSensor(ask: SendCommand, record: SensorRecord): Promise<Reading | undefined> {
  const answer = await ask(COMMANDS.getSensorReading, [record.number], record.lun).catch(absent);
  if (!answer || answer.length < 2) return undefined;
  const [raw, flags, low = 0, high = 0] = answer as unknown as readonly [number, number, number?, number?];
  const scanningDisabled = (flags & 0x40) === 0;
  const states = low | ((high & 0x7f) << 8);
  if (scanningDisabled || flags & 0x20) return { scanningDisabled, states };
  if (!record.analog || record.analog.linearization < NON_LINEAR) return { raw, scanningDisabled, states };
  const factors = await ask(COMMANDS.getSensorReadingFactors, [record.number, raw], record.lun).catch(absent);
  // Byte 1 is the next reading to which other factors apply.
  return { raw, scanningDisabled, states, factors: factors && factors.length >= 7 ? decodeFactors(factors.subarray(1)) : undefined };
}
/** Bits of the capabilities (table 43-1 byte 12) for settable values: thresholds, hysteresis. */
const SETTABLE = { thresholds: { mask: 0x0c, is: 0x08 }, hysteresis: { mask: 0x30, is: 0x20 } } as const;
const ALL_ONES = 0xff;

/** Reads current thresholds and hysteresis where they may differ from the record (§35.7, §35.9). */
export async function withLimits(ask: SendCommand, record: SensorRecord): Promise<SensorRecord> {
  const { analog, capabilities, number, lun } = record;
  const canSet = (what: keyof typeof SETTABLE): boolean => (capabilities & SETTABLE[what].mask) === SETTABLE[what].is;
  if (!analog) return record;
  const thresholds = canSet('thresholds') ? await ask(COMMANDS.getSensorThresholds, [number], lun).catch(absent) : undefined;
  const distance = canSet('hysteresis') ? await ask(COMMANDS.getSensorHysteresis, [number, ALL_ONES], lun).catch(absent) : undefined;
  const now = THRESHOLDS.flatMap((name, index) => {
    const value = thresholds && (thresholds[0]! >> index) & 1 ? thresholds[1 + index] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  const [positive, negative] = distance ?? [];
  return {
    ...record,
    analog: { ...analog, thresholds: { ...analog.thresholds, ...Object.fromEntries(now) } },
    ...(positive === undefined || negative === undefined ? {} : { hysteresis: { positive, negative } }),
  };
}
/** A refusal by completion code means that the value does not exist. */
const absent = (error: unknown): undefined => {
  if (error instanceof IpmiError && error.kind === 'completion') return undefined;
  throw error;
};

/** Linearization (table 43-1, byte 24) → function. From 70h on, each reading has its own factors instead. */
const LINEARIZATIONS: readonly ((x: number) => number)[] = [
  (x) => x,
  Math.log,
  Math.log10,
  Math.log2,
  Math.exp,
  (x) => 10 ** x,
  (x) => 2 ** x,
  (x) => 1 / x,
  (x) => x ** 2,
  (x) => x ** 3,
  Math.sqrt,
  Math.cbrt,
];
const linear = (x: number): number => x;
const fromRaw = (raw: number, format: number): number => {
  if (format === 1) return raw & 0x80 ? raw - 0xff : raw;
  return format === 2 ? signed(raw, 8) : raw;
};
/** Whether raw readings can be converted. */
export const hasAnalogReading = ({ units, analog }: SensorRecord): boolean => analog !== undefined && units.format !== 3;

/** y = L[(M·x + B·10^K1)·10^K2] (§36.3). */
export function valueOf({ units, analog }: SensorRecord, raw: number, factors = analog!.factors): number {
  const { m, b, bExponent, rExponent } = factors;
  const function_ = LINEARIZATIONS[analog!.linearization] ?? linear;
  return function_((m * fromRaw(raw, units.format) + b * 10 ** bExponent) * 10 ** rExponent);
}
/** A hysteresis is a distance, so B does not apply. */
export const distanceOf = ({ analog }: SensorRecord, raw: number): number =>
  (LINEARIZATIONS[analog!.linearization] ?? linear)(analog!.factors.m * raw * 10 ** analog!.factors.rExponent);
export const toleranceOf = (record: SensorRecord): number => distanceOf(record, record.analog!.factors.tolerance / 2);
