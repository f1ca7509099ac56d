import type { Knex } from 'knex';

/**
 * Cached JSON (api/resource/fragments.ts) is valid while `revision` is equal, so every write of a node or a port must raise it. The
 * program's statements do so; the trigger covers all others, such as manual changes. A conductor's revision changes with its registration,
 * not with its heartbeats.
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
