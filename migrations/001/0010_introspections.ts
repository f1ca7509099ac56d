import type { Knex } from 'knex';

/** The introspections of nodes with their data, and the rules of the introspection service. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE introspections (
      node_uuid text COLLATE "C" CONSTRAINT introspections_pkey PRIMARY KEY
        CONSTRAINT introspections_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      state text COLLATE "C" NOT NULL,
      started_at timestamptz NOT NULL,
      finished_at timestamptz,
      error text,
      manage_boot boolean NOT NULL,
      boots_ramdisk boolean NOT NULL DEFAULT false,
      macs text[] COLLATE "C" NOT NULL DEFAULT '{}',
      bmc_addresses text[] COLLATE "C" NOT NULL DEFAULT '{}',
      unprocessed json,
      processed json
    );
    CREATE INDEX introspections_newest ON introspections (started_at DESC, node_uuid DESC);
    CREATE INDEX introspections_running ON introspections (started_at) WHERE finished_at IS NULL;

    CREATE TABLE introspection_rules (
      id bigserial CONSTRAINT introspection_rules_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT introspection_rules_uuid_unique UNIQUE,
      description text,
      scope text,
      conditions json NOT NULL DEFAULT '[]',
      actions json NOT NULL DEFAULT '[]',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
  `);
}
