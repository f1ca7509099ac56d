import type { Knex } from 'knex';

/**
 * Hardware records of recorders on running hosts (docs/recorder.md): the latest record of each node, and the changes. A push writes no
 * indexed column, so that a report of an unchanged record writes one page. The program compresses the record. When an instance ends, a
 * trigger removes token and record in the same transaction.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE hardware (
      node_uuid text COLLATE "C" CONSTRAINT hardware_pkey PRIMARY KEY CONSTRAINT hardware_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      token_hash text COLLATE "C",
      token_from text COLLATE "C",
      token_made_at timestamptz,
      digest text COLLATE "C",
      record bytea,
      boot_id text COLLATE "C",
      recorded_at timestamptz,
      received_at timestamptz,
      stale boolean NOT NULL DEFAULT false
    ) WITH (fillfactor = 60);
    ALTER TABLE hardware ALTER COLUMN record SET STORAGE EXTERNAL;
    CREATE TABLE hardware_changes (
      id bigserial CONSTRAINT hardware_changes_pkey PRIMARY KEY,
      node_uuid text COLLATE "C" NOT NULL CONSTRAINT hardware_changes_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      at timestamptz NOT NULL,
      kind text COLLATE "C" NOT NULL,
      component text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      before json,
      after json
    );
    CREATE INDEX hardware_changes_node_uuid ON hardware_changes (node_uuid, id);
    CREATE INDEX hardware_changes_at ON hardware_changes (at);
    CREATE OR REPLACE FUNCTION forget_hardware() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN DELETE FROM hardware WHERE node_uuid = NEW.uuid; RETURN NULL; END $$;
    CREATE TRIGGER nodes_undeployed AFTER UPDATE OF provision_state ON nodes
      FOR EACH ROW WHEN (OLD.provision_state = 'deleting' AND NEW.provision_state <> 'deleting') EXECUTE FUNCTION forget_hardware();
  `);
}
