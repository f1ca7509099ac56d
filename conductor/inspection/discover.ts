/**
 * A machine that nobody knows reports itself: it becomes a node in enroll, once, however often and however many at a time it reports.
 * The addresses that it was enrolled by stay with the node, so that a later report with any of them finds it.
 */
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import { announce } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import type { Discovery, Lookup } from '../conductor';
import type { Context } from '../core/context';
import { createNode } from '../requests/nodes';
import { nodeNotFound } from './lookup';

/** Without a MAC address only the BMC tells machines apart; several may stand behind one. */
const addressesOf = ({ macs, bmcAddresses = [] }: Lookup): readonly string[] =>
  macs.length > 0 ? macs.map((mac) => mac.toLowerCase()) : bmcAddresses;

async function enrol(context: Context, addresses: readonly string[], as: Discovery): Promise<NodeRecord | undefined> {
  const { store, options, random, notifier, origin, log } = context;
  const scope = options['auto_discovery.inspection_scope'];
  const asked = { uuid: newUuid(random), driver: as.driver, ...(scope === null ? {} : { properties: { inspection_scope: scope } }) };
  const taken = new Error('taken');
  const made = await store
    .transaction(async (inner) => {
      const node = await createNode({ ...context, store: inner }, asked);
      if (!(await inner.discoveries.claim(node.uuid, addresses))) throw taken;
      return node;
    })
    .catch((error: unknown) => {
      if (error === taken) return undefined;
      if (!(error instanceof Fault) || error.status >= 500) throw error;
      // What is wrong with the options is none of the machine's business; once it is mended, it may come again.
      log.error(`a machine could not be enrolled with driver ${as.driver}`, { addresses, reason: reasonOf(error) });
      throw new Fault('TemporaryFailure', { message: 'The machine cannot be enrolled now.' });
    });
  if (made) {
    log.info('a machine that nobody knew was enrolled', { node: made.uuid, driver: as.driver, addresses });
    announce(notifier, 'node', 'create', 'start', asked, origin);
    announce(notifier, 'node', 'create', 'end', made, origin);
  }
  return made;
}

/** The node of a machine that no lookup found; its report is to be taken in. Throws NotFound: it was taken in before, or is not wanted. */
export async function discoverNode(context: Context, lookup: Lookup, as: Discovery): Promise<string> {
  const { store, unknownMacs: strangers, log } = context;
  const addresses = addressesOf(lookup);
  if (lookup.nodeUuid !== undefined || addresses.length === 0) throw nodeNotFound();
  if (addresses.some((one) => strangers.isDenied(one)) || !addresses.some((one) => strangers.isAllowed(one))) {
    log.warn('a machine that nobody knows may not be enrolled by [pxe_filter]', { addresses });
    throw nodeNotFound();
  }
  const owners = await store.discoveries.owners(addresses);
  if (owners.length === 0) {
    const made = await enrol(context, addresses, as);
    if (made) return made.uuid;
    // Another report of the same machine was sooner.
    return discoverNode(context, lookup, as);
  }
  const [owner] = owners;
  if (owners.length > 1 || !owner || owner.finished) {
    log.warn('a machine that was discovered before reports itself again: refused', { addresses });
    throw nodeNotFound();
  }
  return owner.node_uuid;
}
