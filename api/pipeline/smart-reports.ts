/**
 * What recorders report of disks (SMART), for the rules of health: counted in the memory of this process, and only what changes is written.
 * Which alerts are open is read for all nodes at once and rarely, since other processes write them too.
 */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Log } from '../../model/log';
import { observed, takeOpen, type HealthRule, type Standings } from '../../model/rules/health-rules';
import { smartSignals, type DiskHealth } from '../../model/rules/health-smart';
import type { Store } from '../../store/store';

/** Milliseconds for which the list of open alerts is used. */
const OPEN_MS = 10_000;
/** Nodes whose disks are counted at a time. */
const MAX_NODES = 20_000;
/** Alerts of one push. A machine with more has another trouble, and a hostile one invents them. The rest follows later. */
const MAX_RAISED = 50;

export interface SmartReports {
  /** Never rejects: the next push tries again. */
  observe(nodeUuid: string, disks: readonly DiskHealth[]): Promise<void>;
}
interface SmartServices {
  readonly store: Pick<Store, 'healthAlerts'>;
  readonly clock: Clock;
  readonly options: Options;
  readonly log: Log;
  readonly healthRules: readonly HealthRule[];
  /** Bytes at random. */
  readonly random: (bytes: number) => Buffer;
}
export function createSmartReports({ store, clock, options, log, healthRules, random }: SmartServices): SmartReports {
  const standings: Standings = new Map();
  const rules = healthRules.filter(({ sources }) => sources.includes('smart'));
  let readAt = -Infinity;
  let reading: Promise<void> | undefined;
  const takeOpenNow = async (): Promise<void> => {
    if (standings.size > MAX_NODES) standings.clear();
    takeOpen(rules, standings, await store.healthAlerts.open(['smart']));
    readAt = clock.now();
  };
  const refreshed = async (): Promise<void> => {
    if (clock.now() - readAt < OPEN_MS) return;
    reading ??= takeOpenNow().finally(() => (reading = undefined));
    await reading;
  };
  return {
    async observe(nodeUuid, disks) {
      if (!options['health.enabled']) return;
      try {
        await refreshed();
        const { signals, found } = smartSignals(disks);
        const { raised: all, cleared } = observed(rules, standings, { uuid: nodeUuid, isOn: true }, signals, found);
        const raised = all.slice(0, MAX_RAISED);
        if (raised.length === 0 && cleared.length === 0) return;
        // What a host says of itself ends with its instance.
        const alerts = { raised: raised.map((alert) => ({ ...alert, of_recorder: true as const })), cleared };
        await store.healthAlerts.putChanges(alerts, () => newUuid(random), options['conductor.node_history'] && { user: null });
        for (const { severity, text } of raised) log.warn(`node ${nodeUuid}: ${text}`, { severity });
      } catch (error) {
        // What memory has is not what the database has.
        standings.delete(nodeUuid);
        readAt = -Infinity;
        log.warn(`the alerts of node ${nodeUuid} cannot be written`, { reason: reasonOf(error) });
      }
    },
  };
}
