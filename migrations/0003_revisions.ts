import type { Knex } from 'knex';

/**
 * Kept answers (api/resource/fragments.ts) are held against `revision`: no write of a node or a port may leave it as it was, whoever writes. Our
 * own statements raise it themselves; the trigger is for those that forget, and for hands. A conductor's revision changes with what it
 * offers, not with its signs of life.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE conductors ADD COLUMN revision bigint NOT NULL DEFAULT 1;
    CREATE OR REPLACE FUNCTION raise_revision() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.revision := OLD.revision + 1;
        RETURN NEW;
      END $$;
    CREATE TRIGGER nodes_revision BEFORE UPDATE ON nodes
      FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION raise_revision();
    CREATE TRIGGER ports_revision BEFORE UPDATE ON ports
      FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION raise_revision();
  `);
}
