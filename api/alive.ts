/** Which conductors are alive and how a node stands: asked of the database every time, in few and small words. */
import type { Clock } from '../model/clock';
import { Fault } from '../model/errors';
import { batched } from '../store/batch';
import type { Alive, NodeHead, Store } from '../store/store';

export interface Heads {
  /** The alive conductors. `word`: that of now, when it is known already. */
  conductors(word?: string): Promise<Alive>;
  /** By UUID or name. Throws NodeNotFound. */
  node(ident: string): Promise<NodeHead>;
}

export function createHeads(store: Store, clock: Clock, options: { readonly 'conductor.heartbeat_timeout': number }): Heads {
  const since = (): number => clock.now() - options['conductor.heartbeat_timeout'] * 1000;
  const head = batched((idents: readonly string[]) => store.nodes.heads(idents, since()));
  return {
    conductors: (word) => store.conductors.alive(since(), word),
    async node(ident) {
      const found = await head(ident);
      if (!found) throw new Fault('NodeNotFound', { node: ident });
      return found;
    },
  };
}
