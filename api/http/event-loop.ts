/** Measures the lasting delay of the event loop: load that stays counts, one long piece of work does not. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const PERIOD_MS = 10_000;
const PERIODS = 3;
/** In a millisecond. */
const NANOSECONDS = 1e6;

interface DelayWatch {
  /** Milliseconds: the lowest 99th percentile of the last PERIODS periods; 0 until that many have passed. */
  lasting(): number;
  stop(): void;
}
/** The least of the last `count` values; 0 until there are that many. @internal */
export function createLeast(count: number): { add(value: number): void; least(): number } {
  let values: readonly number[] = [];
  return {
    add: (value) => void (values = [...values, value].slice(-count)),
    least: () => (values.length < count ? 0 : Math.min(...values)),
  };
}
export function watchDelay(): DelayWatch {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  const delays = createLeast(PERIODS);
  const timer = setInterval(() => {
    delays.add(Math.round(histogram.percentile(99) / NANOSECONDS));
    histogram.reset();
  }, PERIOD_MS);
  timer.unref();
  return {
    lasting: () => delays.least(),
    stop: () => {
      clearInterval(timer);
      histogram.disable();
    },
  };
}
