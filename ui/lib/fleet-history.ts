/** How many nodes were in which kind of state, while the page is open. Pure. */
import { classOf, type Row, type StateClass } from './rows';

export const CLASSES: readonly StateClass[] = ['active', 'available', 'idle', 'working', 'waiting', 'failed'];
export interface Sample {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly counts: Readonly<Record<StateClass, number>>;
}
const PERIOD_MS = 10_000;
/** Two hours. */
const MOST_SAMPLES = 720;

function countsIn(rows: Iterable<Row>): Record<StateClass, number> {
  const counts = Object.fromEntries(CLASSES.map((name) => [name, 0])) as Record<StateClass, number>;
  for (const row of rows) counts[classOf(row)]++;
  return counts;
}
/** The samples with one of now. The last one is replaced until its period is over. */
export function withSample(samples: readonly Sample[], now: number, rows: Iterable<Row>): readonly Sample[] {
  const last = samples.at(-1);
  const period = (at: number): number => Math.floor(at / PERIOD_MS);
  const kept = last && period(last.at) === period(now) ? samples.slice(0, -1) : samples;
  return [...kept, { at: now, counts: countsIn(rows) }].slice(-MOST_SAMPLES);
}

export interface Area {
  readonly name: StateClass;
  /** For `d` of an SVG path in a box of 100 × 100. */
  readonly path: string;
}
/** The kinds as areas above each other; the counts of a sample hold until the next one. */
export function areasOf(samples: readonly Sample[], now: number): readonly Area[] {
  const [first] = samples;
  const most = Math.max(1, ...samples.map(({ counts }) => CLASSES.reduce((sum, name) => sum + counts[name], 0)));
  if (!first) return [];
  const x = (at: number): string => (((at - first.at) / Math.max(1, now - first.at)) * 100).toFixed(2);
  const steps = samples.map(({ at, counts }, index) => ({ counts, from: x(at), to: x(samples[index + 1]?.at ?? now) }));
  return CLASSES.map((name, index) => {
    const levelOf = (counts: Sample['counts'], classes: readonly StateClass[]): string =>
      (100 - (classes.reduce((sum, one) => sum + counts[one], 0) / most) * 100).toFixed(2);
    const [below, above] = [CLASSES.slice(0, index), CLASSES.slice(0, index + 1)];
    const top = steps.flatMap(({ counts, from, to }) => [`${from} ${levelOf(counts, above)}`, `${to} ${levelOf(counts, above)}`]);
    const bottom = steps.flatMap(({ counts, from, to }) => [`${from} ${levelOf(counts, below)}`, `${to} ${levelOf(counts, below)}`]);
    return { name, path: `M${[...top, ...bottom.reverse()].join(' L')} Z` };
  });
}
