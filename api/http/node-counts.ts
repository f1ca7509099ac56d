/** Metrics that count rows of the database. */
import type { Clock } from '../../model/clock';
import { measureRows, type Metrics } from '../../model/metrics';
import { ALERT_SOURCES, SEVERITIES } from '../../model/rules/health-alerts';
import { isOverdue, outageOf } from '../../model/rules/out-of-service';
import type { Store } from '../../store/store';

/** Counts open alerts, and nodes by their worst one. */
export function measureHealth({ nodes, healthAlerts }: Pick<Store, 'nodes' | 'healthAlerts'>, clock: Clock, metrics: Metrics): void {
  measureRows('bloomery_health_nodes', clock, metrics, async () => {
    const { warning, critical } = await healthAlerts.nodeCounts();
    const all = (await nodes.counts()).reduce((sum, { count }) => sum + count, 0);
    return [
      [{ health: 'ok' }, Math.max(0, all - warning - critical)],
      [{ health: 'warning' }, warning],
      [{ health: 'critical' }, critical],
    ];
  });
  measureRows('bloomery_health_alerts', clock, metrics, async () => {
    const found = await healthAlerts.counts();
    return SEVERITIES.flatMap((severity) =>
      Object.keys(ALERT_SOURCES).flatMap((source) =>
        [false, true].map((masked) => {
          const row = found.find((count) => count.severity === severity && count.source === source && count.masked === masked);
          return [{ severity, source, masked: String(masked) }, row?.count ?? 0] as const;
        }),
      ),
    );
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
