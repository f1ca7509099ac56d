/** What the sensors of a machine showed while its view is open. Pure. */
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
/** An hour of readings. */
const MOST_VALUES = 360;

const keyOf = ({ kind, sensor, entity, unit }: Omit<Reading, 'value'>): string => JSON.stringify([kind, sensor, entity, unit]);
/** The histories of the sensors of the latest reading. */
export function withReadings(histories: readonly SensorHistory[], at: number, readings: readonly Reading[]): readonly SensorHistory[] {
  const known = new Map(histories.map((history) => [keyOf(history), history.values]));
  return readings.map(({ value, ...sensor }) => ({
    ...sensor,
    values: [...(known.get(keyOf(sensor)) ?? []), { at, value }].slice(-MOST_VALUES),
  }));
}
export function rangeOf(values: SensorHistory['values']): string {
  const numbers = values.map(({ value }) => value);
  return `${Math.min(...numbers)} … ${Math.max(...numbers)}`;
}
/** For `points` of an SVG polyline in a box of 100 × 100: the lowest value at 90, the highest at 10; equal values in the middle. */
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
