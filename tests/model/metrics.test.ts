/** The table of metrics: names as Prometheus wants them, and the same metrics in the documentation. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { entry } from '../../config/markdown';
import { METRICS, type MetricRow } from '../../model/metrics';

const rows = Object.entries<MetricRow>(METRICS);
const docs = join(__dirname, '../../docs');

it('names and labels follow the rules of Prometheus', () => {
  for (const [name, { kind, help, labels, buckets }] of rows) {
    expect(name).toMatch(/^(?:bloomery|baremetal)_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
    if (kind === 'histogram') expect(name).toMatch(/_seconds$/);
    expect(buckets !== undefined).toBe(kind === 'histogram');
    expect(help).toMatch(/^[A-Z].*\.$/);
    for (const label of labels) expect(label).toMatch(/^(?!le$|quantile$)[a-z_]+$/);
  }
});

it('docs/reference/metrics.md equals the generated list (UPDATE_DOCS=1 writes it)', () => {
  const list = [
    'Generated from `model/metrics.ts`; do not edit below here (`UPDATE_DOCS=1 npx jest tests/model/metrics` writes it).',
    '',
    ...rows.map(([name, { kind, labels, help }]) => {
      const labelled = labels.length === 0 ? '' : `; labels ${labels.map((label) => `\`${label}\``).join(', ')}`;
      return entry(`**\`${name}\`**: ${kind}${labelled}`, help);
    }),
    '',
  ].join('\n');
  const path = join(docs, 'reference/metrics.md');
  const [before = ''] = readFileSync(path, 'utf8').split(/(?<=## All metrics\n\n)/);
  if (process.env['UPDATE_DOCS']) writeFileSync(path, before + list);
  expect(readFileSync(path, 'utf8')).toBe(before + list);
});

it('the sample alerts use existing metrics and labels', () => {
  const { groups } = parse(readFileSync(join(docs, 'prometheus/alerts.yml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[];
  };
  const rules = groups.flatMap(({ rules: some }) => some);
  expect(rules.length).toBeGreaterThan(5);
  const table: Readonly<Record<string, MetricRow>> = METRICS;
  for (const { expr, annotations } of rules) {
    expect(annotations.summary).toMatch(/\.$/);
    const asked = [...expr.matchAll(/(bloomery_\w+)(?:\{([^}]*)\})?/g)];
    for (const [, name = '', matchers = ''] of asked) {
      const base = name.replace(/_(bucket|count|sum)$/, '');
      const row = table[name] ?? (table[base]?.kind === 'histogram' ? table[base] : undefined);
      expect([name, row?.kind]).toEqual([name, expect.any(String) as unknown]);
      for (const [, label = ''] of matchers.matchAll(/(\w+)\s*[!=]/g)) expect(row!.labels).toContain(label);
    }
  }
});

it.each(['sensors', 'health'])('the sample dashboard %s uses existing metrics and labels', (name) => {
  const board = JSON.parse(readFileSync(join(docs, `grafana/${name}.json`), 'utf8')) as { panels: { targets: { expr: string }[] }[] };
  const table: Readonly<Record<string, MetricRow>> = METRICS;
  const asked = board.panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) => [...expr.matchAll(/((?:bloomery|baremetal)_\w+)(?:\{([^}]*)\})?/g)]),
  );
  expect(asked.length).toBeGreaterThan(8);
  for (const [, metric = '', matchers = ''] of asked) {
    const row = table[metric.replace(/(_seconds)_count$/, '$1')] ?? (metric === 'baremetal_' ? table['baremetal_fan_status'] : undefined);
    expect([metric, row?.kind]).toEqual([metric, expect.any(String) as unknown]);
    for (const [, label = ''] of matchers.matchAll(/(\w+)\s*[!=]/g)) expect(row!.labels).toContain(label);
  }
});
