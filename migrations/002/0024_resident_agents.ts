/** Agents that run in deployed systems (docs/kexec.md). Their tokens end with the instance, in the same transaction. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE resident_agents (
      node_uuid text COLLATE "C" CONSTRAINT resident_agents_pkey PRIMARY KEY
        CONSTRAINT resident_agents_node_known REFERENCES nodes (uuid) ON DELETE CASCADE,
      token text COLLATE "C" NOT NULL,
      token_from text COLLATE "C" NOT NULL,
      token_made_at timestamptz NOT NULL,
      url text COLLATE "C",
      certificate text COLLATE "C",
      version text COLLATE "C",
      boot_id text COLLATE "C",
      seen_at timestamptz
    );
    CREATE OR REPLACE FUNCTION forget_resident_agent() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN DELETE FROM resident_agents WHERE node_uuid = NEW.uuid; RETURN NULL; END $$;
    CREATE TRIGGER nodes_undeployed_resident AFTER UPDATE OF provision_state ON nodes
      FOR EACH ROW WHEN (OLD.provision_state = 'deleting' AND NEW.provision_state <> 'deleting') EXECUTE FUNCTION forget_resident_agent();
  `);
}
