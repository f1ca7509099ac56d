/** Images with names, and where a change of hardware was noticed. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE images (
      id bigserial CONSTRAINT images_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT images_uuid_unique UNIQUE,
      name text COLLATE "C" NOT NULL CONSTRAINT images_name_unique UNIQUE,
      description text COLLATE "C",
      image_source text COLLATE "C" NOT NULL,
      image_checksum text COLLATE "C",
      image_os_hash_algo text COLLATE "C",
      image_os_hash_value text COLLATE "C",
      extra json NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1
    );
    ALTER TABLE hardware_changes ADD COLUMN source text COLLATE "C" NOT NULL DEFAULT 'recorder';
  `);
}
