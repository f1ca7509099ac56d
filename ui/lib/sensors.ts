/** The readings of a machine's sensors since its view was opened, and charts of them. Pure. */
export interface Reading {
  readonly kind: string;
  readonly sensor: string;
  readonly entity: string;
  readonly unit: string;
  readonly value: number;
}
export interface SensorHistory extends Omit<Reading, 'value'> {
  /** The oldest first. */
  readonly values: readonly { readonly at: number; readonly value: number }[];
}
/** An hour of readings at one per ten seconds. */
const MAX_VALUES = 360;

/** Identifies a sensor among those of its machine. */
export const keyOf = ({ kind, sensor, entity, unit }: Omit<Reading, 'value'>): string => JSON.stringify([kind, sensor, entity, unit]);
/** Adds readings to the histories. Sensors without a new reading are dropped. */
export function withReadings(histories: readonly SensorHistory[], at: number, readings: readonly Reading[]): readonly SensorHistory[] {
  const known = new Map(histories.map((history) => [keyOf(history), history.values]));
  return readings.map(({ value, ...sensor }) => ({
    ...sensor,
    values: [...(known.get(keyOf(sensor)) ?? []), { at, value }].slice(-MAX_VALUES),
  }));
}
/** Unit in the API → its symbol. */
const UNITS: Readonly<Record<string, string>> = { celsius: '°C', volts: 'V', watts: 'W', amperes: 'A', percent: '%', other: '' };
export const unitText = (unit: string): string => (Object.hasOwn(UNITS, unit) ? UNITS[unit]! : unit);
export function rangeOf(values: SensorHistory['values']): string {
  const numbers = values.map(({ value }) => value);
  return `${Math.min(...numbers)} … ${Math.max(...numbers)}`;
}
/** The attribute `points` of an SVG polyline in a box of 100 × 100: lowest value at y = 90, highest at 10, equal values at 50. */
export function lineOf(values: SensorHistory['values']): string {
  const numbers = values.map(({ value }) => value);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const [from, to] = [values[0]?.at ?? 0, values.at(-1)?.at ?? 0];
  const points = values.map(({ at, value }) => {
    const x = to === from ? 100 : ((at - from) / (to - from)) * 100;
    return `${x.toFixed(1)},${(high === low ? 50 : 90 - ((value - low) / (high - low)) * 80).toFixed(1)}`;
  });
  return (points.length === 1 ? ['0,50', ...points] : points).join(' ');
}

/** A mark of an axis. */
interface Tick {
  /** Its distance from the start of the axis, in percent of the axis. */
  readonly place: number;
  readonly value: number;
}
interface Chart {
  /** The line: distances from the left and from the bottom, in percent. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** The marks of the time axis; their values are milliseconds since the epoch. */
  readonly horizontal: readonly Tick[];
  readonly vertical: readonly Tick[];
}
const MAX_STEPS = 5;
const TIMES = [0, 25, 50, 75, 100];
/** The smallest of …, 1, 2, 5, 10, 20, … that divides the range into at most MAX_STEPS steps. */
function stepOf(range: number): number {
  const power = 10 ** Math.floor(Math.log10(range / MAX_STEPS));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => range / step <= MAX_STEPS) ?? 10 * power;
}
/** A line with axes. @param values at least one; equal values are in the vertical middle */
export function chartOf(values: SensorHistory['values']): Chart {
  const numbers = values.map(({ value }) => value);
  const [lowest, highest] = [Math.min(...numbers), Math.max(...numbers)];
  const margin = lowest === highest ? Math.abs(lowest) / 10 || 1 : 0;
  const step = stepOf(highest - lowest + 2 * margin);
  const [from, to] = [Math.floor((lowest - margin) / step), Math.ceil((highest + margin) / step)];
  const heightOf = (value: number): number => ((value / step - from) / (to - from)) * 100;
  const [start, end] = [values[0]!.at, values.at(-1)!.at];
  return {
    points: values.map(({ at, value }) => ({ x: end === start ? 100 : ((at - start) / (end - start)) * 100, y: heightOf(value) })),
    horizontal: (end === start ? [100] : TIMES).map((place) => ({ place, value: start + ((end - start) * place) / 100 })),
    vertical: Array.from({ length: to - from + 1 }, (_, index) => {
      // Rounds away the errors of binary fractions.
      const value = Number(((from + index) * step).toPrecision(12));
      return { place: heightOf(value), value };
    }),
  };
}
