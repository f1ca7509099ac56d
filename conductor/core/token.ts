/** The secret that an agent gets at its first lookup and shows in every heartbeat. */
import { timingSafeEqual } from 'node:crypto';
import type { NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';

/** What a lookup shows instead of a token that was given out before: only the agent that got it may know it. */
const MASKED_TOKEN = '******';
const TOKEN_BYTES = 32;

/** What the row says; undefined: none was given out. */
const knownToken = (node: Pick<NodeRecord, 'driver_internal_info'>): string | undefined => {
  const token = node.driver_internal_info.agent_secret_token;
  return typeof token === 'string' && token !== '' ? token : undefined;
};

/** Compared in constant time, so that answers do not tell how much of a guess was right. */
export function tokenIsRight(node: Pick<NodeRecord, 'driver_internal_info'>, given: string | undefined): boolean {
  const known = knownToken(node);
  if (known === undefined || given === undefined) return false;
  const [a, b] = [Buffer.from(known), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}

export interface Tokens {
  /** The node's token, made now and answered in the clear once; `******` when there was one. Throws NodeNotFound. */
  give(nodeUuid: string): Promise<string>;
}
export const createTokens = (store: Store, random: (bytes: number) => Buffer): Tokens => ({
  give: async (nodeUuid) => {
    const token = random(TOKEN_BYTES).toString('base64url');
    // Of two lookups at once, here or in another process, only one may get a token that is right.
    const given = await store.nodes.mergeInternalOnce(nodeUuid, {
      agent_secret_token: token,
      agent_secret_token_pregenerated: undefined,
    });
    return given ? token : MASKED_TOKEN;
  },
});
