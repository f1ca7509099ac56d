/** This conductor's share of the nodes, and of work that belongs to no node: a function of the conductors that are alive. */
import type { ConductorRecord, NodeRecord } from '../../model/records';
import { chooseByHash, periodicConductorOf } from '../../model/ring';
import type { AliveConductors } from '../../store/store';

/** The columns by which a node belongs to a conductor. */
export const OWNERSHIP_COLUMNS = ['uuid', 'driver', 'conductor_group'] as const;
type Owned = Pick<NodeRecord, (typeof OWNERSHIP_COLUMNS)[number]>;
export interface Ownership {
  /** The nodes that belong to this conductor. For periodic work; a client's request may concern any node. */
  ownNodes<Node extends Owned>(nodes: readonly Node[]): Promise<readonly Node[]>;
  /** Whether work that one conductor does for all (`node history`, an allocation's UUID) belongs to this conductor. */
  isOwnWork(key: string): Promise<boolean>;
  /** Runs the work when the set of conductors changed since its last success. */
  whenConductorsChange(work: () => Promise<void>): Promise<void>;
}

/**
 * @param alive the conductors that are alive. If there are none (after a database outage), every node belongs to this conductor
 * @param isLeaving whether this conductor stops: then no node belongs to it
 */
export function createOwnership(host: string, alive: () => Promise<AliveConductors>, isLeaving: () => boolean): Ownership {
  let shared: string | undefined;
  const isHere = ({ conductors }: AliveConductors, keeper: ConductorRecord | undefined): boolean =>
    !isLeaving() && (conductors.length === 0 || keeper?.hostname === host);
  return {
    async ownNodes(nodes) {
      if (nodes.length === 0) return nodes;
      const now = await alive();
      return nodes.filter((node) => isHere(now, periodicConductorOf(now.conductors, node)));
    },
    async isOwnWork(key) {
      const now = await alive();
      return isHere(now, chooseByHash(now.conductors, key));
    },
    async whenConductorsChange(work) {
      const { version: word } = await alive();
      if (word === shared) return;
      await work();
      shared = word;
    },
  };
}
