/** Prometheus' own parsers (those of its Python client, which comes with the real Ironic) read our metrics, in both formats. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createMetrics } from '../../server/metrics';
import { METRICS, type MetricRow, type Metrics } from '../../model/metrics';
import { programs } from '../lab/support/venv';

const READ = `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
texts = json.load(sys.stdin)
families = [list(prometheus(texts['prometheus'])), list(openmetrics(texts['openmetrics']))]
print(json.dumps([{f.name: [f.type, f.documentation, [[s.name, s.labels, s.value] for s in f.samples]] for f in one if f.name.startswith(('bloomery_', 'baremetal_'))} for one in families]))
`;
type Family = readonly [type: string, help: string, samples: readonly (readonly [string, Readonly<Record<string, string>>, number])[]];

/** One series of every metric, with labels that need escaping. */
function fill(metrics: Metrics): void {
  const any = metrics as unknown as Record<'count' | 'observe' | 'set', (name: string, labels: object, value: number) => void>;
  for (const [name, { kind, labels }] of Object.entries<MetricRow>(METRICS)) {
    const values = Object.fromEntries(labels.map((label) => [label, `a "${label}" \\ with\nlines ü`]));
    any[({ counter: 'count', histogram: 'observe', gauge: 'set' } as const)[kind]](name, values, 0.5);
  }
}

it("Prometheus' parsers read each metric with its type, help text, labels and value", async () => {
  const python = join(await programs('ironic', ['ironic==39.0.0']), 'python3');
  const { metrics, scrape } = createMetrics({ process: true });
  fill(metrics);
  const texts = { prometheus: (await scrape(undefined)).text, openmetrics: (await scrape('application/openmetrics-text')).text };
  const { stdout, stderr } = spawnSync(python, ['-c', READ], { input: JSON.stringify(texts), encoding: 'utf8', timeout: 60_000 });
  if (stdout === '') throw new Error(stderr);
  for (const families of JSON.parse(stdout) as Readonly<Record<string, Family>>[])
    for (const [name, { kind, help, labels }] of Object.entries<MetricRow>(METRICS)) {
      const [type, documentation, samples] = families[name.replace(/_total$/, '')]!;
      expect([type, documentation]).toEqual([kind, help]);
      const expected = Object.fromEntries(labels.map((label) => [label, `a "${label}" \\ with\nlines ü`]));
      const main = samples.find(([sample]) => sample === (kind === 'histogram' ? `${name}_count` : name))!;
      expect(main.slice(1)).toEqual([expected, kind === 'histogram' ? 1 : 0.5]);
    }
}, 600_000);
