/** Images of the disks of nodes. They outlive their nodes. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE snapshots (
      id bigserial CONSTRAINT snapshots_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT snapshots_uuid_unique UNIQUE,
      node_uuid text COLLATE "C" NOT NULL,
      node_name text COLLATE "C",
      owner text COLLATE "C",
      description text COLLATE "C",
      public boolean NOT NULL DEFAULT false,
      root_device json NOT NULL DEFAULT '{}',
      state text COLLATE "C" NOT NULL,
      progress integer NOT NULL DEFAULT 0,
      last_error text COLLATE "C",
      storage text COLLATE "C",
      image_id text COLLATE "C",
      disk text COLLATE "C",
      disk_size bigint,
      size bigint,
      sha256 text COLLATE "C",
      parts json NOT NULL DEFAULT '{}',
      blocks text COLLATE "C" NOT NULL DEFAULT 'used',
      compression text COLLATE "C",
      left_out bigint,
      partitions json NOT NULL DEFAULT '[]',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    CREATE INDEX snapshots_node_uuid ON snapshots (node_uuid);
  `);
}
