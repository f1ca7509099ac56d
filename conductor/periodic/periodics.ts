/** Periodic tasks: a table, and the loop that runs each row on its own, with jitter, until the conductor stops. */
import { setMaxListeners } from 'node:events';
import type { Options } from '../../config/options';
import { reasonOf } from '../../model/errors';
import type { Stays } from '../../model/rules/time-limits';
import { finishAllocations, unfinishedAllocations } from '../requests/allocations';
import { removeStrayConsoleLogs } from '../requests/console';
import type { Context } from '../core/context';
import { tendLogs, tendSubscriptions, type WatchProblems } from './bmc-watches';
import { trimEvents } from './events';
import { trimErasures } from '../core/erasures';
import { trimHistory } from '../core/history';
import { endLateIntrospections } from '../introspection/unfinished';
import { interfacePeriodics, runInterfacePeriodic } from '../engine/interface-periodics';
import { recoverPowerFailures, synchronisePower, type SyncFailures } from './power-sync';
import { markStale, recorderWatch, trimChanges, type RecorderWatch } from '../core/recorders';
import { pollWaiting, releaseOrphanedReservations, removeDeadConductors, takeOverNodes } from '../engine/recovery';
import { tendSnapshots } from '../requests/snapshots';
import { endReports, measureAlerts, watchTimeLimits } from './health';
import { remindOfOutages } from './out-of-service';
import { recordStateCounts } from './state-counts';
import { collectSensors, sensorMemory, sensorRoundInterval, type SensorMemory } from './sensors';
import { retryBoots } from '../engine/boot-retries';
import { pollSilentAgents } from '../engine/silent-agents';
import { rebootSilentRamdisks } from '../engine/silent-ramdisks';
import { failOverdue, LIMITED_STATES, timeoutInterval } from '../engine/timeouts';

/** State that the tasks keep between runs. */
interface Memory {
  readonly failures: SyncFailures;
  readonly sensors: SensorMemory;
  readonly recorders: RecorderWatch;
  readonly stays: Stays;
  readonly watches: { readonly events: WatchProblems; readonly logs: WatchProblems };
}
interface Periodic {
  readonly name: string;
  /** Seconds between runs; 0: never. */
  readonly every: (options: Options) => number;
  /** Returns how many items it processed, if that is meaningful. */
  readonly run: (context: Context, memory: Memory) => Promise<number | void>;
}
/** @internal */
export const PERIODICS: readonly Periodic[] = [
  {
    name: 'sign of life',
    every: (options) => options['conductor.heartbeat_interval'],
    run: ({ lease }) => lease.renew(),
  },
  { name: 'stray reservations', every: (options) => options['conductor.heartbeat_interval'], run: releaseOrphanedReservations },
  { name: 'share of the nodes', every: (options) => options['conductor.heartbeat_interval'], run: takeOverNodes },
  { name: 'steps to ask for', every: (options) => options['conductor.check_provision_state_interval'], run: pollWaiting },
  {
    name: 'conductors that are gone',
    every: (options) => options['conductor.conductor_cleanup_interval'],
    run: async (context) => ((await context.isOwnWork('conductors')) ? removeDeadConductors(context) : undefined),
  },
  {
    name: 'power synchronisation',
    every: (options) => options['conductor.sync_power_state_interval'],
    run: (context, { failures }) => synchronisePower(context, failures),
  },
  {
    name: 'power failure recovery',
    every: (options) => options['conductor.power_failure_recovery_interval'],
    run: (context, { failures }) => recoverPowerFailures(context, failures),
  },
  {
    name: 'node history',
    every: (options) => options['conductor.node_history_cleanup_interval'],
    run: async (context) => ((await context.isOwnWork('node history')) ? trimHistory(context) : undefined),
  },
  { name: 'console logs of deleted nodes', every: () => 3600, run: removeStrayConsoleLogs },
  {
    name: 'unfinished allocations',
    every: (options) => options['conductor.check_allocations_interval'],
    run: async (context) =>
      finishAllocations(context, await unfinishedAllocations(context, context.options['conductor.check_allocations_interval'])),
  },
  {
    name: 'old events',
    every: (options) => options['events.cleanup_interval'],
    run: async (context) => ((await context.isOwnWork('old events')) ? trimEvents(context) : undefined),
  },
  {
    name: 'silent recorders',
    every: (options) => (options['recorder.enabled'] ? options['recorder.check_interval'] : 0),
    run: async (context, { recorders }) => ((await context.isOwnWork('silent recorders')) ? markStale(context, recorders) : undefined),
  },
  {
    name: 'snapshots',
    every: (options) => options['snapshot.check_interval'],
    run: async (context) => ((await context.isOwnWork('snapshots')) ? tendSnapshots(context) : undefined),
  },
  {
    name: 'old certificates of erasure',
    every: () => 3600,
    run: async (context) => ((await context.isOwnWork('old certificates of erasure')) ? trimErasures(context) : undefined),
  },
  {
    name: 'old changes of hardware',
    every: () => 3600,
    run: async (context) => ((await context.isOwnWork('old changes of hardware')) ? trimChanges(context) : undefined),
  },
  {
    name: 'reports about machines',
    every: (options) => (options['health.enabled'] ? 60 : 0),
    run: async (context) => ((await context.isOwnWork('reports about machines')) ? endReports(context) : undefined),
  },
  {
    name: 'subscriptions to events',
    every: (options) => options['health.event_interval'],
    run: (context, { watches }) => tendSubscriptions(context, watches.events),
  },
  {
    name: 'logs of machines',
    every: (options) => (options['health.enabled'] ? options['health.log_interval'] : 0),
    run: (context, { watches }) => tendLogs(context, watches.logs),
  },
  {
    name: 'time limits of states',
    every: (options) => (options['health.enabled'] && Object.keys(options['health.time_limits']).length > 0 ? 60 : 0),
    run: (context, { stays }) => watchTimeLimits(context, stays),
  },
  { name: 'reminders of nodes out of service', every: () => 60, run: remindOfOutages },
  {
    name: 'counts of states',
    every: () => 60,
    run: async (context) => ((await context.isOwnWork('counts of states')) ? recordStateCounts(context) : undefined),
  },

  ...LIMITED_STATES.map((state) => ({
    name: `timeout of ${state}`,
    every: (options: Options) => timeoutInterval(state, options),
    run: failOverdue(state),
  })),
  {
    name: 'timeout of introspection',
    every: (options) => options['DEFAULT.clean_up_period'],
    run: endLateIntrospections,
  },
  { name: 'silent agents', every: (options) => options['conductor.check_provision_state_interval'], run: pollSilentAgents },
  {
    name: 'silent ramdisks',
    every: (options) => options['conductor.check_provision_state_interval'],
    run: rebootSilentRamdisks,
  },
  {
    name: 'boot retries',
    every: (options) => (options['pxe.boot_retry_timeout'] === null ? 0 : options['pxe.boot_retry_check_interval']),
    run: retryBoots,
  },
  {
    name: 'sensors',
    every: sensorRoundInterval,
    run: (context, { sensors }) => collectSensors(context, sensors),
  },
];

