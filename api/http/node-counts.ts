/** Counts nodes by state for the metrics. All scrapes within a few seconds share one query. */
import type { Clock } from '../../model/clock';
import type { Metrics, Sample } from '../../model/metrics';
import type { Store } from '../../store/store';

const TTL_MS = 5000;

export function measureNodes({ nodes }: Pick<Store, 'nodes'>, clock: Clock, metrics: Metrics): void {
  let cached: { readonly until: number; readonly samples: Promise<readonly Sample<'bloomery_nodes'>[]> } | undefined;
  const readCounts = async (): Promise<readonly Sample<'bloomery_nodes'>[]> =>
    (await nodes.counts()).map(({ provision_state: state, power_state: power, maintenance, fault, count }) => [
      { provision_state: state, power_state: power ?? 'none', maintenance: String(maintenance), fault: fault ?? 'none' },
      count,
    ]);
  metrics.read('bloomery_nodes', () => {
    if (cached && cached.until > clock.now()) return cached.samples;
    const samples = readCounts();
    cached = { until: clock.now() + TTL_MS, samples };
    samples.catch(() => (cached = undefined));
    return samples;
  });
}
