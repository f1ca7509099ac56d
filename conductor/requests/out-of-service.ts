/** Takes nodes out of service and puts them back (docs/out-of-service.md). Needs no machine, so that the node is not reserved. */
import { timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { NodeChanges, NodeRecord, Outage, OutageRequest } from '../../model/records';
import { declared, endedOutage, outageOf, outageText } from '../../model/rules/out-of-service';
import { isWaiting, stateRow } from '../../model/states';
import type { Store } from '../../store/store';
import type { Context } from '../core/context';
import { entryOf } from '../core/history';
import { changeUnlocked } from '../core/task';

/** The type of the entries in the node's history. */
const TYPE = 'out of service';

/** Writes an entry into the node's history, in the transaction of the change. */
export const recording =
  (context: Context, text: (node: NodeRecord, changes: NodeChanges) => string | undefined) =>
  (node: NodeRecord, changes: NodeChanges): ((store: Store) => Promise<void>) | undefined => {
    const event = text(node, changes);
    const entry = event === undefined ? undefined : entryOf(context, node, { type: TYPE, event, error: false });
    return entry && (async ({ history }) => void (await history.create(entry)));
  };

/**
 * Throws NodeLocked while a flow works on the node, also one whose conductor is gone; NodeNotFound. A flow that waits for its machine goes
 * on when the node is in service again.
 */
export async function declareOutOfService(context: Context, uuid: string, request: OutageRequest, by: string | null): Promise<Outage> {
  const decide = async (node: NodeRecord): Promise<NodeChanges> => {
    if (stateRow(node.provision_state).working) throw new Fault('NodeLocked', { node: uuid, host: 'another host' });
    return declared(node, request, by, context.clock.now());
  };
  const also = recording(context, (_, { out_of_service: column }) => outageText(column as Outage));
  const outage = outageOf(await changeUnlocked(context, uuid, decide, { also }))!;
  context.log.info(`node ${uuid}: ${outageText(outage)}`);
  return outage;
}

/** Does nothing for a node that is in service. Throws NodeLocked, NodeNotFound. */
export async function endOutOfService(context: Context, uuid: string): Promise<void> {
  const decide = async (node: NodeRecord): Promise<NodeChanges> => {
    const outage = outageOf(node);
    if (!outage) return {};
    // The machine had no time to report: its limit begins again.
    const waits = isWaiting(node.provision_state) ? { provision_updated_at: timestamp(context.clock.now()) } : {};
    return { ...endedOutage(outage), ...waits };
  };
  const also = recording(context, (node) => (outageOf(node) ? 'In service again' : undefined));
  await changeUnlocked(context, uuid, decide, { also });
  context.log.info(`node ${uuid}: in service again`);
}