/** ±10 %, so that conductors and tasks do not run in step. */
const jittered = (seconds: number, random: (bytes: number) => Buffer): number => seconds * 1000 * (0.9 + (random(1)[0]! / 255) * 0.2);

/** Resolves when every task has ended, after `context.signal` was aborted. */
export async function runPeriodics(context: Context): Promise<void> {
  const { clock, signal, options, random, log, metrics } = context;
  const memory: Memory = {
    failures: new Map(),
    sensors: sensorMemory(context),
    recorders: recorderWatch(),
    stays: new Map(),
    watches: { events: new Map(), logs: new Map() },
  };
  measureAlerts(context);
  // Each task and each node in work adds a listener; this is not a leak.
  setMaxListeners(0, signal);
  const repeat = async ({ name, every, run }: Periodic): Promise<void> => {
    const seconds = every(options);
    if (seconds <= 0) return;
    for (;;) {
      await clock.sleep(jittered(seconds, random), signal).catch(() => {});
      if (signal.aborted) return;
      const took = metrics.timer();
      const items = await context.track(run(context, memory)).catch((error: unknown) => {
        if (signal.aborted) return;
        metrics.count('bloomery_periodic_failures_total', { task: name });
        log.error(`${name} failed`, { reason: reasonOf(error), error });
      });
      metrics.observe('bloomery_periodic_duration_seconds', { task: name }, took());
      if (typeof items === 'number') metrics.set('bloomery_periodic_items', { task: name }, items);
      metrics.set('bloomery_periodic_last_run_timestamp_seconds', { task: name }, clock.now() / 1000);
    }
  };
  const ofInterfaces = interfacePeriodics(context).map(({ kind, name, periodic }): Periodic => ({
    name: `${kind} ${name}: ${periodic.name}`,
    every: (all) => periodic.every(all),
    run: (inner) => runInterfacePeriodic(inner, { kind, name, periodic }),
  }));
  await Promise.all([...PERIODICS, ...ofInterfaces].map(repeat));
}
