/** An inventory may be in a file of a folder: then its row names the file, and has nothing else. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE inventories
      ADD COLUMN file text,
      ALTER COLUMN inventory DROP NOT NULL,
      ALTER COLUMN plugin_data DROP NOT NULL,
      ADD CONSTRAINT inventories_one_place CHECK ((file IS NULL) <> (inventory IS NULL));
  `);
}
