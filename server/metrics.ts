/** Implements the metrics with prom-client, in a registry of their own, and renders scrapes. */
import * as prometheus from 'prom-client';
import { METRICS, type MetricName, type MetricRow, type Metrics, type Sample, type Scrape, type Total } from '../model/metrics';

/** Series per metric. Further label values become `other`, so that no defect can exhaust the memory. */
const MAX_SERIES = 2000;
const OTHER = 'other';
/** Milliseconds to read a gauge; a slower gauge is omitted from the scrape. */
const READ_TIMEOUT_MS = 2000;
const PROMETHEUS = prometheus.Registry.PROMETHEUS_CONTENT_TYPE;
const OPENMETRICS = prometheus.Registry.OPENMETRICS_CONTENT_TYPE;

export interface MetricsAndScrape {
  readonly metrics: Metrics;
  readonly scrape: Scrape;
}
/** prom-client's JSON of a metric. */
interface MetricJson {
  readonly name: string;
  readonly values: readonly { readonly value: number; readonly metricName?: string }[];
}
type AnyLabels = Readonly<Record<string, string>>;
/** The union of prom-client's classes; the type `Metrics` allows only the methods of a metric's kind. */
type Instrument = Readonly<Record<'inc' | 'observe' | 'set', (labels: AnyLabels, value: number) => void>>;
type Reader = () => readonly Sample<MetricName>[] | Promise<readonly Sample<MetricName>[]>;

/** Whether the Accept header of a scraper names OpenMetrics. */
const wantsOpenMetrics = (accept = ''): boolean =>
  /application\/openmetrics-text/.test(accept) && !/openmetrics-text[^,]*;\s*q=0(?:\.0*)?(?:[,;]|$)/.test(accept);
/**
 * OpenMetrics 1.0: no `_total` in the comments of counters, no empty lines, `# EOF` at the end. (prom-client's own conversion renames
 * counters permanently.)
 */
const asOpenMetrics = (text: string): string =>
  `${text
    .replace(/^# HELP (\w+)_total (.*)\n# TYPE \1_total counter$/gm, '# HELP $1 $2\n# TYPE $1 counter')
    .split('\n')
    .filter((line) => line !== '')
    .join('\n')}\n# EOF\n`;

const withTimeout = <T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => resolve(undefined), milliseconds);
    work.finally(() => clearTimeout(late)).then(resolve, reject);
  });

/**
 * @param options.process include metrics of the process: CPU, memory, files, garbage collection, event loop. Only once per process,
 * because prom-client cannot stop them
 */
export function createMetrics(options: { readonly process?: boolean } = {}): MetricsAndScrape {
  const registry = new prometheus.Registry();
  if (options.process) prometheus.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 });
  const readers = new Map<string, Reader>();
  const series = new Map<string, Set<string>>();

  async function read(name: string, gauge: prometheus.Gauge): Promise<void> {
    const reader = readers.get(name);
    if (!reader) return;
    const samples = await withTimeout(Promise.resolve().then(reader), READ_TIMEOUT_MS).catch(() => undefined);
    gauge.reset();
    series.delete(name);
    for (const [labels, value] of samples ?? []) gauge.set(bounded(name, labels), value);
  }
  const make = (name: string, { kind, help, labels: labelNames, buckets }: MetricRow): object => {
    const common = { name, help, labelNames, registers: [registry] };
    if (kind === 'counter') return new prometheus.Counter(common);
    if (kind === 'histogram') return new prometheus.Histogram({ ...common, buckets: [...buckets!] });
    const gauge: prometheus.Gauge = new prometheus.Gauge({ ...common, collect: () => read(name, gauge) });
    return gauge;
  };
  const instruments = new Map(Object.entries<MetricRow>(METRICS).map(([name, row]) => [name, make(name, row) as Instrument]));

  function bounded(name: string, labels: AnyLabels): AnyLabels {
    const values = Object.values(labels);
    if (values.length === 0) return labels;
    const known = series.get(name) ?? new Set();
    const key = values.join('\0');
    if (known.has(key)) return labels;
    if (known.size >= ((METRICS as Readonly<Record<string, MetricRow>>)[name]!.most ?? MAX_SERIES))
      return Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER]));
    series.set(name, known.add(key));
    return labels;
  }

  const totalsOf = (all: readonly MetricJson[]): Readonly<Record<string, Total>> =>
    Object.fromEntries(
      all.flatMap(({ name, values }): (readonly [string, Total])[] => {
        const kind = (METRICS as Readonly<Record<string, MetricRow>>)[name]?.kind;
        const sum = (of: string): number =>
          values.reduce((total, value) => total + ((value.metricName ?? name) === of ? value.value : 0), 0);
        if (kind === 'counter') return [[`ironic.conductor.${name}`, { type: 'counter', count: sum(name) }]];
        if (kind !== 'histogram') return [];
        return [[`ironic.conductor.${name}`, { type: 'timer', count: sum(`${name}_count`), sum: 1000 * sum(`${name}_sum`) }]];
      }),
    );

  let scraping: Promise<string> | undefined;
  return {
    metrics: {
      count: (name, labels, by = 1) => instruments.get(name)!.inc(bounded(name, labels), by),
      observe: (name, labels, seconds) => instruments.get(name)!.observe(bounded(name, labels), seconds),
      set: (name, labels, value) => instruments.get(name)!.set(bounded(name, labels), value),
      read: (name, reader) => void readers.set(name, reader as Reader),
      totals: async () => totalsOf(await registry.getMetricsAsJSON()),
      timer: () => {
        const started = performance.now();
        return () => (performance.now() - started) / 1000;
      },
    },
    scrape: async (accept) => {
      // Concurrent scrapes share one result.
      scraping ??= registry.metrics().finally(() => (scraping = undefined));
      const text = await scraping;
      return wantsOpenMetrics(accept) ? { type: OPENMETRICS, text: asOpenMetrics(text) } : { type: PROMETHEUS, text };
    },
  };
}

/** The public metrics, without those of single machines. */
export const withoutMachines =
  (scrape: Scrape): Scrape =>
  async (accept) => {
    const { type, text } = await scrape(accept);
    const lines = text.split('\n').filter((line) => !/^(?:# (?:HELP|TYPE) )?baremetal_/.test(line));
    return { type, text: lines.join('\n') };
  };
