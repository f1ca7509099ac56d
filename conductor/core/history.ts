/** The history of a node: entries that outlive `last_error`. */
import { timestamp } from '../../model/clock';
import { newUuid } from '../../model/idents';
import type { HistoryRecord, NewOf, NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import type { Context } from './context';
import type { HistoryEntry } from './node-task';
import { MAX_ERROR, shortened } from '../../model/text';

/** The entry of an event `fail`, with the error type of the node's flow. All states from which `fail` leads have a flow. */
export const failureOf = ({ flows }: Context, { provision_state: state }: NodeRecord, event: string): HistoryEntry => ({
  type: flows[stateRow(state).flow!].errorType,
  event,
  error: true,
});

/** What a column of four bytes holds: a wrong clock must not make the entry fail. */
const secondsBetween = (from: number, to: number): number | null => {
  const seconds = Math.floor((to - from) / 1000);
  return Math.abs(seconds) < 2 ** 31 ? seconds : null;
};
/** The entry, with the state in which it happened; undefined: no history is kept. */
export function entryOf(
  context: Context,
  node: NodeRecord,
  { type, event, error }: HistoryEntry,
): NewOf<HistoryRecord, 'node_uuid'> | undefined {
  if (!context.options['conductor.node_history']) return undefined;
  const since = node.provision_updated_at;
  return {
    uuid: newUuid(context.random),
    node_uuid: node.uuid,
    conductor: context.host,
    user: context.origin?.user ?? null,
    project: context.origin?.project ?? null,
    event_type: type,
    severity: error ? 'ERROR' : 'INFO',
    event: shortened(event, MAX_ERROR),
    state: node.provision_state,
    target_provision_state: node.target_provision_state,
    duration_seconds: since === null ? null : secondsBetween(Date.parse(since), context.clock.now()),
  };
}

/** Deletes one batch of the old entries that exceed the limit of their node. Younger entries stay, and do not count towards the limit. */
export async function trimHistory({ options, clock, store, log }: Context): Promise<void> {
  const days = options['conductor.node_history_minimum_days'];
  const gone = await store.history.trim({
    keep: options['conductor.node_history_max_entries'],
    before: timestamp(clock.now() - days * 86_400_000),
    atMost: options['conductor.node_history_cleanup_batch_count'],
  });
  if (gone > 0) log.info(`${gone} entries of node history were removed`);
}
