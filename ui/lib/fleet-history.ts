/** How many nodes were in each kind of state: over the last day by the server's counts, and while the page is open. Pure. */
import type { StateCounts } from '../../model/records';
import { classOf, type NodeRow, type StateClass } from './rows';

export const CLASSES: readonly StateClass[] = ['active', 'available', 'idle', 'working', 'waiting', 'failed'];
export interface Sample {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly counts: Readonly<Record<StateClass, number>>;
}
const DAY_MS = 86_400_000;
/** Of the samples that are younger than `age`, the last one of each `period` is kept (milliseconds): at most 450 in all. */
const RESOLUTION: readonly (readonly [age: number, period: number])[] = [
  [600_000, 10_000],
  [7_200_000, 60_000],
  [DAY_MS, 300_000],
];

function countsIn(states: Iterable<readonly [state: string, count: number]>): Record<StateClass, number> {
  const counts = Object.fromEntries(CLASSES.map((name) => [name, 0])) as Record<StateClass, number>;
  for (const [state, count] of states) counts[classOf({ state })] += count;
  return counts;
}
/** Keeps the last sample of each period, and the last one older than a day, whose counts hold until the next sample. */
function thinned(samples: readonly Sample[], now: number): readonly Sample[] {
  const periodOf = ({ at }: Sample): string => {
    const [, period] = RESOLUTION.find(([age]) => now - at < age) ?? [];
    return period === undefined ? '' : `${period} ${Math.floor(at / period)}`;
  };
  return samples.filter((sample, index) => {
    const next = samples[index + 1];
    return next === undefined || periodOf(sample) !== periodOf(next);
  });
}
/** The samples, with a new one of the present rows. */
export function withSample(samples: readonly Sample[], now: number, rows: Iterable<NodeRow>): readonly Sample[] {
  const states = new Map<string, number>();
  for (const { state } of rows) states.set(state, (states.get(state) ?? 0) + 1);
  return thinned([...samples, { at: now, counts: countsIn(states) }], now);
}
/** The response of `GET /v1/state_counts`. */
export interface ServerCounts {
  readonly now: string;
  readonly state_counts: readonly StateCounts[];
}
/** The samples together with the server's. Corrects the difference between the server's clock and the browser's. */
export function withServerCounts(samples: readonly Sample[], now: number, server: ServerCounts): readonly Sample[] {
  const ahead = Date.parse(server.now) - now;
  const counted = server.state_counts.map(({ at, counts }) => ({
    at: Math.min(now, Date.parse(at) - ahead),
    counts: countsIn(Object.entries(counts)),
  }));
  return thinned(
    [...samples, ...counted].sort((left, right) => left.at - right.at),
    now,
  );
}
/** The time at which the chart begins, in milliseconds since the epoch. */
export const beginOf = (samples: readonly Sample[], now: number): number => Math.max(samples[0]?.at ?? now, now - DAY_MS);

interface Area {
  readonly name: StateClass;
  /** The attribute `d` of an SVG path in a box of 100 × 100. */
  readonly path: string;
}
/** The kinds of states as stacked areas. The counts of a sample hold until the next one. */
export function stackedAreas(samples: readonly Sample[], now: number): readonly Area[] {
  if (samples.length === 0) return [];
  const most = Math.max(1, ...samples.map(({ counts }) => CLASSES.reduce((sum, name) => sum + counts[name], 0)));
  const begin = beginOf(samples, now);
  const x = (at: number): string => Math.max(0, ((at - begin) / Math.max(1, now - begin)) * 100).toFixed(2);
  const steps = samples.map(({ at, counts }, index) => ({ counts, from: x(at), to: x(samples[index + 1]?.at ?? now) }));
  return CLASSES.map((name, index) => {
    const levelOf = (counts: Sample['counts'], classes: readonly StateClass[]): string =>
      (100 - (classes.reduce((sum, item) => sum + counts[item], 0) / most) * 100).toFixed(2);
    const [below, above] = [CLASSES.slice(0, index), CLASSES.slice(0, index + 1)];
    const top = steps.flatMap(({ counts, from, to }) => [`${from} ${levelOf(counts, above)}`, `${to} ${levelOf(counts, above)}`]);
    const bottom = steps.flatMap(({ counts, from, to }) => [`${from} ${levelOf(counts, below)}`, `${to} ${levelOf(counts, below)}`]);
    return { name, path: `M${[...top, ...bottom.reverse()].join(' L')} Z` };
  });
}
