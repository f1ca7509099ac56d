import type { Knex } from 'knex';

/** Images for BMCs: the secret token of their URL, their node and their content. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE media (
      token text COLLATE "C" CONSTRAINT media_pkey PRIMARY KEY,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT media_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      role text COLLATE "C" NOT NULL,
      content json NOT NULL,
      made_at bigint NOT NULL,
      CONSTRAINT media_role_once UNIQUE (node_uuid, role)
    );
  `);
}
