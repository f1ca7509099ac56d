/** Default arguments of steps, for a resource class, for a value of a property, or for a node. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE default_configs (
      id bigserial CONSTRAINT default_configs_pkey PRIMARY KEY,
      uuid text COLLATE "C" NOT NULL CONSTRAINT default_configs_uuid_unique UNIQUE,
      resource_class text COLLATE "C" CONSTRAINT default_configs_resource_class_unique UNIQUE,
      property text COLLATE "C",
      value text COLLATE "C",
      node_uuid text COLLATE "C" CONSTRAINT default_configs_node_uuid_unique UNIQUE
        CONSTRAINT default_configs_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      description text COLLATE "C",
      steps json NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz,
      revision bigint NOT NULL DEFAULT 1,
      CONSTRAINT default_configs_property_unique UNIQUE (property, value),
      CONSTRAINT default_configs_one_scope CHECK (num_nonnulls(resource_class, property, node_uuid) = 1 AND (property IS NULL) = (value IS NULL))
    );
  `);
}
