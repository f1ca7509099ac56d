/** The URLs of boot files have a random token in place of the UUID of the node. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE boots ADD COLUMN token text COLLATE "C";
    -- Machines that boot during the upgrade have the URLs from before.
    UPDATE boots SET token = node_uuid;
    ALTER TABLE boots ALTER COLUMN token SET NOT NULL, ALTER COLUMN token SET DEFAULT replace(gen_random_uuid()::text, '-', '');
    CREATE UNIQUE INDEX boots_token ON boots (token);
  `);
}
