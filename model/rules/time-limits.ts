/** [health]time_limits: how long nodes may be on the way, in a flow or in a provision state, before an alert says so (docs/health.md). */
import { timestamp } from '../clock';
import type { NodeRecord } from '../records';
import { STATES, stateRow, type ProvisionState } from '../states';
import type { AlertKey, NewAlert } from './health-alerts';

/** The states on the way. Work in progress has not failed, however long it takes. */
export const STATES_ON_THE_WAY = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).flow !== undefined);
const FLOWS: readonly string[] = [...new Set(STATES_ON_THE_WAY.map((state) => stateRow(state).flow!))];

/** The name of a flow or of a state → milliseconds. */
export type TimeLimits = ReadonlyMap<string, number>;
const MAX_SECONDS = 366 * 86_400;
/** @throws Error for the operator */
export function timeLimits(given: Readonly<Record<string, string>>): TimeLimits {
  return new Map(
    Object.entries(given).map(([name, value]) => {
      if (!FLOWS.includes(name) && !STATES_ON_THE_WAY.some((state) => state === name))
        throw new Error(
          `[health]time_limits: ${name} is neither a flow (${FLOWS.join(', ')}) nor a state on the way (${STATES_ON_THE_WAY.join(', ')})`,
        );
      const seconds = /^\d{1,9}$/.test(value) ? Number(value) : NaN;
      if (!(seconds >= 1 && seconds <= MAX_SECONDS))
        throw new Error(`[health]time_limits: ${name} needs seconds, from 1 to ${MAX_SECONDS}, not ${value}`);
      return [name, seconds * 1000] as const;
    }),
  );
}

type OnTheWay = Pick<NodeRecord, 'uuid' | 'provision_state' | 'provision_updated_at' | 'maintenance'>;
interface Stay {
  readonly name: string;
  /** Milliseconds. */
  readonly since: number;
  /** Whether the alert was raised; it is raised once. */
  isOver: boolean;
}
/** By node: its stays in a flow and in a state. */
export type Stays = Map<string, readonly Stay[]>;

/** The stays of a node now. What this process did not see begin, began at the last change of the state or before. */
function staysOf({ provision_state: state, provision_updated_at: at }: OnTheWay, before: readonly Stay[], now: number): readonly Stay[] {
  const changed = at === null ? now : Math.min(now, Date.parse(at));
  return [stateRow(state).flow!, state].map((name) => before.find((stay) => stay.name === name) ?? { name, since: changed, isOver: false });
}

/**
 * The alerts to raise, and the open ones to clear.
 * @param nodes all nodes on the way, of all conductors
 * @param isOwn whether this conductor watches the node
 * @param open the open alerts of the source `state`
 */
export function overTime(
  limits: TimeLimits,
  stays: Stays,
  nodes: readonly OnTheWay[],
  { isOwn, open, now }: { readonly isOwn: (uuid: string) => boolean; readonly open: readonly AlertKey[]; readonly now: number },
): { readonly raised: readonly NewAlert[]; readonly cleared: readonly AlertKey[] } {
  const there = new Map(nodes.map((node) => [node.uuid, node]));
  for (const uuid of stays.keys()) if (!there.has(uuid) || !isOwn(uuid)) stays.delete(uuid);
  const raised: NewAlert[] = [];
  for (const node of nodes) {
    if (!isOwn(node.uuid)) continue;
    const current = staysOf(node, stays.get(node.uuid) ?? [], now);
    stays.set(node.uuid, current);
    // A node in maintenance waits for its operator, without a limit.
    if (node.maintenance) continue;
    for (const stay of current) {
      const limit = limits.get(stay.name);
      if (limit === undefined || stay.isOver || now - stay.since <= limit) continue;
      stay.isOver = true;
      const since = timestamp(stay.since).slice(0, 19);
      raised.push({
        node_uuid: node.uuid,
        source: 'state',
        rule: stay.name.replaceAll(/[ -]/g, '_'),
        subject: stay.name,
        severity: 'warning',
        text: `${stay.name} goes on since ${since}Z, which is longer than ${limit / 1000} s`,
        until: null,
        reported_by: null,
      });
    }
  }
  const isOnTheWay = ({ node_uuid: uuid, subject }: AlertKey): boolean => {
    const node = there.get(uuid);
    return (
      limits.has(subject) && node !== undefined && (node.provision_state === subject || stateRow(node.provision_state).flow === subject)
    );
  };
  return { raised, cleared: open.filter((alert) => !isOnTheWay(alert)) };
}
