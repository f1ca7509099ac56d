/** The periodic work of health (docs/health.md) besides that of sensors: time limits, the end of reports, and the metric of alerts. */
import { timestamp } from '../../model/clock';
import { newUuid } from '../../model/idents';
import { measureRows, type Sample } from '../../model/metrics';
import type { Options } from '../../config/options';
import type { AlertSource } from '../../model/rules/health-alerts';
import { overTime, STATES_ON_THE_WAY, type Stays } from '../../model/rules/time-limits';
import type { Context } from '../core/context';
import { inHistoryOf } from '../core/health';
import { sensorRoundInterval } from './sensors';

/** Rows that one statement removes. */
const BATCH = 10_000;
const DAY_MS = 86_400_000;
/** The metric covers at most this number of alerts, the worst and newest ones. */
const MAX_ALERTS = 20_000;
/** Scrapes within this time share one query: short, so that Prometheus has an alert with its next scrape. Milliseconds. */
const KEPT_MS = 1000;

/** The sources that the configuration has turned off, each with the reason for the end of its alerts. */
function sourcesOff(options: Options, limits: number): readonly (readonly [AlertSource, string])[] {
  const noEvents = options['health.event_address'] === null;
  const noSensors = sensorRoundInterval(options) === 0 || !options['sensor_data.enable_for_nodes'];
  const noHealth = options['conductor.sync_power_state_interval'] <= 0 || !options['conductor.enable_health_monitoring'];
  const all: readonly (readonly [AlertSource, boolean, string])[] = [
    ['state', limits === 0, 'there are no time limits any more'],
    ['sensor', noSensors && noEvents, 'the sensors are not read any more'],
    ['system', noHealth, 'the health of machines is not read any more'],
    ['event', noEvents, 'events are not subscribed to any more'],
  ];
  return all.flatMap(([source, isOff, reason]) => (isOff ? [[source, reason] as const] : []));
}
/** One conductor does this for all nodes. */
export async function endReports(context: Context): Promise<void> {
  const { store, options, clock, signal, timeLimits } = context;
  await store.healthAlerts.setExpired(inHistoryOf(context));
  await store.healthAlerts.endOfInstances(inHistoryOf(context));
  for (const [source, reason] of sourcesOff(options, timeLimits.size)) {
    const open = await store.healthAlerts.open([source]);
    await store.healthAlerts.setCleared(
      open.map((key) => ({ ...key, reason })),
      inHistoryOf(context),
    );
  }
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

async function countUnmasked({ store }: Context): Promise<number> {
  const counts = await store.healthAlerts.counts();
  return counts.reduce((sum, { masked, count }) => (masked ? sum : sum + count), 0);
}
/** The open alerts of this conductor's nodes that are not masked, each 1. */
export function measureAlerts(context: Context): void {
  const { store, clock, metrics, options } = context;
  if (!options['health.enabled']) return;
  const read = async (): Promise<readonly Sample<'baremetal_health_alert'>[]> => {
    const alerts = await store.healthAlerts.list({ masked: false, worstFirst: true, limit: MAX_ALERTS });
    const open = alerts.length < MAX_ALERTS ? alerts.length : await countUnmasked(context);
    metrics.set('bloomery_health_alerts_left_out', {}, Math.max(0, open - alerts.length));
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
