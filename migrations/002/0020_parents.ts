/** Parents of nodes: no node is its own ancestor, and no parent disappears while it has children. */
import type { Knex } from 'knex';

/** Names of advisory locks: all changes of parents, one after the other; and what concerns one parent. */
const [ALL, ONE] = [7_022, 7_023];

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE OR REPLACE FUNCTION check_parent() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock(${ALL}, 0);
      PERFORM pg_advisory_xact_lock(${ONE}, hashtext(NEW.parent_node));
      IF TG_OP = 'UPDATE' AND NOT EXISTS (SELECT FROM nodes WHERE uuid = NEW.parent_node) THEN
        RAISE 'the parent does not exist' USING ERRCODE = 'check_violation', CONSTRAINT = 'nodes_parent_known';
      END IF;
      IF EXISTS (
        WITH RECURSIVE above(uuid) AS (
          SELECT NEW.parent_node
          UNION SELECT nodes.parent_node FROM nodes JOIN above ON nodes.uuid = above.uuid WHERE nodes.parent_node IS NOT NULL
        )
        SELECT FROM above WHERE uuid = NEW.uuid
      ) THEN
        RAISE 'a node would be its own ancestor' USING ERRCODE = 'check_violation', CONSTRAINT = 'nodes_parent_acyclic';
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER nodes_parent_set AFTER INSERT ON nodes
      FOR EACH ROW WHEN (NEW.parent_node <> '') EXECUTE FUNCTION check_parent();
    CREATE TRIGGER nodes_parent_changed AFTER UPDATE OF parent_node ON nodes
      FOR EACH ROW WHEN (NEW.parent_node <> '' AND NEW.parent_node IS DISTINCT FROM OLD.parent_node) EXECUTE FUNCTION check_parent();
    CREATE OR REPLACE FUNCTION check_children() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock(${ONE}, hashtext(OLD.uuid));
      IF EXISTS (SELECT FROM nodes WHERE parent_node = OLD.uuid) THEN
        RAISE 'the node has children' USING ERRCODE = 'check_violation', CONSTRAINT = 'nodes_children_gone';
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER nodes_parent_deleted AFTER DELETE ON nodes FOR EACH ROW EXECUTE FUNCTION check_children();
  `);
}
