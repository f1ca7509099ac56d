/** Alive conductors and summaries of nodes. Each request reads them from the database in short queries. */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { batched } from '../../store/sql/batch';
import type { AliveConductors, NodeSummary, Store } from '../../store/store';

export interface CurrentState {
  /** The alive conductors. `version`: as in AliveConductors, if it is known already. */
  conductors(version?: string): Promise<AliveConductors>;
  /** By UUID or name. Throws NodeNotFound. */
  node(ident: string): Promise<NodeSummary>;
}

export function createCurrentState(
  store: Store,
  { 'conductor.heartbeat_timeout': timeout }: Pick<Options, 'conductor.heartbeat_timeout'>,
): CurrentState {
  const summary = batched((idents: readonly string[]) => store.nodes.findSummaries(idents, timeout));
  return {
    conductors: (version) => store.conductors.alive(timeout, version),
    async node(ident) {
      const found = await summary(ident);
      if (!found) throw new Fault('NodeNotFound', { node: ident });
      return found;
    },
  };
}
