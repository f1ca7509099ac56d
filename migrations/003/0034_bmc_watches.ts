/** What the server keeps of each BMC that it watches (docs/health.md): its subscription to events, and how far its logs were read. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE bmc_watches (
      node_uuid text COLLATE "C" CONSTRAINT bmc_watches_pkey PRIMARY KEY
        CONSTRAINT bmc_watches_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      subscription text COLLATE "C",
      origins json,
      logs json
    );
    CREATE INDEX bmc_watches_subscribed ON bmc_watches (node_uuid) WHERE subscription IS NOT NULL;
  `);
}
