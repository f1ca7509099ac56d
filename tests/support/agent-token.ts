/** The token in the answer to a lookup of a node, which an API process gives. */
import { randomBytes, randomUUID } from 'node:crypto';
import { createAgentTokens } from '../../api/pipeline/agent-tokens';
import type { Store } from '../../store/store';

/** As an API process of another host: no token of an earlier process is given again. */
export const agentToken = async (store: Store, uuid: string): Promise<string> =>
  createAgentTokens(store, randomUUID(), randomBytes).give(await store.nodes.findLookup(uuid));
