import type { Knex } from 'knex';

/** The addresses of discovered machines and their nodes, so that each machine is enrolled once. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE discovered_addresses (
      address text COLLATE "C" CONSTRAINT discovered_addresses_pkey PRIMARY KEY,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT discovered_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      finished boolean NOT NULL DEFAULT false
    );
    CREATE INDEX discovered_addresses_node ON discovered_addresses (node_uuid);
  `);
}
