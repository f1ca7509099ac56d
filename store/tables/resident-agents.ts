/** The table `resident_agents`: agents in deployed systems. The row of a node lasts from its token to the end of its instance. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { ResidentAgent, ResidentRegistration } from '../../model/records';
import { run } from '../sql/faults';

interface ResidentAgents {
  find(nodeUuid: string): Promise<ResidentAgent | undefined>;
  /** Replaces the token, and forgets the agent that had the earlier one. Throws NodeNotFound. */
  putToken(nodeUuid: string, token: string, from: ResidentAgent['token_from']): Promise<void>;
  /** Stores what the agent with this token says. False: the token was replaced meanwhile. */
  register(nodeUuid: string, token: string, registration: ResidentRegistration): Promise<boolean>;
  revoke(nodeUuid: string): Promise<void>;
}

const UNKNOWN = { url: null, certificate: null, version: null, boot_id: null, seen_at: null };

export function residentAgentsOn(db: Knex, clock: Clock): ResidentAgents {
  const rows = () => db<ResidentAgent>('resident_agents');
  return {
    async find(nodeUuid) {
      const [row] = await run(rows().select('*').where('node_uuid', nodeUuid));
      return row;
    },
    async putToken(nodeUuid, token, from) {
      const row = { token, token_from: from, token_made_at: timestamp(clock.now()), ...UNKNOWN };
      await run(
        rows()
          .insert({ node_uuid: nodeUuid, ...row })
          .onConflict('node_uuid')
          .merge(row),
        { node_uuid: nodeUuid },
      );
    },
    async register(nodeUuid, token, registration) {
      const seen = { ...registration, seen_at: timestamp(clock.now()) };
      return (await run(rows().where({ node_uuid: nodeUuid, token }).update(seen))) > 0;
    },
    async revoke(nodeUuid) {
      await run(rows().where('node_uuid', nodeUuid).delete());
    },
  };
}
