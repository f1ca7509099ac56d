/**
 * Discovery: an unknown machine that reports itself becomes a node in enroll. It is enrolled once, even if several reports arrive
 * together. The node keeps the addresses that it was enrolled with, so that a later report with any of them finds it.
 */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import { announce } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import type { Discovery, Lookup } from '../core/call-types';
import type { Context } from '../core/context';
import { createNode } from '../requests/nodes';
import { nodeNotFound } from './lookup';

/** Without a MAC address only the BMC address identifies the machine; several machines may share one. */
const addressesOf = ({ macs, bmcAddresses = [] }: Lookup): readonly string[] =>
  macs.length > 0 ? macs.map((mac) => mac.toLowerCase()) : bmcAddresses;

const LIMIT_PERIOD_MS = 3_600_000;
/** Anybody can report machines: without a limit made-up ones fill the database. Throws TemporaryFailure. */
async function checkLimit({ store, options, clock, log }: Context, addresses: readonly string[]): Promise<void> {
  const max = options['auto_discovery.max_nodes_per_hour'];
  if ((await store.discoveries.countSince(timestamp(clock.now() - LIMIT_PERIOD_MS), max)) < max) return;
  log.warn('an unknown machine is not enrolled: [auto_discovery]max_nodes_per_hour is reached', { addresses: addresses.slice(0, 10), max });
  throw new Fault('TemporaryFailure', { message: 'The machine cannot be enrolled now.' });
}

async function enrol(context: Context, addresses: readonly string[], discovery: Discovery): Promise<NodeRecord | undefined> {
  const { store, options, random, notifier, origin, log } = context;
  const scope = options['auto_discovery.inspection_scope'];
  const newNode = {
    uuid: newUuid(random),
    driver: discovery.driver,
    ...(scope === null ? {} : { properties: { inspection_scope: scope } }),
  };
  const taken = new Error('taken');
  const made = await store
    .transaction(async (inner) => {
      const node = await createNode({ ...context, store: inner }, newNode);
      if (!(await inner.discoveries.claim(node.uuid, addresses))) throw taken;
      return node;
    })
    .catch((error: unknown) => {
      if (error === taken) return undefined;
      if (!(error instanceof Fault) || error.status >= 500) throw error;
      // Wrong options are the operator's problem, not the machine's: it may retry once they are corrected.
      log.error(`an unknown machine could not be enrolled with driver ${discovery.driver}`, { addresses, reason: reasonOf(error) });
      throw new Fault('TemporaryFailure', { message: 'The machine cannot be enrolled now.' });
    });
  if (made) {
    log.info('enrolled an unknown machine', { node: made.uuid, driver: discovery.driver, addresses });
    announce(notifier, 'node', 'create', 'start', newNode, origin);
    announce(notifier, 'node', 'create', 'end', made, origin);
  }
  return made;
}

/**
 * Returns the node of a machine that no lookup found. Throws NotFound if its report was processed before, or if the machine is not to be
 * enrolled.
 */
export async function discoverNode(context: Context, lookup: Lookup, discovery: Discovery): Promise<string> {
  const { store, unknownMacs, log } = context;
  const addresses = addressesOf(lookup);
  if (lookup.nodeUuid !== undefined || addresses.length === 0) throw nodeNotFound();
  if (addresses.some((address) => unknownMacs.isDenied(address)) || !addresses.some((address) => unknownMacs.isAllowed(address))) {
    log.warn('[pxe_filter] does not allow to enrol an unknown machine', { addresses });
    throw nodeNotFound();
  }
  const owners = await store.discoveries.owners(addresses);
  if (owners.length === 0) {
    await checkLimit(context, addresses);
    const made = await enrol(context, addresses, discovery);
    if (made) return made.uuid;
    // A concurrent report of the same machine won.
    return discoverNode(context, lookup, discovery);
  }
  const [owner] = owners;
  if (owners.length > 1 || !owner || owner.finished) {
    log.warn('refused the report of a machine that was discovered before', { addresses });
    throw nodeNotFound();
  }
  return owner.node_uuid;
}
