/** Gives each agent its token, in the answer to its first lookup. Later lookups get a mask, since they may come from anybody. */
import { LRUCache } from 'lru-cache';
import { newToken } from '../../model/rules/agent-token';
import { MASK } from '../../model/masks';
import type { LookupNode, Store } from '../../store/store';

export interface AgentTokens {
  /** @throws Fault NodeNotFound, and NodeLocked while the power changes */
  give(node: LookupNode): Promise<string>;
}
/** Bytes of the random name of this process. */
const NAME_BYTES = 6;
/** Tokens that were given again, in memory. */
const MOST_AGAIN = 10_000;

/**
 * A process that is killed between writing a token and answering with it leaves an agent that would get the mask for ever. So the next
 * process of this host gives such a token again, once, unless a heartbeat has come: then the agent has it.
 */
export function createAgentTokens(store: Store, host: string, random: (bytes: number) => Buffer): AgentTokens {
  const giver = `${host} ${random(NAME_BYTES).toString('hex')}`;
  const again = new LRUCache<string, true>({ max: MOST_AGAIN });
  const isOfEarlierProcess = (of: string | undefined): boolean => of !== undefined && of !== giver && of.startsWith(`${host} `);
  return {
    give: async ({ uuid, driver_internal_info: info }) => {
      const { agent_secret_token: known, agent_secret_token_giver: by, agent_url: url } = info;
      if (known) {
        if (url !== undefined || !isOfEarlierProcess(by) || again.has(known)) return MASK;
        again.set(known, true);
        return known;
      }
      const made = newToken(random);
      const isFirst = await store.nodes.mergeInternalOnce(uuid, { ...made, agent_secret_token_giver: giver });
      return isFirst ? made.agent_secret_token : MASK;
    },
  };
}
