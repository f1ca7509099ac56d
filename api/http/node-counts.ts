/** How many nodes there are of each kind, for scrapes: one query, and not again within some seconds however many scrape. */
import type { Clock } from '../../model/clock';
import type { Metrics, Sample } from '../../model/metrics';
import type { Store } from '../../store/store';

const FRESH_MS = 5000;

export function measureNodes({ nodes }: Pick<Store, 'nodes'>, clock: Clock, metrics: Metrics): void {
  let kept: { readonly until: number; readonly samples: Promise<readonly Sample<'bloomery_nodes'>[]> } | undefined;
  const ask = async (): Promise<readonly Sample<'bloomery_nodes'>[]> =>
    (await nodes.counts()).map(({ provision_state: state, power_state: power, maintenance, fault, count }) => [
      { provision_state: state, power_state: power ?? 'none', maintenance: String(maintenance), fault: fault ?? 'none' },
      count,
    ]);
  metrics.read('bloomery_nodes', () => {
    if (kept && kept.until > clock.now()) return kept.samples;
    const samples = ask();
    kept = { until: clock.now() + FRESH_MS, samples };
    samples.catch(() => (kept = undefined));
    return samples;
  });
}
