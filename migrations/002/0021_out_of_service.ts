/** Nodes that a person takes out of service (model/rules/out-of-service.ts), and the events about it. */
import type { Knex } from 'knex';

/** `before` changes without an event: clients see it only when the node is in service again. */
const CHANGED = `OLD.out_of_service - 'before' <> NEW.out_of_service - 'before'`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE nodes ADD COLUMN out_of_service jsonb NOT NULL DEFAULT '{}';
    CREATE INDEX nodes_out_of_service ON nodes (id) WHERE (out_of_service <> '{}');
    CREATE OR REPLACE FUNCTION note_nodes_out_of_service() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
      VALUES (coalesce(NEW.updated_at, NEW.created_at), NEW.uuid, NEW.name, NEW.owner, NEW.lessee, 'out_of_service',
        jsonb_build_object('out_of_service', NEW.out_of_service <> '{}') || (NEW.out_of_service - 'before'));
      RETURN NULL;
    END $$;
    CREATE TRIGGER nodes_out_of_service AFTER UPDATE OF out_of_service ON nodes
      FOR EACH ROW WHEN (${CHANGED}) EXECUTE FUNCTION note_nodes_out_of_service();
  `);
}
