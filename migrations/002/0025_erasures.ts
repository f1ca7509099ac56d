/** Certificates of erasure. They outlive their nodes. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE erasures (
      id bigserial CONSTRAINT erasures_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT erasures_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL,
      node_name text COLLATE "C",
      owner text COLLATE "C",
      lessee text COLLATE "C",
      instance_uuid text COLLATE "C",
      step text COLLATE "C" NOT NULL,
      erased bigint NOT NULL,
      skipped bigint NOT NULL,
      serials text[] NOT NULL,
      command text COLLATE "C" NOT NULL,
      document text COLLATE "C" NOT NULL,
      signature text COLLATE "C" NOT NULL,
      public_key text COLLATE "C" NOT NULL,
      key_fingerprint text COLLATE "C" NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1,
      CONSTRAINT erasures_once UNIQUE (node_uuid, command)
    );
    CREATE INDEX erasures_node_name ON erasures (node_name);
    CREATE INDEX erasures_serials ON erasures USING gin (serials);
    CREATE INDEX erasures_created_at ON erasures (created_at);
  `);
}
