/** Finds the node of an inventory by UUID, by MAC addresses of ports and by BMC addresses. These must not contradict each other. */
import { Fault } from '../../model/errors';
import type { Log } from '../../model/log';
import type { NodeRecord } from '../../model/records';
import { INSPECTED_STATES } from '../../model/states';
import type { Store } from '../../store/store';
import type { Lookup } from '../conductor';
import { normalMac } from './hooks/interfaces';

/** Addresses in one line of the log: anyone may send thousands. */
const MAX_LOGGED = 16;
const logged = (addresses: readonly string[]): readonly string[] => addresses.slice(0, MAX_LOGGED).map((address) => address.slice(0, 64));

/** Every failure has the same text, so that an unauthenticated caller cannot find out which nodes exist. */
export const nodeNotFound = (): Fault => new Fault('NotFound', { message: 'Resource could not be found.' });

async function findOrNothing(store: Store, uuid: string): Promise<NodeRecord> {
  try {
    return await store.nodes.find(uuid);
  } catch (error) {
    throw error instanceof Fault && error.name === 'NodeNotFound' ? nodeNotFound() : error;
  }
}

async function byMacs(store: Store, macs: readonly string[], node: NodeRecord | undefined, log: Log): Promise<NodeRecord | undefined> {
  const owners = await store.ports.ownersOf(macs);
  if (owners.length > 1 || (node && owners.some((owner) => owner !== node.uuid))) {
    log.warn('inspection lookup: the MAC addresses belong to several nodes', { macs: logged(macs), nodes: owners });
    throw nodeNotFound();
  }
  return node ?? (owners[0] === undefined ? undefined : findOrNothing(store, owners[0]));
}

async function byBmc(store: Store, addresses: readonly string[], node: NodeRecord | undefined, log: Log): Promise<NodeRecord | undefined> {
  const matching = await store.nodes.listColumns(['uuid'], {
    where: { provision_state: INSPECTED_STATES },
    bmcAddresses: addresses,
    children: 'all',
  });
  // Several machines may share one BMC address (a chassis, a proxy). Then the node found so far is enough.
  if (node && (matching.length === 0 || matching.some(({ uuid }) => uuid === node.uuid))) return node;
  if (matching.length > 1 || (node && matching.length > 0)) {
    log.warn('inspection lookup: the BMC addresses belong to another node', {
      addresses: logged(addresses),
      nodes: matching.map(({ uuid }) => uuid),
    });
    throw nodeNotFound();
  }
  return matching[0] && findOrNothing(store, matching[0].uuid);
}

/**
 * Returns the node, which is being inspected, or undefined if no node has these addresses. A fast machine may report before its conductor
 * has written `inspect wait`, so `inspecting` is accepted too; the state is checked again under the node's lock. Throws Invalid if there is
 * nothing to look for, and NotFound for any other reason.
 */
export async function lookupInspected(store: Store, lookup: Lookup, log: Log): Promise<NodeRecord | undefined> {
  const macs = [...new Set(lookup.macs.map(normalMac).filter((mac) => mac !== undefined))];
  const addresses = (lookup.bmcAddresses ?? []).filter((address) => address !== '');
  if (lookup.nodeUuid === undefined && macs.length === 0 && addresses.length === 0)
    throw new Fault('Invalid', { message: 'No lookup information provided' });
  let node = lookup.nodeUuid === undefined ? undefined : await findOrNothing(store, lookup.nodeUuid);
  if (macs.length > 0) node = await byMacs(store, macs, node, log);
  if (node && !INSPECTED_STATES.includes(node.provision_state)) {
    log.warn(`refused inspection data of node ${node.uuid} in state ${node.provision_state}`);
    throw nodeNotFound();
  }
  if (addresses.length > 0) node = await byBmc(store, addresses, node, log);
  if (!node) log.warn('inspection lookup: no node has these addresses', { macs: logged(macs), addresses: logged(addresses) });
  return node;
}
