/** What ends with an instance ends in one statement: a trigger and its plan cost each connection to the database, the first time more. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP TRIGGER nodes_undeployed_resident ON nodes;
    DROP FUNCTION forget_resident_agent();
    CREATE OR REPLACE FUNCTION forget_hardware() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        WITH agents AS (DELETE FROM resident_agents WHERE node_uuid = NEW.uuid) DELETE FROM hardware WHERE node_uuid = NEW.uuid;
        RETURN NULL;
      END $$;
  `);
}
