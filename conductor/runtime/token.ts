/** The secret that an agent gets at its first lookup and sends in every heartbeat. */
import type { NodeRecord } from '../../model/records';
import { isSameSecret } from '../../model/masks';
import type { Store } from '../../store/store';

/** Response to a later lookup: only the agent of the first lookup may know the token. */
const MASKED_TOKEN = '******';
const TOKEN_BYTES = 32;

/** The token on the node; undefined: no agent has one. */
const knownToken = (node: Pick<NodeRecord, 'driver_internal_info'>): string | undefined => {
  const token = node.driver_internal_info.agent_secret_token;
  return typeof token === 'string' && token !== '' ? token : undefined;
};

/** Compares in constant time, so that the response time says nothing about a guess. */
export function tokenIsRight(node: Pick<NodeRecord, 'driver_internal_info'>, given: string | undefined): boolean {
  const known = knownToken(node);
  if (known === undefined || given === undefined) return false;
  return isSameSecret(known, given);
}

export interface Tokens {
  /** Creates the node's token and returns it; returns `******` if the node has a token already. Throws NodeNotFound, NodeLocked while the power changes. */
  give(nodeUuid: string): Promise<string>;
}
export const createTokens = (store: Store, random: (bytes: number) => Buffer): Tokens => ({
  give: async (nodeUuid) => {
    const token = random(TOKEN_BYTES).toString('base64url');
    // Of two lookups at once, here or in another process, only one may get a valid token.
    const given = await store.nodes.mergeInternalOnce(nodeUuid, {
      agent_secret_token: token,
      agent_secret_token_pregenerated: undefined,
    });
    return given ? token : MASKED_TOKEN;
  },
});
