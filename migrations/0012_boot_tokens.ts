/** The URLs of boot files have a random token in place of the UUID of the node. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE boots ADD COLUMN token text COLLATE "C" NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '');
    CREATE UNIQUE INDEX boots_token ON boots (token);
  `);
}
