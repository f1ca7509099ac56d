import { createMetrics, withoutMachines } from '../../server/metrics';

const lines = (text: string, name: string): string[] => text.split('\n').filter((line) => line.startsWith(name));

it('exposes counters, histograms and gauges, and reads some gauges at each scrape', async () => {
  const { metrics, scrape } = createMetrics();
  metrics.count('bloomery_workers_refused_total', {});
  metrics.count('bloomery_workers_refused_total', {}, 2);
  metrics.observe('bloomery_periodic_duration_seconds', { task: 'a "quoted"\nname' }, 0.02);
  metrics.set('bloomery_workers', {}, 7);
  let held = 3;
  metrics.read('bloomery_locks_held', () => [[{}, held]]);
  const { type, text } = await scrape(undefined);
  expect(type).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(lines(text, 'bloomery_workers')).toEqual(['bloomery_workers 7', 'bloomery_workers_in_use 0', 'bloomery_workers_refused_total 3']);
  expect(text).toContain('bloomery_periodic_duration_seconds_bucket{le="0.025",task="a \\"quoted\\"\\nname"} 1\n');
  expect(text).toContain('bloomery_locks_held 3\n');
  held = 0;
  expect((await scrape(undefined)).text).toContain('bloomery_locks_held 0\n');
});

it('answers in the OpenMetrics format if Accept asks for it, otherwise in the Prometheus text format', async () => {
  const { metrics, scrape } = createMetrics({ process: true });
  metrics.count('bloomery_workers_refused_total', {});
  const { type, text } = await scrape('application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1');
  expect(type).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
  expect(text).toMatch(/\n# TYPE bloomery_workers_refused counter\nbloomery_workers_refused_total 1\n/);
  expect(text).toMatch(/\n# EOF\n$/);
  expect(text).not.toContain('\n\n');
  for (const accept of [undefined, '*/*', 'text/plain', 'application/openmetrics-text;q=0, text/plain']) {
    const plain = await scrape(accept);
    expect(plain.type).toMatch(/^text\/plain/);
    expect(plain.text).toContain('# TYPE bloomery_workers_refused_total counter\nbloomery_workers_refused_total 1\n');
  }
});

it('limits the series of a metric, and counts the rest under "other"', async () => {
  const { metrics, scrape } = createMetrics();
  for (let i = 0; i < 2500; i++) metrics.count('bloomery_tftp_transfers_total', { outcome: `wrong ${i}` });
  const found = lines((await scrape(undefined)).text, 'bloomery_tftp_transfers_total');
  expect(found).toHaveLength(2001);
  expect(found).toContain('bloomery_tftp_transfers_total{outcome="other"} 500');
});

it('omits a metric that cannot be read at the scrape', async () => {
  const { metrics, scrape } = createMetrics();
  metrics.read('bloomery_nodes', () => Promise.reject(new Error('the database is away')));
  metrics.read('bloomery_locks_held', () => [[{}, 1]]);
  const { text } = await scrape(undefined);
  expect(lines(text, 'bloomery_nodes')).toEqual([]);
  expect(text).toContain('bloomery_locks_held 1\n');
});

it('withoutMachines() omits the metrics of single machines', async () => {
  const { metrics, scrape } = createMetrics();
  const node = { node_uuid: 'u', node_name: 'n', instance_uuid: 'i' };
  metrics.read('baremetal_last_payload_timestamp_seconds', () => [[node, 5]]);
  metrics.set('bloomery_workers', {}, 7);
  expect((await scrape(undefined)).text).toContain(
    'baremetal_last_payload_timestamp_seconds{node_uuid="u",node_name="n",instance_uuid="i"} 5',
  );
  for (const accept of [undefined, 'application/openmetrics-text']) {
    const { text } = await withoutMachines(scrape)(accept);
    expect(text).not.toContain('baremetal');
    expect(text).toContain('\nbloomery_workers 7\n');
    expect(text.endsWith(accept === undefined ? '\n' : '\n# EOF\n')).toBe(true);
  }
});

it('allows more series for the metrics of single machines, and forgets machines that are gone', async () => {
  const { metrics, scrape } = createMetrics();
  const series = (from: number) =>
    Array.from({ length: 5000 }, (_, n) => [{ node_uuid: `${from + n}`, node_name: '', instance_uuid: '' }, 1] as const);
  for (const from of [0, 5000]) {
    metrics.read('baremetal_last_payload_timestamp_seconds', () => series(from));
    const found = lines((await scrape(undefined)).text, 'baremetal_last_payload_timestamp_seconds');
    expect(found).toHaveLength(5000);
    expect(found[0]).toContain(`node_uuid="${from}"`);
  }
});

it('totals() sums each metric over its labels, in the format of Ironic', async () => {
  const { metrics } = createMetrics();
  metrics.count('bloomery_flows_total', { flow: 'deploy', outcome: 'done' });
  metrics.count('bloomery_flows_total', { flow: 'clean', outcome: 'done' }, 2);
  metrics.observe('bloomery_flow_duration_seconds', { flow: 'deploy', outcome: 'done' }, 1.5);
  metrics.observe('bloomery_flow_duration_seconds', { flow: 'clean', outcome: 'done' }, 2);
  expect(await metrics.totals()).toMatchObject({
    'ironic.conductor.bloomery_flows_total': { type: 'counter', count: 3 },
    'ironic.conductor.bloomery_flow_duration_seconds': { type: 'timer', count: 2, sum: 3500 },
  });
});
