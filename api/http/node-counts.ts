/** Metrics that count rows of the database. All scrapes within a few seconds share one query. */
import type { Clock } from '../../model/clock';
import type { Metrics, Sample } from '../../model/metrics';
import { isOverdue, outageOf } from '../../model/rules/out-of-service';
import type { Store } from '../../store/store';

const TTL_MS = 5000;

export function measureRows<Name extends Parameters<Metrics['read']>[0]>(
  name: Name,
  clock: Clock,
  metrics: Metrics,
  read: () => Promise<readonly Sample<Name>[]>,
): void {
  let cached: { readonly until: number; readonly samples: Promise<readonly Sample<Name>[]> } | undefined;
  metrics.read(name, () => {
    if (cached && cached.until > clock.now()) return cached.samples;
    const samples = read();
    cached = { until: clock.now() + TTL_MS, samples };
    samples.catch(() => (cached = undefined));
    return samples;
  });
}

/** Counts nodes by state, and those out of service. */
export function measureNodes({ nodes }: Pick<Store, 'nodes'>, clock: Clock, metrics: Metrics): void {
  measureRows('bloomery_nodes_out_of_service', clock, metrics, async () => {
    const outages = (await nodes.listColumns(['out_of_service'], { outOfService: true, children: 'all' })).flatMap(
      (node) => outageOf(node) ?? [],
    );
    const overdue = outages.filter((outage) => isOverdue(outage, clock.now())).length;
    return [
      [{ overdue: 'true' }, overdue],
      [{ overdue: 'false' }, outages.length - overdue],
    ];
  });
  measureRows('bloomery_nodes', clock, metrics, async () =>
    (await nodes.counts()).map(({ provision_state: state, power_state: power, maintenance, fault, count }) => [
      { provision_state: state, power_state: power ?? 'none', maintenance: String(maintenance), fault: fault ?? 'none' },
      count,
    ]),
  );
}
