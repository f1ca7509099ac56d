/** Which nodes, and which work that belongs to no node, are this conductor's share: a function of the conductors that are alive. */
import type { ConductorRecord, NodeRecord } from '../../model/records';
import { chosen, keeperOf } from '../../model/ring';
import type { Alive } from '../../store/store';

/** The columns that say whose a node is. */
export const OWNERSHIP_COLUMNS = ['uuid', 'driver', 'conductor_group'] as const;
export type Owned = Pick<NodeRecord, (typeof OWNERSHIP_COLUMNS)[number]>;
export interface Ownership {
  /** Those of the nodes that this conductor looks after. Periodic work asks; what clients asked for is done for any node. */
  ownNodes<Node extends Owned>(nodes: readonly Node[]): Promise<readonly Node[]>;
  /** Whether work of which there is one in all (`node history`, an allocation's UUID) is for this conductor. */
  isOwnWork(key: string): Promise<boolean>;
  /** Does this when there are other conductors than when it was done before; what fails is done again. */
  whenConductorsChange(work: () => Promise<void>): Promise<void>;
}

/**
 * @param alive the conductors of now; none, not even this one (the database was away, say): then there is nobody to leave work to
 * @param isLeaving then nothing is its share
 */
export function createOwnership(host: string, alive: () => Promise<Alive>, isLeaving: () => boolean): Ownership {
  let shared: string | undefined;
  const isHere = ({ conductors }: Alive, keeper: ConductorRecord | undefined): boolean =>
    !isLeaving() && (conductors.length === 0 || keeper?.hostname === host);
  return {
    async ownNodes(nodes) {
      if (nodes.length === 0) return nodes;
      const now = await alive();
      return nodes.filter((node) => isHere(now, keeperOf(now.conductors, node)));
    },
    async isOwnWork(key) {
      const now = await alive();
      return isHere(now, chosen(now.conductors, key));
    },
    async whenConductorsChange(work) {
      const { word } = await alive();
      if (word === shared) return;
      await work();
      shared = word;
    },
  };
}
