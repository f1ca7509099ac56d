/** The periodic work of health (docs/health.md) besides that of sensors: time limits, the end of reports, and the metric of alerts. */
import { timestamp } from '../../model/clock';
import { newUuid } from '../../model/idents';
import { measureRows, type Sample } from '../../model/metrics';
import { overTime, STATES_ON_THE_WAY, type Stays } from '../../model/rules/time-limits';
import type { Context } from '../core/context';
import { inHistoryOf } from '../core/health';

/** Rows that one statement removes. */
const BATCH = 10_000;
const DAY_MS = 86_400_000;
/** The metric covers at most this number of alerts. */
const MAX_ALERTS = 20_000;
/** Scrapes within this time share one query: short, so that Prometheus has an alert with its next scrape. Milliseconds. */
const KEPT_MS = 1000;

/** One conductor does this for all nodes. */
export async function endReports(context: Context): Promise<void> {
  const { store, options, clock, signal, timeLimits } = context;
  await store.healthAlerts.setExpired(inHistoryOf(context));
  // Of limits that the site has removed.
  if (timeLimits.size === 0) await store.healthAlerts.setCleared(await store.healthAlerts.open(['state']), inHistoryOf(context));
  const before = timestamp(clock.now() - options['health.keep_days'] * DAY_MS);
  let gone: number;
  do gone = await store.healthAlerts.removeOld(before, BATCH);
  while (gone === BATCH && !signal.aborted);
}

/** Returns how many nodes are on the way. */
export async function watchTimeLimits(context: Context, stays: Stays): Promise<number> {
  const { store, clock, random, timeLimits, log } = context;
  const columns = ['uuid', 'driver', 'conductor_group', 'provision_state', 'provision_updated_at', 'maintenance'] as const;
  const nodes = await store.nodes.listColumns(columns, { where: { provision_state: [...STATES_ON_THE_WAY] }, children: 'all' });
  const own = new Set((await context.ownNodes(nodes)).map(({ uuid }) => uuid));
  const open = await store.healthAlerts.open(['state']);
  const changes = overTime(timeLimits, stays, nodes, { isOwn: (uuid) => own.has(uuid), open, now: clock.now() });
  await store.healthAlerts.putChanges(changes, () => newUuid(random), inHistoryOf(context));
  for (const { node_uuid: uuid, text } of changes.raised) log.warn(`node ${uuid}: ${text}`);
  return own.size;
}

/** The open alerts of this conductor's nodes that are not masked, each 1. */
export function measureAlerts(context: Context): void {
  const { store, clock, metrics, options } = context;
  if (!options['health.enabled']) return;
  const read = async (): Promise<readonly Sample<'baremetal_health_alert'>[]> => {
    const alerts = await store.healthAlerts.list({ masked: false, limit: MAX_ALERTS });
    const nodes = new Map(alerts.map(({ node_uuid: uuid, driver, conductor_group }) => [uuid, { uuid, driver, conductor_group }]));
    const own = new Set((await context.ownNodes([...nodes.values()])).map(({ uuid }) => uuid));
    return alerts
      .filter(({ node_uuid: uuid }) => own.has(uuid))
      .map(({ node_uuid, node_name, instance_uuid, source, rule, subject, severity }) => [
        { node_uuid, node_name: node_name ?? '', instance_uuid: instance_uuid ?? '', source, rule, subject, severity },
        1,
      ]);
  };
  measureRows('baremetal_health_alert', clock, metrics, read, KEPT_MS);
}
