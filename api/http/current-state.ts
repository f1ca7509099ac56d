/** Alive conductors and heads of nodes. Each request reads them from the database in short queries. */
import type { Options } from '../../config/options';
import { Fault } from '../../model/errors';
import { batched } from '../../store/sql/batch';
import type { AliveConductors, NodeSummary, Store } from '../../store/store';

export interface CurrentState {
  /** The alive conductors. `word`: the current revision word, if it is known already. */
  conductors(word?: string): Promise<AliveConductors>;
  /** By UUID or name. Throws NodeNotFound. */
  node(ident: string): Promise<NodeSummary>;
}

export function createCurrentState(
  store: Store,
  { 'conductor.heartbeat_timeout': timeout }: Pick<Options, 'conductor.heartbeat_timeout'>,
): CurrentState {
  const head = batched((idents: readonly string[]) => store.nodes.findSummaries(idents, timeout));
  return {
    conductors: (word) => store.conductors.alive(timeout, word),
    async node(ident) {
      const found = await head(ident);
      if (!found) throw new Fault('NodeNotFound', { node: ident });
      return found;
    },
  };
}
